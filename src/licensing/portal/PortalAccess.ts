/** Who uses the customer's page: the contract of its sessions, without their implementation. */
import { Context } from "effect"
import { HttpApiMiddleware } from "effect/http-api"
import { failures } from "../../contract/api/Failure.ts"

/** A session shows one license, whose key was entered, or all licenses of an e-mail address that opened a link. */
interface LicenseOwner {
  readonly kind: "license"
  readonly licenseId: string
  /** SHA-256 of the key, in hex. A new key ends the session. */
  readonly keyHash: string
}
interface AddressOwner {
  readonly kind: "address"
  /** In lower case. */
  readonly address: string
}
export type PortalOwner = LicenseOwner | AddressOwner

export class PortalSession extends Context.Service<
  PortalSession,
  { readonly id: string; readonly owner: PortalOwner; readonly expiresAt: number }
>()("licensing/licensing/portal/PortalSession") {}

/** Refuses changes that another site's page sends. */
export class SameOrigin extends HttpApiMiddleware.Service<SameOrigin>()("licensing/licensing/portal/SameOrigin", {
  error: failures("BAD_REQUEST")
}) {}

/** Counts a sign-in by address, before its body is read. */
export class SignInLimit extends HttpApiMiddleware.Service<SignInLimit>()("licensing/licensing/portal/SignInLimit", {
  error: failures("RATE_LIMITED")
}) {}

/** Admits requests with the cookie of a session. */
export class PortalAccess extends HttpApiMiddleware.Service<PortalAccess, { provides: PortalSession }>()(
  "licensing/licensing/portal/PortalAccess",
  { error: failures("TOKEN_MISSING", "TOKEN_INVALID", "RATE_LIMITED") }
) {}
