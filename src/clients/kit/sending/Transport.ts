/** Sends one request with a time limit and a size limit. */

import { bodyBytesMax, textOf } from "../texts/ResponseText.ts"
import type { KitResponse, Platform } from "./Platform.ts"
import { type Problem, problemOf } from "./Problem.ts"

export interface Message {
  readonly url: string
  /** Absent: a GET. */
  readonly body?: string
  readonly authorization?: string
  readonly timeoutMillis: number
}

export interface Received {
  readonly status: number
  readonly text: string
  readonly retryAfterMillis: number
}

/** The response, whatever its status, or why none came in time that is UTF-8 and not too large. */
export const exchange = async (
  platform: Platform,
  { authorization, body, timeoutMillis, url }: Message
): Promise<Received | Problem> => {
  const abort = new AbortController()
  // An application's own fetch may ignore the signal, and the next request waits for this one.
  const aborted = new Promise<never>((_, reject) => abort.signal.addEventListener("abort", reject))
  let status: number | undefined
  const cancel = platform.after(timeoutMillis, () => abort.abort())
  try {
    const asked = platform.fetch(url, {
      method: body === undefined ? "GET" : "POST",
      headers: {
        ...(body === undefined ? undefined : { "content-type": "application/json" }),
        ...(authorization === undefined ? undefined : { authorization })
      },
      ...(body === undefined ? undefined : { body }),
      // A redirect must not carry the license key to another host.
      redirect: "manual",
      signal: abort.signal
    })
    const response = await Promise.race([asked, aborted])
    status = response.status
    const text = await Promise.race([textIn(response), aborted])
    return { status, text, retryAfterMillis: retryAfterOf(response) }
  } catch (error) {
    if (abort.signal.aborted) return { kind: "timeout" }
    return status === undefined ? problemOf(error, url) : { kind: "response", status }
  } finally {
    cancel()
  }
}

const textIn = async ({ body }: KitResponse): Promise<string> => {
  const chunks: Array<Uint8Array> = []
  let length = 0
  const reader = body?.getReader()
  for (let chunk = await reader?.read(); chunk?.done === false; chunk = await reader?.read()) {
    const value = chunk.value ?? new Uint8Array()
    length += value.length
    if (length > bodyBytesMax) {
      await reader?.cancel()
      throw new Error("too large")
    }
    chunks.push(value)
  }
  const bytes = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.length
  }
  return textOf(bytes)
}

const retryAfterMillisMax = 3_600_000

const retryAfterOf = ({ headers }: KitResponse): number => {
  const seconds = headers.get("retry-after") ?? ""
  return /^\d{1,9}$/.test(seconds) ? Math.min(Number(seconds) * 1000, retryAfterMillisMax) : 0
}
