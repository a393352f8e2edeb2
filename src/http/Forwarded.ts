/**
 * The Forwarded header (RFC 7239), read from its end. Each proxy adds one element at the right, so what a client has written to
 * confuse a reader, as a quote that never closes, stands at the left and cannot reach the elements of the proxies.
 */

/** The `for` of each element, the last element's first. An element that has none or is malformed gives the empty text. */
export function* forwardedFor(header: string): Generator<string> {
  for (let end = header.length; end >= 0; ) {
    const comma = lastComma(header, end)
    yield forOf(header.slice(comma + 1, end))
    end = comma
  }
}

/** Where the last comma before `end` is that stands in no quoted text, or -1. */
const lastComma = (header: string, end: number): number => {
  let quoted = false
  for (let index = end - 1; index >= 0; index--) {
    if (header[index] === '"' && !isEscaped(header, index)) quoted = !quoted
    else if (header[index] === "," && !quoted) return index
  }
  return -1
}

const isEscaped = (header: string, index: number): boolean => {
  let first = index
  while (header[first - 1] === "\\") first--
  return (index - first) % 2 === 1
}

// `token=token` or `token="text"`. An IPv6 address needs the quotes, yet some proxies leave them out.
const pair = /[ \t]*([!#$%&'*+.^_`|~\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([!#$%&'*+.^_`|~\w:[\]-]+))[ \t]*(?:;|$)/y

const forOf = (element: string): string => {
  let found = ""
  for (let at = 0; at < element.length; at = pair.lastIndex) {
    pair.lastIndex = at
    const [, name, quoted, plain] = pair.exec(element) ?? []
    if (name === undefined) return ""
    if (name.toLowerCase() !== "for") continue
    // Twice the same parameter: whoever reads the other one sees another client.
    if (found !== "") return ""
    found = quoted ?? plain ?? ""
  }
  return found
}
