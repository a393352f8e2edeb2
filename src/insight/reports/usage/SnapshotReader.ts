/**
 * Parses the snapshot of an export, canonical JSON in chunks, as a stream: reports the rows of its one long list one by one, and
 * the rest at the end. Only one row is in memory at a time.
 */
import type { Json } from "../../../contract/api/CanonicalJson.ts"

export interface SnapshotReader {
  push(bytes: Uint8Array): void
  /** The JSON without the rows of the list, after the last bytes. */
  rest(): Json
}

const [quote, backslash, colon] = [0x22, 0x5c, 0x3a]
const [braceOpen, braceClose, bracketOpen, bracketClose] = [0x7b, 0x7d, 0x5b, 0x5d]

/** Canonical JSON has no space between tokens. */
export const makeSnapshotReader = (path: ReadonlyArray<string>, onRow: (row: Json) => void): SnapshotReader => {
  /** The member names on the path to the current position. */
  const names: Array<string> = []
  const rest: Array<Buffer> = []
  let part: "before" | "rows" | "after" = "before"
  let buffered = Buffer.alloc(0)
  let [depth, inText, escaped] = [0, false, false]
  /** Positions in `buffered` where the last string and the current part begin. */
  let [textFrom, from] = [0, 0]

  const isList = () => depth === path.length && path.every((name, index) => names[index + 1] === name)

  const open = (byte: number, at: number) => {
    if (part === "before" && byte === bracketOpen && isList()) {
      rest.push(buffered.subarray(from, at + 1))
      part = "rows"
    } else if (part === "rows" && depth === path.length + 1) from = at
    depth++
  }

  const close = (byte: number, at: number) => {
    depth--
    if (part !== "rows") return
    if (depth === path.length + 1) onRow(JSON.parse(buffered.toString("utf8", from, at + 1)) as Json)
    if (depth > path.length || byte !== bracketClose) return
    part = "after"
    from = at
  }

  const structure = (byte: number, at: number) => {
    if (byte === quote) [inText, textFrom] = [true, at]
    else if (byte === braceOpen || byte === bracketOpen) open(byte, at)
    else if (byte === braceClose || byte === bracketClose) close(byte, at)
    else if (byte === colon && part === "before") names[depth] = buffered.toString("utf8", textFrom + 1, at - 1)
  }

  const push = (bytes: Uint8Array) => {
    const unread = buffered.subarray(from)
    buffered = Buffer.concat([unread, bytes])
    textFrom -= from
    from = 0
    for (let at = unread.length; at < buffered.length; at++) {
      const byte = buffered[at]!
      if (!inText) structure(byte, at)
      else if (escaped) escaped = false
      else if (byte === backslash) escaped = true
      else if (byte === quote) inText = false
    }
  }

  return {
    push,
    rest: () => JSON.parse(Buffer.concat([...rest, buffered.subarray(from)]).toString("utf8")) as Json
  }
}
