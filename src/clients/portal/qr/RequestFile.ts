/** The request of a computer without a network: the JSON body of `POST /api/v1/license/offline`, as a text or in a picture. */
import { textInPicture } from "./Picture.ts"

/** Bytes of a file that is read. A photo of a phone has up to 20 MB. */
const fileBytesMax = 32_000_000
/** Bytes of a request, which the service limits, too. */
const requestBytesMax = 8_192

export interface MachineRequest {
  readonly hostname?: string
  readonly [name: string]: unknown
}

export const requestIn = (text: string): MachineRequest | undefined => {
  if (text.length > requestBytesMax) return undefined
  try {
    const found: unknown = JSON.parse(text.trim())
    return typeof found === "object" && found !== null && !Array.isArray(found) ? (found as MachineRequest) : undefined
  } catch {
    return undefined
  }
}

/** The text of a file, or of the QR code in a picture. */
export const textInFile = async (file: File): Promise<string | undefined> => {
  if (file.size > fileBytesMax) return undefined
  const isPicture = file.type.startsWith("image/") || file.size > requestBytesMax
  return isPicture ? textInPicture(file) : file.text()
}
