/**
 * The contract half of management authorization. An operation declares its scopes once, with `operation`. The declaration is
 * enforced, and published as `x-required-scopes`.
 */
import { Context } from "effect"
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import { failures } from "../contract/api/Failure.ts"
import type { CurrentPrincipal } from "./CurrentActor.ts"
import type { ManagementScope } from "./Scope.ts"

export class RequiredScopes extends Context.Service<RequiredScopes, ReadonlyArray<ManagementScope>>()(
  "licensing/access/RequiredScopes"
) {}

/** The additional scopes that a request with the query parameter `expand` needs. */
export const ExpandScopes = Context.Reference<ReadonlyArray<ManagementScope>>("licensing/access/ExpandScopes", {
  defaultValue: () => []
})

/**
 * The records that an operation may reach with a token for some products:
 * - `path`, the default: the records that the path names, if they belong to the token's products. If the path names no such
 *   record, the reach is `nothing`.
 * - `body`: the records that the body names.
 * - `rows`: the service itself filters rows by `CurrentProducts`.
 * - `all`: the operation does not concern products.
 * - `forbidden`: none, refused with 403. `nothing`: none, refused with 404.
 * Ids in bodies are checked in each case (`ProductGuard`).
 */
export type ProductReach = "path" | "body" | "rows" | "all" | "forbidden" | "nothing"

export const ProductReach = Context.Reference<ProductReach>("licensing/access/ProductReach", {
  defaultValue: () => "path"
})

/**
 * Describes a management operation: its operationId, a one-line summary, and its scopes, all of which are required. An operation
 * without scopes accepts any valid token.
 */
export const operation = (options: {
  readonly id: string
  readonly summary: string
  readonly description?: string
  readonly scopes: ReadonlyArray<ManagementScope>
  readonly expandScopes?: ReadonlyArray<ManagementScope>
  readonly reach?: ProductReach
}) =>
  Context.make(RequiredScopes, options.scopes).pipe(
    Context.add(ExpandScopes, options.expandScopes ?? []),
    Context.add(ProductReach, options.reach ?? "path"),
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
>()("licensing/access/ManagementAuthorization", {
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
    "NOT_FOUND",
    "BAD_REQUEST",
    "PAYLOAD_TOO_LARGE",
    "RATE_LIMITED",
    "NOT_READY"
  )
}) {}
