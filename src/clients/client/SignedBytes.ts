/** Keeps the signed bytes beside a decoded response: dates become numbers when it is decoded, and those have no signature. */
import { Effect } from "effect"
import { HttpClientError } from "effect/http"
import { isRefusal, refuse } from "../../contract/api/Failure.ts"
import { membersOf } from "../kit/texts/ResponseText.ts"
import { Call } from "./Call.ts"

/** A signed response with the bytes of its `data`; any other as it is. */
export const withBytes = Effect.fnUntraced(function* (value: unknown) {
  if (typeof value !== "object" || value === null || !("signature" in value && "data" in value)) return value
  return { ...value, bytes: yield* memberBytes("data") }
})

/** A signed refusal with the bytes of its `error`; any other error as it is. */
export const withRefusalBytes = Effect.fnUntraced(function* <E>(error: E) {
  if (!isRefusal(error) || error.signature === undefined) return error
  const { code, detail, message, ...more } = error
  const { details, facts, signature } = more
  const bytes = yield* memberBytes("error")
  return refuse(code, message, detail, {
    ...(details && { details }),
    ...(facts && { facts }),
    ...(signature && { signature }),
    ...(bytes && { bytes })
  }) as E
})

/** Fails if it is not clear which bytes are signed, as where a name occurs twice: the service sends no such response. */
const memberBytes = Effect.fnUntraced(function* (member: "data" | "error") {
  const { received: response } = yield* Call
  if (response === undefined) return new Uint8Array()
  // The response keeps its text, which was read to decode it.
  const text = yield* Effect.orDie(response.text)
  return yield* Effect.try({
    try: () => new TextEncoder().encode(membersOf(text).get(member)),
    catch: (cause) => {
      const reason = new HttpClientError.DecodeError({ request: response.request, response, cause })
      return new HttpClientError.HttpClientError({ reason })
    }
  })
})
