/** The contract of runtime authorization, without its implementation. */
import { Context, type Redacted } from "effect"
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import { failures, refuse } from "../../../contract/api/Failure.ts"
import type { LicenseKey } from "../../model/LicenseKey.ts"

/** The license of the request's key. The license's actor checks the hash again, because the key may have been rotated. */
export class LicenseCredential extends Context.Service<
  LicenseCredential,
  {
    readonly licenseId: string
    /** SHA-256 of the key as issued, in lower-case hex. */
    readonly keyHash: string
    /** The key as issued: offline envelopes are encrypted with it. */
    readonly licenseKey: () => Redacted.Redacted<LicenseKey>
  }
>()("licensing/licensing/runtime/credentials/LicenseCredential") {}

/** Marks activations, which have a separate rate limit for each license and all addresses together. */
export const IsActivation = Context.Reference<boolean>("licensing/licensing/runtime/credentials/IsActivation", {
  defaultValue: () => false
})

export const operation = (options: { readonly id: string; readonly summary: string; readonly description?: string }) =>
  Context.make(OpenApi.Identifier, options.id).pipe(
    Context.add(OpenApi.Summary, options.summary),
    Context.add(OpenApi.Override, options.description === undefined ? {} : { description: options.description })
  )

/** Admits a request with `Authorization: License <LICENSE_KEY>` (contract, "Authentication" 4). */
export class RuntimeAuthorization extends HttpApiMiddleware.Service<
  RuntimeAuthorization,
  { provides: LicenseCredential }
>()("licensing/licensing/runtime/credentials/RuntimeAuthorization", {
  requiredForClient: true,
  security: { LicenseKey: HttpApiSecurity.http({ scheme: "License" }) },
  error: failures("LICENSE_KEY_MISSING", "LICENSE_KEY_INVALID", "RATE_LIMITED", "NOT_READY")
}) {}

export const unknownKey = refuse("LICENSE_KEY_INVALID", "The license key is not valid: check it for typing errors.")
