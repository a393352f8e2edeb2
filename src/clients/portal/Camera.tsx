/** The camera, until it sees a QR code. */
import { useEffect, useRef, useState } from "react"
import { useTexts } from "./Language.tsx"
import { loadDecoder, textAt } from "./qr/Picture.ts"

/** Pixels of a frame that is read: a frame takes a few milliseconds. */
const side = 900
const camera = { video: { facingMode: "environment", width: { ideal: 1_280 }, height: { ideal: 1_280 } } }

export const Camera = ({ onText }: { readonly onText: (text: string) => void }) => {
  const texts = useTexts()
  const video = useRef<HTMLVideoElement>(null)
  const found = useRef(onText)
  const [isMissing, setMissing] = useState(false)
  useEffect(() => {
    found.current = onText
  })
  useEffect(() => {
    let isOn = true
    let stop: () => void = () => undefined
    const watch = async (player: HTMLVideoElement) => {
      // First, so that no camera stays on if it fails.
      const decode = await loadDecoder()
      if (!isOn) return
      const stream = await navigator.mediaDevices.getUserMedia(camera)
      stop = () => {
        for (const track of stream.getTracks()) track.stop()
      }
      if (!isOn) return stop()
      player.srcObject = stream
      await player.play()
      const look = () => {
        if (!isOn) return
        const size = { width: player.videoWidth, height: player.videoHeight }
        const text = size.width === 0 ? undefined : textAt(player, size, side, decode)
        if (text === undefined) requestAnimationFrame(look)
        else found.current(text)
      }
      look()
    }
    void watch(video.current!).catch(() => isOn && setMissing(true))
    return () => {
      isOn = false
      stop()
    }
  }, [])
  if (isMissing) return <p role="alert">{texts.noCamera}</p>
  return (
    <div className="camera">
      <video ref={video} muted playsInline aria-label={texts.scanning} />
      <p>{texts.scanning}</p>
    </div>
  )
}
