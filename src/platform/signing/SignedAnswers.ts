/** The texts of signed runtime responses: payloads and refusals. Their bytes are written once and sent unchanged. */
import type { Json } from "../../contract/api/CanonicalJson.ts"
import { type Code, isSignedStatus, statuses } from "../../contract/api/ErrorCode.ts"
import { errorBody, type Refusal } from "../../contract/api/Failure.ts"
import type { Meta } from "../../contract/api/Meta.ts"
import type { RefusalFacts } from "../../contract/api/RefusalFacts.ts"
import { noncePattern } from "../../contract/api/Text.ts"
import type { Signed } from "./Signer.ts"

/** A rule's payload with the request's nonce. */
export const payloadOf = (payload: unknown, nonce: string | undefined): Json =>
  (nonce === undefined ? payload : { ...(payload as object), nonce }) as Json

/** The `error` of a signed refusal. */
export const signedErrorOf = (refusal: Refusal, facts: RefusalFacts, nonce: string | undefined): Json =>
  payloadOf({ ...errorBody(refusal), ...facts }, nonce)

/** `{data, signature, meta}` or `{error, signature, meta}`, with exactly the bytes that were signed. */
export const signedEnvelope = ({ bytes, signature }: Signed, meta: typeof Meta.Type, refusal?: Refusal): string => {
  const member = refusal === undefined ? "data" : "error"
  return `{"${member}":${bytes},"signature":${JSON.stringify(signature)},"meta":${JSON.stringify(meta)}}`
}

/** Whether a refusal with this code is signed. */
export const isSignable = (code: Code): boolean => isSignedStatus(statuses[code])

/** The nonce of a body whose other fields may not be valid. */
export const nonceIn = (body: unknown): string | undefined => {
  const nonce = (body as { readonly nonce?: unknown } | null)?.nonce
  return typeof nonce === "string" && noncePattern.test(nonce) ? nonce : undefined
}
