/** Finds a QR code in a picture. The decoder is loaded when it is needed. */
import type { decodeQR as Decode } from "qr/decode.js"

export const loadDecoder = async () => (await import("qr/decode.js")).decodeQR

/** Pixels of the longer side: enough for the largest code, and fast on a phone. The smaller one finds codes in blurred photos. */
const sides = [1_600, 900]

interface Size {
  readonly width: number
  readonly height: number
}

/** The text of the code that a picture shows, if it is found at this size. */
export const textAt = (picture: CanvasImageSource, { height, width }: Size, side: number, decode: typeof Decode) => {
  const scale = Math.min(1, side / Math.max(width, height))
  const canvas = document.createElement("canvas")
  canvas.width = Math.round(width * scale)
  canvas.height = Math.round(height * scale)
  const context = canvas.getContext("2d", { willReadFrequently: true })
  context?.drawImage(picture, 0, 0, canvas.width, canvas.height)
  const pixels = context?.getImageData(0, 0, canvas.width, canvas.height)
  try {
    return pixels && decode(pixels)
  } catch {
    // The decoder throws if there is no code.
    return undefined
  }
}

export const textInPicture = async (file: Blob): Promise<string | undefined> => {
  const picture = await createImageBitmap(file).catch(() => undefined)
  if (picture === undefined) return undefined
  const decode = await loadDecoder()
  for (const side of sides) {
    const text = textAt(picture, picture, side, decode)
    if (text !== undefined) return text
  }
  return undefined
}
