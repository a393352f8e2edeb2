/**
 * The Authorization header, read the same way for every scheme: its name in any case, one credential, one header. Two of them
 * are refused rather than chosen between, since a proxy in front may have chosen the other.
 */
import type { RequestHead } from "../api/RequestHead.ts"

interface AuthorizationHeader {
  /** In lower case; empty where there is no header. */
  readonly scheme: string
  /** As sent; empty where the scheme stands alone. */
  readonly credential: string
  readonly repeated: boolean
}

export const authorizationHeader = (request: RequestHead): AuthorizationHeader => {
  const text = (request.headers["authorization"] ?? "").trim()
  const gap = text.search(/\s/)
  const [scheme, credential] = gap < 0 ? [text, ""] : [text.slice(0, gap), text.slice(gap).trimStart()]
  return { scheme: scheme.toLowerCase(), credential, repeated: isRepeated(request.source) }
}

/** Whether the header came more than once: the parsed headers of Node and Deno keep the first and hide the others. */
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
