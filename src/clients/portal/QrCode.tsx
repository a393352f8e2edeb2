/** A text as a QR code: black on white, also in dark, because many readers see no other. */
import { useEffect, useState } from "react"
import { useTexts } from "./Language.tsx"

/** Bytes of the largest code with the least error correction. Screens have no dirt. */
const bytesMax = 2_953
/** Modules around the code. */
const border = 4

export const QrCode = ({ text }: { readonly text: string }) => {
  const texts = useTexts()
  const [modules, setModules] = useState<ReadonlyArray<ReadonlyArray<boolean>>>()
  const isTooLarge = new TextEncoder().encode(text).length > bytesMax
  useEffect(() => {
    if (isTooLarge) return
    void import("qr").then(({ encodeQR }) => setModules(encodeQR(text, "raw", { ecc: "low", border })))
  }, [isTooLarge, text])
  if (isTooLarge) return <p>{texts.tooLarge}</p>
  if (modules === undefined) return null
  const path = modules.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : []))).join("")
  return (
    <svg className="code" viewBox={`0 0 ${modules.length} ${modules.length}`} role="img" aria-label={texts.codeName}>
      <path d={path} shapeRendering="crispEdges" />
    </svg>
  )
}
