/**
 * Reads the figures of an export as they are stored, canonical JSON in chunks: the rows of their one long list one by one, and the
 * rest around them. However many rows there are, only one is held at a time.
 */
import type { Json } from "../../api/CanonicalJson.ts"

export interface FiguresReader {
  /** Takes the next bytes. */
  push(bytes: Uint8Array): void
  /** The whole without the rows of the list, once all bytes are in. */
  rest(): Json
}

const [quote, backslash, colon] = [0x22, 0x5c, 0x3a]
const [braceOpen, braceClose, bracketOpen, bracketClose] = [0x7b, 0x7d, 0x5b, 0x5d]

/** Reads the list at a path of names. What comes is canonical: no space stands between its parts. */
export const makeFiguresReader = (path: ReadonlyArray<string>, onRow: (row: Json) => void): FiguresReader => {
  /** Names on the way to where the reader is. */
  const names: Array<string> = []
  const rest: Array<Buffer> = []
  let part: "before" | "rows" | "after" = "before"
  let held = Buffer.alloc(0)
  let [depth, inText, escaped] = [0, false, false]
  /** Where, in what is held, the last text and the part that is being read begin. */
  let [textFrom, from] = [0, 0]

  const isList = () => depth === path.length && path.every((name, index) => names[index + 1] === name)

  const open = (byte: number, at: number) => {
    if (part === "before" && byte === bracketOpen && isList()) {
      rest.push(held.subarray(from, at + 1))
      part = "rows"
    } else if (part === "rows" && depth === path.length + 1) from = at
    depth++
  }

  const close = (byte: number, at: number) => {
    depth--
    if (part !== "rows") return
    if (depth === path.length + 1) onRow(JSON.parse(held.toString("utf8", from, at + 1)) as Json)
    if (depth > path.length || byte !== bracketClose) return
    part = "after"
    from = at
  }

  const structure = (byte: number, at: number) => {
    if (byte === quote) [inText, textFrom] = [true, at]
    else if (byte === braceOpen || byte === bracketOpen) open(byte, at)
    else if (byte === braceClose || byte === bracketClose) close(byte, at)
    else if (byte === colon && part === "before") names[depth] = held.toString("utf8", textFrom + 1, at - 1)
  }

  const push = (bytes: Uint8Array) => {
    const kept = held.subarray(from)
    held = Buffer.concat([kept, bytes])
    textFrom -= from
    from = 0
    for (let at = kept.length; at < held.length; at++) {
      const byte = held[at]!
      if (!inText) structure(byte, at)
      else if (escaped) escaped = false
      else if (byte === backslash) escaped = true
      else if (byte === quote) inText = false
    }
  }

  return {
    push,
    rest: () => JSON.parse(Buffer.concat([...rest, held.subarray(from)]).toString("utf8")) as Json
  }
}
