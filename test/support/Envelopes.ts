/** What every answer must look like, whoever gives it. */
import { assert } from "@effect/vitest"
import type { Answer } from "./RawHttp.ts"

const requestId = /^[A-Za-z0-9_-]{8,64}$/

/** An error envelope with this status and code; `detail` is compared only where it is given. */
export const assertRefused = (answer: Answer, status: number, code: string, detail?: string): void => {
  assert.strictEqual(answer.error.code, code, answer.text)
  assert.strictEqual(answer.status, status)
  if (detail !== undefined) assert.strictEqual(answer.error.detail, detail)
  // A refusal is signed if and only if it names the license of the request's key.
  const isSigned = "license_id" in answer.error
  assert.deepStrictEqual(
    Object.keys(answer.json as object),
    isSigned ? ["error", "signature", "meta"] : ["error", "meta"]
  )
  assert.match(answer.error.message ?? "", /^[A-Z].*\.$/, "one plain sentence")
  assertMeta(answer)
}

/** A success envelope with this status. Gives its data. */
export const assertAnswered = (answer: Answer, status: number): unknown => {
  assert.strictEqual(answer.status, status, answer.text)
  assertMeta(answer)
  return (answer.json as { data: unknown }).data
}

const assertMeta = (answer: Answer): void => {
  const { meta } = answer.json as { meta: { request_id: string; timestamp: string } }
  assert.match(meta.request_id, requestId)
  assert.strictEqual(answer.headers["x-request-id"], meta.request_id)
  assert.strictEqual(new Date(meta.timestamp).toISOString(), meta.timestamp)
  assert.strictEqual(answer.headers["content-type"], "application/json")
  assert.strictEqual(answer.headers["cache-control"], "no-store")
  assert.strictEqual(answer.headers["x-content-type-options"], "nosniff")
  for (const told of ["server", "x-powered-by"]) assert.notProperty(answer.headers, told)
}
