/**
 * The contract half of management authorization. An operation's scopes are declared once, here; the declaration is enforced and
 * published as `x-required-scopes`.
 */
import { Context } from "effect"
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import { failures } from "../api/Failure.ts"
import type { CurrentPrincipal } from "./CurrentActor.ts"
import type { ManagementScope } from "./Scope.ts"

export class RequiredScopes extends Context.Service<RequiredScopes, ReadonlyArray<ManagementScope>>()(
  "licensing/auth/RequiredScopes"
) {}

/**
 * Describes a management operation: its operationId, a one-line summary, and its scopes, all of which are required. Without scopes
 * any valid token is enough.
 */
export const operation = (options: {
  readonly id: string
  readonly summary: string
  readonly description?: string
  readonly scopes: ReadonlyArray<ManagementScope>
}) =>
  Context.make(RequiredScopes, options.scopes).pipe(
    Context.add(OpenApi.Identifier, options.id),
    Context.add(OpenApi.Summary, options.summary),
    Context.add(OpenApi.Override, {
      "x-required-scopes": options.scopes,
      ...(options.description === undefined ? undefined : { description: options.description })
    })
  )

/** Admits a request with `Authorization: Bearer <API_TOKEN>` whose scopes suffice (docs/API.md, "Credentials"). */
export class ManagementAuthorization extends HttpApiMiddleware.Service<
  ManagementAuthorization,
  { provides: CurrentPrincipal }
>()("licensing/auth/ManagementAuthorization", {
  requiredForClient: true,
  security: { ApiToken: HttpApiSecurity.bearer },
  error: failures(
    "TOKEN_MISSING",
    "TOKEN_MALFORMED",
    "TOKEN_INVALID",
    "TOKEN_EXPIRED",
    "TOKEN_INACTIVE",
    "TOKEN_ADDRESS_BLOCKED",
    "TOKEN_SCOPE_DENIED",
    "RATE_LIMITED",
    "NOT_READY"
  )
}) {}
