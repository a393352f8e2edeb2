/** Licenses as a CSV file that the browser saves: the chosen ones, or all that filters choose. */
import { Exit } from "effect"
import { useEffect, useRef, useState } from "react"
import { countOf } from "../parts/Format.ts"
import { Fault } from "../parts/Show.tsx"
import { type Told, tell } from "../service/Failures.ts"
import type { Chosen } from "./BatchDialog.tsx"
import { csvOf, licenseHeader } from "./LicenseFile.ts"
import { readAll, save } from "./ReadAll.ts"

const file = "licenses.csv"

export const ExportCsv = ({ chosen, label }: { readonly chosen: Chosen; readonly label: string }) => {
  const [count, setCount] = useState<number>()
  const [told, setTold] = useState<Told>()
  const stop = useRef<AbortController>(null)
  useEffect(() => () => stop.current?.abort(), [])
  const start = () => {
    if (!("filters" in chosen)) return save(file, [licenseHeader, csvOf(chosen)])
    const controller = new AbortController()
    stop.current = controller
    setTold(undefined)
    setCount(0)
    // Text takes a tenth of the memory of the licenses: a list may have a million.
    const parts = [licenseHeader]
    let read = 0
    const take = (page: Parameters<typeof csvOf>[0]) => {
      parts.push(csvOf(page))
      read += page.length
      setCount(read)
    }
    void readAll({ filters: chosen.filters, signal: controller.signal, take }).then((exit) => {
      setCount(undefined)
      if (exit === undefined) return
      if (Exit.isFailure(exit)) setTold(tell(exit.cause))
      else save(file, parts)
    })
  }
  return (
    <>
      {told !== undefined && <Fault told={told} />}
      {count === undefined ? (
        <button type="button" onClick={start}>
          {label}
        </button>
      ) : (
        <button type="button" onClick={() => stop.current?.abort()}>
          Stop the export, {countOf(count)} read
        </button>
      )}
    </>
  )
}
