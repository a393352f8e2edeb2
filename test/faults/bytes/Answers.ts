/** Reads the responses of a connection, and finds what is wrong with them. */
import { statuses } from "../../../src/contract/api/ErrorCode.ts"

export interface Response {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
}

/** The responses, and what is left if the last one is incomplete. */
export const responsesIn = (
  received: Buffer,
  isHead: boolean
): { readonly responses: ReadonlyArray<Response>; readonly rest: Buffer } => {
  const responses: Array<Response> = []
  let rest = received
  while (rest.length > 0) {
    const end = rest.indexOf("\r\n\r\n")
    if (end < 0) break
    const [line = "", ...fields] = rest.toString("latin1", 0, end).split("\r\n")
    const status = Number(/^HTTP\/1\.1 ([1-5]\d\d) [^\r\n]*$/.exec(line)?.[1])
    if (!(status > 0)) break
    const headers = new Map(
      fields.map((field) => [
        field.slice(0, field.indexOf(":")).toLowerCase(),
        field.slice(field.indexOf(":") + 1).trim()
      ])
    )
    const hasBody = !isHead && status >= 200 && status !== 204 && status !== 304
    const framed = hasBody ? bodyIn(rest.subarray(end + 4), headers) : { body: Buffer.alloc(0), length: 0 }
    if (framed === undefined) break
    responses.push({ status, headers, body: framed.body })
    rest = rest.subarray(end + 4 + framed.length)
  }
  return { responses, rest }
}

const bodyIn = (bytes: Buffer, headers: ReadonlyMap<string, string>) => {
  if (headers.get("transfer-encoding") === "chunked") return chunksIn(bytes)
  const length = Number(headers.get("content-length") ?? Number.NaN)
  return bytes.length >= length ? { body: bytes.subarray(0, length), length } : undefined
}

const chunksIn = (bytes: Buffer) => {
  const chunks: Array<Buffer> = []
  for (let at = 0; ; ) {
    const end = bytes.indexOf("\r\n", at)
    if (end < 0) return undefined
    const size = Number.parseInt(bytes.toString("latin1", at, end), 16)
    const next = end + 2 + size + 2
    if (!(size >= 0) || next > bytes.length) return undefined
    if (size === 0) return { body: Buffer.concat(chunks), length: next }
    chunks.push(bytes.subarray(end + 2, end + 2 + size))
    at = next
  }
}

interface Envelope {
  readonly error?: { readonly code?: string; readonly message?: string }
  readonly meta?: { readonly request_id?: string; readonly timestamp?: string }
}

/** What is wrong with a response: a failure, or a refusal that is not the error envelope, or JSON that is none. */
export const faultOf = ({ body, headers, status }: Response): string | undefined => {
  const text = body.toString()
  if (status >= 500) return `${status}: ${text}`
  const isJson = /^application\/(json|.*\+json)/.test(headers.get("content-type") ?? "")
  const json = isJson ? parsed(text) : undefined
  if (isJson && json === undefined) return `${status} with a body that is not JSON: ${text}`
  if (status < 400) return undefined
  const { error, meta } = (json ?? {}) as Envelope
  const codes: Readonly<Record<string, number>> = statuses
  const isEnvelope =
    codes[error?.code ?? ""] === status && typeof error?.message === "string" && meta?.request_id !== undefined
  return isEnvelope ? undefined : `${status} without the error envelope: ${text}`
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
