/**
 * What nodes say to each other. A frame is a length (4 bytes, big endian) and JSON. The version is raised when a
 * message or a command changes: nodes of different versions hand nothing over to each other.
 */
import type { Refusal } from "../../contract/api/Failure.ts"
import type { HandedSpan } from "../../platform/telemetry/Traces.ts"

export const wireVersion = 7

/** A command with the request that it comes from. `null`: none. */
export type HandedOver = readonly [
  id: number,
  operation: string,
  licenseId: string,
  command: unknown,
  requestId: string,
  clientAddress: string | null,
  nonce: string | null,
  /** Of a sampled request. */
  span: HandedSpan | null
]

/**
 * To the owner: commands to decide in its given epoch, and in no other. Without commands it asks for a sign of life:
 * the epoch.
 */
export interface ToOwner {
  readonly epoch: string
  readonly commands: ReadonlyArray<HandedOver>
}

export type RefusalParts = Pick<Refusal, "code" | "message" | "detail" | "facts" | "isRecorded">

/**
 * `untaken`: the owner did not begin the command. `undecided`: it has not executed the command and never will, or its failure does not
 * tell.
 */
export type Outcome =
  | readonly [id: number, kind: "signed", bytes: string, kid: string, signature: string]
  | readonly [id: number, kind: "refused", refusal: RefusalParts]
  | readonly [id: number, kind: "untaken"]
  | readonly [id: number, kind: "undecided"]

/**
 * From the owner: first its version, an epoch whenever a new one begins (empty: it takes no more commands), and
 * outcomes.
 */
export interface FromOwner {
  readonly version?: number
  readonly epoch?: string
  /** A commit of the owner waits for a lock that another transaction holds. */
  readonly waitsForLock?: boolean
  readonly outcomes?: ReadonlyArray<Outcome>
}

const headerBytes = 4
/** Bounds the memory for one frame; thousands of commands fit. */
export const frameBytesMax = 16 * 1024 * 1024

/**
 * A message as frames: one, unless it is too large, then those of its halves. A single command or outcome that is too
 * large is left out, and its id is passed to `onTooLarge`.
 */
export const encodeFrames = (
  message: ToOwner | FromOwner,
  onTooLarge?: (id: number) => void
): ReadonlyArray<Buffer> => {
  const text = JSON.stringify(message)
  const length = Buffer.byteLength(text)
  if (length > frameBytesMax) return halvesOf(message, onTooLarge).flatMap((half) => encodeFrames(half, onTooLarge))
  const frame = Buffer.allocUnsafe(headerBytes + length)
  frame.writeUInt32BE(length, 0)
  frame.write(text, headerBytes)
  return [frame]
}

const halvesOf = (
  message: ToOwner | FromOwner,
  onTooLarge?: (id: number) => void
): ReadonlyArray<ToOwner | FromOwner> => {
  const name = "commands" in message ? "commands" : "outcomes"
  const all: ReadonlyArray<HandedOver | Outcome> = ("commands" in message ? message.commands : message.outcomes) ?? []
  if (all.length < 2) {
    for (const [id] of all) onTooLarge?.(id)
    return []
  }
  const half = all.length >>> 1
  return [
    { ...message, [name]: all.slice(0, half) },
    { ...message, [name]: all.slice(half) }
  ]
}

/** Collects bytes and passes each complete frame's text on. Returns false if the bytes are no frames. */
export const frameReader = (onText: (text: string) => void): ((bytes: Buffer) => boolean) => {
  let chunks: Array<Buffer> = []
  let length = 0
  /**
   * What arrives is joined only when there is a header or a frame: joining each piece of a large frame took seconds.
   */
  let needed = headerBytes
  return (bytes) => {
    chunks.push(bytes)
    length += bytes.length
    while (length >= needed) {
      const all = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length)
      chunks = [all]
      const size = all.readUInt32BE(0)
      if (size > frameBytesMax) return false
      const end = headerBytes + size
      needed = end
      if (length < end) return true
      chunks = length === end ? [] : [all.subarray(end)]
      length -= end
      needed = headerBytes
      onText(all.toString("utf8", headerBytes, end))
    }
    return true
  }
}
