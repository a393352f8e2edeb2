/**
 * The steps of a runtime request after its license is found: the rate limits count it, the record of refused calls
 * names it, and its refusal is signed or counts as a failed credential. What must stay true: the fast path and the
 * framework path use only these functions.
 */
import { Context, Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import type { RateLimits } from "../../../access/rateLimits/RateLimits.ts"
import { statuses } from "../../../contract/api/ErrorCode.ts"
import type { Refusal } from "../../../contract/api/Failure.ts"
import { currentMeta } from "../../../contract/api/Meta.ts"
import type { RequestContext } from "../../../contract/api/RequestContext.ts"
import { isSignable, signedEnvelope } from "../../../platform/signing/SignedAnswers.ts"
import type { Signed } from "../../../platform/signing/Signer.ts"
import type { LicenseIdCache } from "./LicenseIdCache.ts"
import { IsActivation } from "./RuntimeAuthorization.ts"

export const admissionOf = ({ annotations, identifier }: HttpApiEndpoint.Top, limits: RateLimits["Service"]) => {
  const isActivation = Context.get(annotations, IsActivation)
  return {
    /** Names the call for the record of refused calls. `commandOf` adds the device. */
    note: (licenseId: string, context: RequestContext): void => {
      context.runtimeCall = { licenseId, operation: identifier }
    },
    /** Counts the request; undefined if it is admitted. */
    limit: (licenseId: string, context: RequestContext, nowMillis: number): Refusal<"RATE_LIMITED"> | undefined =>
      limits.runtime({ licenseId, isActivation }, context, nowMillis)
  }
}

/** Whether the cached key was rotated, or its license deleted. */
export const isStaleKey = (refusal: Refusal): refusal is Refusal<"LICENSE_KEY_INVALID" | "NOT_FOUND"> =>
  refusal.code === "LICENSE_KEY_INVALID" || (refusal.code === "NOT_FOUND" && refusal.detail === "id")

/** How to answer a refusal of an admitted request: a stale key is a failed credential, and the others may be signed. */
export const treatmentOf = (refusal: Refusal): "forgetKey" | "sign" | "plain" =>
  isStaleKey(refusal) ? "forgetKey" : isSignable(refusal.code) ? "sign" : "plain"

/** Forgets a stale key, and counts it as a failed credential. */
export const forgetKey = (licenseIds: LicenseIdCache["Service"], keyHash: string) => {
  licenseIds.forget(keyHash)
  return licenseIds.refuseKey
}

/** The framework path's response with a signed result or refusal. */
export const responseOf = (signed: Signed, refusal?: Refusal) =>
  Effect.map(currentMeta, (meta) => {
    const status = refusal === undefined ? 200 : statuses[refusal.code]
    return HttpServerResponse.text(signedEnvelope(signed, meta, refusal), { status, contentType: "application/json" })
  })
