/**
 * Reads the JSON of responses and envelopes, which anyone may have sent: size and depth have limits, the bytes of a member are those
 * received, and no name may occur twice. Everything here throws on a wrong form.
 */

export type JsonObject = { readonly [name: string]: unknown }

export const bodyBytesMax = 1_048_576
const depthMax = 32

/** The text of bytes in UTF-8; a byte order mark stays, and is then no JSON. */
export const textOf = (bytes: Uint8Array): string => {
  if (bytes.length > bodyBytesMax) throw new Error("too large")
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)
}

/**
 * The text of each member of a JSON object, as received. A name that occurs twice is refused: parsers take one of the two, so a
 * forged member could hide the signed one.
 */
export const membersOf = (text: string): ReadonlyMap<string, string> => {
  if (text.length > bodyBytesMax) throw new Error("too large")
  const members = scan(text)
  // Only now, because some parsers overflow their stack on deep nesting. What the parser accepts was scanned rightly.
  objectOf(text)
  return members
}

export const objectOf = (text: string): JsonObject => {
  const value: unknown = JSON.parse(text)
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("not an object")
  return value as JsonObject
}

const scan = (text: string): ReadonlyMap<string, string> => {
  const members = new Map<string, string>()
  let depth = 0
  let name = ""
  let start = 0
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (character === '"') {
      const end = stringEnd(text, at)
      if (depth === 1 && start === 0) name = JSON.parse(text.slice(at, end + 1))
      at = end
    } else if (character === "{" || character === "[") {
      if (++depth > depthMax) throw new Error("nested too deep")
    } else if (depth === 1 && character === ":") start = at + 1
    else if (depth === 1 && start !== 0 && (character === "," || character === "}")) {
      if (members.has(name)) throw new Error("a name twice")
      members.set(name, text.slice(start, at).trim())
      start = 0
    }
    if (character === "}" || character === "]") depth--
  }
  return members
}

const stringEnd = (text: string, start: number): number => {
  let at = start + 1
  while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1
  return at
}

/** Standard base64 with padding, in its one right form: decoders take more. */
export const fromBase64 = (text: unknown): Uint8Array<ArrayBuffer> => {
  if (typeof text !== "string") throw new Error("no base64")
  const binary = atob(text)
  if (btoa(binary) !== text) throw new Error("not standard base64")
  return Uint8Array.from(binary, (character) => character.charCodeAt(0))
}

export const toBase64 = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes))

/** Milliseconds of an instant as the service writes it, or NaN. */
export const instantOf = (text: unknown): number =>
  typeof text === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$/.test(text) ? Date.parse(text) : Number.NaN
