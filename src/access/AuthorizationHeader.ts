/**
 * Parses the Authorization header: a case-insensitive scheme and one credential. A repeated header is refused, because a proxy
 * may have checked the other one.
 */
import type { RequestHead } from "../contract/api/RequestHead.ts"

interface AuthorizationHeader {
  /** In lower case; empty if there is no header. */
  readonly scheme: string
  /** As sent; empty if the header has only a scheme. */
  readonly credential: string
  readonly repeated: boolean
}

export const authorizationHeader = (request: RequestHead): AuthorizationHeader => {
  const text = (request.headers["authorization"] ?? "").trim()
  const gap = text.search(/\s/)
  const [scheme, credential] = gap < 0 ? [text, ""] : [text.slice(0, gap), text.slice(gap).trimStart()]
  return { scheme: scheme.toLowerCase(), credential, repeated: isRepeated(request.source) }
}

/** Checks the raw headers, because the parsed headers of Node and Deno contain only the first one. */
const isRepeated = (source: object): boolean => {
  const names = "rawHeaders" in source && Array.isArray(source.rawHeaders) ? source.rawHeaders : []
  let count = 0
  for (let index = 0; index < names.length; index += 2) {
    const name: string = names[index]
    if (name.length === headerName.length && name.toLowerCase() === headerName) count++
  }
  return count > 1
}

const headerName = "authorization"
