/**
 * Authorizes a management request: checks the token, then the client's address, then the scopes, then what a token for
 * some products reaches.
 *
 * What must stay true: a key's revocation, deactivation or changed scope takes effect on every node within a second of its
 * commit (`ApiKeyCache` uses rows read less than 500 ms before the request came), and every refusal has its own
 * code, in the order of the checks. The contract half's security scheme only documents the header. This module parses the header
 * itself, because the scheme alone cannot distinguish a missing token from a malformed one.
 */
import { Clock, Context, Effect, Layer, Option, Result } from "effect"
import { HttpEffect, HttpServerRequest, HttpServerResponse } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import { IpNetwork, NetAddress } from "effect/net"
import { authorizationHeader } from "../../access/AuthorizationHeader.ts"
import { CurrentActor, CurrentPrincipal, CurrentProducts, type Principal } from "../../access/CurrentActor.ts"
import { ExpandScopes, ManagementAuthorization, RequiredScopes } from "../../access/Management.ts"
import { Oidc } from "../../access/oidc/Oidc.ts"
import { RateLimits } from "../../access/rateLimits/RateLimits.ts"
import type { ManagementScope } from "../../access/Scope.ts"
import { isApiToken } from "../../access/Tokens.ts"
import { statuses } from "../../contract/api/ErrorCode.ts"
import { type Refusal, refuse } from "../../contract/api/Failure.ts"
import { RequestContext } from "../../contract/api/RequestContext.ts"
import { sha256 } from "../../platform/signing/Digest.ts"
import { ApiKeyCache, type CachedApiKey } from "../../vendor/apiKeys/ApiKeyCache.ts"
import { makeProductGuard } from "./ProductGuard.ts"

export const layer = Layer.effect(
  ManagementAuthorization,
  Effect.gen(function* () {
    const keys = yield* ApiKeyCache
    const oidc = yield* Oidc
    const limits = yield* RateLimits
    const guard = yield* makeProductGuard

    const ofKey = Effect.fnUntraced(function* (hash: Uint8Array) {
      const found = yield* keys.find(hash)
      if (Option.isNone(found)) {
        return yield* refuse("TOKEN_INVALID", "The API token is unknown or revoked: use another one.")
      }
      const key = found.value
      const refusal = refusalOf(key, yield* Clock.currentTimeMillis, (yield* RequestContext).clientAddress)
      if (refusal !== undefined) return yield* refusal
      yield* keys.used(key.id)
      const { name, scopes, expires_at, product_ids } = key
      const actor = { actor_type: "api_key", actor_id: key.id, actor_name: name } as const
      return { actor, name, scopes, expires_at, product_ids } satisfies Principal as Principal
    })

    const authenticate = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
      const { scheme, credential, repeated } = authorizationHeader(request)
      if (repeated) return yield* malformed()
      if (scheme === "" || (scheme === "bearer" && credential === "")) {
        return yield* refuse("TOKEN_MISSING", "Send an API token: Authorization: Bearer <API_TOKEN>.")
      }
      if (scheme !== "bearer") return yield* malformed()
      // The bytes as received: each character of a header is one byte.
      const hash = sha256(Buffer.from(credential, "latin1"))
      const isKey = isApiToken(credential) || (yield* keys.isBootstrap(hash))
      return isKey ? yield* ofKey(hash) : yield* oidc.authenticate(credential)
    })

    const authorize = Effect.fnUntraced(function* (endpoint: HttpApiEndpoint.Top) {
      const principal = yield* authenticate(yield* HttpServerRequest.HttpServerRequest).pipe(
        Effect.tapError((refusal) => (isFailed(refusal) ? limits.failure : Effect.void))
      )
      const { actor, scopes } = principal
      const context = yield* RequestContext
      context.actor = actor.actor_id
      yield* limits.management(`${actor.actor_type} ${actor.actor_id}`)
      const required = Option.getOrElse(
        Context.getOption(endpoint.annotations, RequiredScopes),
        () => ["admin"] as const
      )
      const suffice = (needed: ReadonlyArray<ManagementScope>) =>
        scopes.has("admin") || needed.every((scope) => scopes.has(scope))
      if (!suffice(required)) {
        const needed = required.join(", ")
        return yield* refuse(
          "TOKEN_SCOPE_DENIED",
          `The API token lacks a scope that this operation needs: use a token with ${needed}.`,
          needed
        )
      }
      const expandScopes = Context.get(endpoint.annotations, ExpandScopes)
      if (suffice(expandScopes)) return principal
      if (!Object.hasOwn(yield* HttpServerRequest.ParsedSearchParams, "expand")) return principal
      const needed = expandScopes.join(", ")
      return yield* refuse(
        "TOKEN_SCOPE_DENIED",
        `The API token lacks a scope that expand needs: use a token with ${needed}, or leave expand out.`,
        needed
      )
    }, Effect.tapError(challenge))

    return ManagementAuthorization.of({
      ApiToken: (handler, { endpoint, group }) =>
        Effect.flatMap(authorize(endpoint), (principal) => {
          const { actor, product_ids } = principal
          const context = Context.make(CurrentActor, actor).pipe(Context.add(CurrentPrincipal, principal))
          if (product_ids === undefined) return Effect.provideContext(handler, context)
          const limited = Effect.provideContext(handler, Context.add(context, CurrentProducts, product_ids))
          return Effect.andThen(Effect.tapError(guard(endpoint, group, product_ids), challenge), limited)
        })
    })
  })
)

const malformed = () =>
  refuse(
    "TOKEN_MALFORMED",
    "The Authorization header has no valid API token: send it once, whole, as Bearer <API_TOKEN>."
  )

/** Whether the request has a credential that is not valid. */
const isFailed = ({ code }: Refusal): boolean => code !== "TOKEN_MISSING" && statuses[code] === 401

const refusalOf = (key: CachedApiKey, now: number, address: string | undefined) => {
  if (!key.is_active) return refuse("TOKEN_INACTIVE", "The API key is inactive: activate it or use another one.")
  if (key.expires_at !== undefined && key.expires_at <= now) {
    return refuse("TOKEN_EXPIRED", "The API key has expired: use another one.")
  }
  return admits(key, address)
    ? undefined
    : refuse(
        "TOKEN_ADDRESS_BLOCKED",
        "The API key may not be used from this address: add it to allowed_cidrs, or use another key.",
        address
      )
}

/** Whether the key may be used from an address. An unknown address is in no network. */
const admits = ({ networks }: CachedApiKey, address: string | undefined): boolean => {
  if (networks.length === 0) return true
  const parsed = NetAddress.ipFromString(address ?? "")
  if (Result.isFailure(parsed)) return false
  // A dual-stack socket reports IPv4 clients as ::ffff:a.b.c.d.
  const canonical = NetAddress.toCanonical(parsed.success)
  return networks.some((network) => IpNetwork.contains(network, canonical))
}

/** Sets the WWW-Authenticate header of a refusal (RFC 6750, section 3). */
const challenge = ({ code, detail }: Refusal) => {
  if (statuses[code] !== 401 && code !== "TOKEN_SCOPE_DENIED") return Effect.void
  const error =
    code === "TOKEN_SCOPE_DENIED"
      ? `, error="insufficient_scope"${detail === "product_ids" ? "" : `, scope="${detail?.replaceAll(",", "")}"`}`
      : code === "TOKEN_MISSING"
        ? ""
        : ', error="invalid_token"'
  return HttpEffect.appendPreResponseHandler((_request, response) =>
    Effect.succeed(HttpServerResponse.setHeader(response, "www-authenticate", `Bearer realm="licensing"${error}`))
  )
}
