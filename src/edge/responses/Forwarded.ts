/**
 * The Forwarded header (RFC 7239), read from its end. Each proxy appends one element on the right. Malformed input of a client,
 * such as an unclosed quote, is on the left and cannot change how the proxies' elements are parsed.
 */

/** The `for` of each element, the last element first; empty if an element is malformed or has none. */
export function* forwardedFor(header: string): Generator<string> {
  for (let end = header.length; end >= 0; ) {
    const comma = lastComma(header, end)
    yield forOf(header.slice(comma + 1, end))
    end = comma
  }
}

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

// `token=token` or `token="text"`. An IPv6 address needs the quotes, but some proxies omit them.
const pair = /[ \t]*([!#$%&'*+.^_`|~\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([!#$%&'*+.^_`|~\w:[\]-]+))[ \t]*(?:;|$)/y

const forOf = (element: string): string => {
  let client = ""
  for (let at = 0; at < element.length; at = pair.lastIndex) {
    pair.lastIndex = at
    const [, name, quoted, plain] = pair.exec(element) ?? []
    if (name === undefined) return ""
    if (name.toLowerCase() !== "for") continue
    // A repeated parameter is ambiguous: another parser may read the other one.
    if (client !== "") return ""
    client = quoted ?? plain ?? ""
  }
  return client
}
