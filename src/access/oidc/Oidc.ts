/**
 * Bearer tokens of an OIDC issuer: JWTs (RFC 7519) that it has signed for this service's audience. Only asymmetric algorithms
 * are accepted, independent of a token's header. Times are checked with the service's clock and a minute's leeway. Scopes that
 * this service does not know are ignored. Without a configured issuer every JWT is refused.
 */

import { Clock, Context, Effect, Layer } from "effect"
import { errors, type JWTPayload, type JWTVerifyGetKey, type JWTVerifyResult, jwtVerify } from "jose"
import { type Refusal, refuse } from "../../contract/api/Failure.ts"
import { scanJson } from "../../contract/api/json/JsonScan.ts"
import { isStorable } from "../../contract/api/Text.ts"
import { latest } from "../../contract/api/Timestamp.ts"
import { Settings } from "../../platform/config/Config.ts"
import type { Principal, ProductIds } from "../CurrentActor.ts"
import { ManagementScope } from "../Scope.ts"
import { type KeySet, makeIssuerKeys } from "./IssuerKeys.ts"

type OidcRefusal = Refusal<"TOKEN_MALFORMED" | "TOKEN_INVALID" | "TOKEN_EXPIRED" | "NOT_READY">

export class Oidc extends Context.Service<
  Oidc,
  {
    /** The principal of a JWT. */
    authenticate(token: string): Effect.Effect<Principal, OidcRefusal>
  }
>()("licensing/access/oidc/Oidc") {
  static readonly layer = Layer.effect(
    Oidc,
    Effect.gen(function* () {
      const { oidcAudience, oidcIssuer, oidcProductsClaim, oidcScopeClaim } = yield* Settings
      if (oidcIssuer === undefined || oidcAudience === undefined)
        return Oidc.of({ authenticate: () => Effect.fail(malformed) })
      const keys = yield* makeIssuerKeys(oidcIssuer)
      const check = verifier(oidcIssuer, oidcAudience)

      const authenticate = Effect.fn("Oidc.authenticate")(
        function* (token: string) {
          if (!shape.test(token) || mayHaveNameWithBackslash(token)) return yield* malformed
          const current = yield* keys.current
          const payload = yield* Effect.catchIf(check(token, current), isOfUnknownKey, (error) =>
            Effect.flatMap(keys.newerThan(current), (newer) =>
              newer === current ? Effect.fail(error) : check(token, newer)
            )
          )
          return yield* principalOf(payload, { scopes: oidcScopeClaim, products: oidcProductsClaim })
        },
        Effect.catchTag("IssuerUnreachable", () => Effect.fail(unreachable)),
        Effect.catchIf((error): error is errors.JOSEError => error instanceof errors.JOSEError, refusalOf)
      )
      return Oidc.of({ authenticate })
    })
  )
}

const malformed = refuse(
  "TOKEN_MALFORMED",
  "The Authorization header holds no API token: send it once, whole, as Bearer <API_TOKEN>."
)
const invalid = refuse("TOKEN_INVALID", "The bearer token was not issued for this service: get another one.")
const expired = refuse("TOKEN_EXPIRED", "The bearer token has expired: get another one.")
const unreachable = refuse(
  "NOT_READY",
  "The issuer of bearer tokens cannot be reached: send the request again in a moment."
)

/** Three parts in base64url. The signature of an unsigned token is empty. */
const shape = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$/

/** Such tokens would trigger the fault of `JSON.parse` (`JsonText`), because the library parses before it verifies. */
const mayHaveNameWithBackslash = (token: string): boolean =>
  token.split(".", 2).some((part) => {
    const { exceeded, withBackslash } = scanJson(Buffer.from(part, "base64url"), Number.POSITIVE_INFINITY)
    return (exceeded ?? withBackslash) !== undefined
  })

const algorithms = ["RS256", "ES256", "EdDSA", "Ed25519"]
/** Older issuers use JWT for every token; RFC 9068 defines at+jwt for access tokens. */
const accessTokenType = "at+jwt"
const types = new Set<unknown>(["jwt", accessTokenType])
const leewaySeconds = 60
/** Characters of the longest subject (OpenID Connect Core, section 2). */
const subjectMax = 255
/** Keys that a token without a key id is verified with. An issuer publishes two while it rotates them. */
const candidatesMax = 8
/** As many as an API key can have. */
const productsMax = 100

const verifier = (issuer: string, audience: string) =>
  Effect.fnUntraced(function* (token: string, keys: KeySet) {
    const currentDate = new Date(yield* Clock.currentTimeMillis)
    const options = { algorithms, issuer, audience, requiredClaims: ["exp", "sub"], clockTolerance: leewaySeconds }
    const verify = (key: JWTVerifyGetKey): Verified =>
      Effect.tryPromise({
        try: () => jwtVerify(token, key, { ...options, currentDate }),
        catch: (error) => error
      }).pipe(Effect.catch((error) => (error instanceof errors.JOSEError ? Effect.fail(error) : Effect.die(error))))
    const { payload, protectedHeader } = yield* Effect.catchIf(
      verify(keys.find),
      (error) => error instanceof errors.JWKSMultipleMatchingKeys,
      (several) => verifyWithEach(several, verify)
    )
    return isAccessToken(protectedHeader.typ, payload) ? payload : yield* invalid
  })

/** Whether a newer key may have signed the token. One without a key id fails with the signature. */
const isOfUnknownKey = (error: unknown) =>
  error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWSSignatureVerificationFailed

type Verified = Effect.Effect<JWTVerifyResult, errors.JOSEError>

/** Verifies a token without a key id with one key after the other. The first one that has signed it decides. */
const verifyWithEach = (
  several: errors.JWKSMultipleMatchingKeys,
  verify: (key: JWTVerifyGetKey) => Verified
): Verified =>
  Effect.flatMap(
    Effect.promise(() => Array.fromAsync(several)),
    (candidates) =>
      candidates
        .slice(0, candidatesMax)
        .reduce<Verified>(
          (before, key) =>
            Effect.catch(before, (error) =>
              error === several || error instanceof errors.JWSSignatureVerificationFailed
                ? verify(() => key)
                : Effect.fail(error)
            ),
          Effect.fail(several)
        )
  )

/**
 * Whether the type in a token's header allows an access token, as one without a type does, and the token is no ID token. An ID token
 * identifies a user and grants no access, but it has the right audience where that is the client's id.
 */
const isAccessToken = (headerType: unknown, { at_hash, c_hash, nonce, s_hash, typ }: JWTPayload): boolean => {
  const type = typeof headerType === "string" ? headerType.toLowerCase().replace(/^application\//, "") : headerType
  if (type !== undefined && !types.has(type)) return false
  // Only ID tokens have these (OpenID Connect Core, 3.3.2.11; FAPI 1.0, part 2, 5.1), or this type at Keycloak.
  if (at_hash !== undefined || c_hash !== undefined || s_hash !== undefined || typ === "ID") return false
  // The nonce of a sign-in is returned in its ID token. Keycloak before 25 repeats it in access tokens, which say what they are.
  return nonce === undefined || type === accessTokenType || typ === "Bearer"
}

const refusalOf = (error: errors.JOSEError): Effect.Effect<never, OidcRefusal> => {
  const isMalformed = error instanceof errors.JWSInvalid || error instanceof errors.JWTInvalid
  const refusal: OidcRefusal = isMalformed ? malformed : error instanceof errors.JWTExpired ? expired : invalid
  return Effect.andThen(
    Effect.logDebug("An OIDC token was refused.", { reason: error.message }),
    Effect.fail<OidcRefusal>(refusal)
  )
}

/** The names of the configured claims. */
interface Claims {
  readonly scopes: string
  readonly products: string | undefined
}

const principalOf = (payload: JWTPayload, claims: Claims): Effect.Effect<Principal, OidcRefusal> => {
  const { cnf, sub } = payload
  const isSubject = typeof sub === "string" && sub !== "" && sub.length <= subjectMax && isStorable(sub)
  // A token that is bound to its holder's key (RFC 7800) must not be accepted as a bearer token.
  const isBound = cnf !== undefined
  const products = claims.products === undefined ? undefined : productsOf(payload[claims.products])
  if (!isSubject || isBound || products === "unusable") return Effect.fail(invalid)
  const scopes = scopesOf(payload[claims.scopes])
  const name = nameOf(payload) ?? sub
  return Effect.succeed({
    actor: { actor_type: "oidc_subject", actor_id: sub, actor_name: name },
    name,
    // As of API keys, the scope admin has no limit.
    scopes: products === undefined ? scopes : scopes.difference(new Set(["admin"])),
    expires_at: expiryOf(payload),
    product_ids: products
  })
}

/** An expiry after the year 9999 is none: no date-time can say it. */
const expiryOf = ({ exp = Number.POSITIVE_INFINITY }: JWTPayload): number | undefined =>
  exp * 1_000 > latest ? undefined : exp * 1_000

/** The subject's name from the issuer (OpenID Connect Core, section 5.1), limited in length. */
const nameOf = ({ email, name, preferred_username }: JWTPayload): string | undefined =>
  [name, preferred_username, email]
    .flatMap((claim) => (typeof claim === "string" && claim !== "" && isStorable(claim) ? [claim] : []))[0]
    ?.slice(0, subjectMax)
    .toWellFormed()

/** The scopes that this service knows. */
const scopesOf = (claim: unknown): ReadonlySet<ManagementScope> => {
  const claimed = listOf(claim) ?? []
  return new Set(ManagementScope.literals.filter((scope) => claimed.includes(scope)))
}

/** The products of a token; undefined: all. A claim that cannot be read must not mean all. */
const productsOf = (claim: unknown): ProductIds | "unusable" => {
  if (claim === undefined) return undefined
  const ids = listOf(claim)?.filter((id) => id !== "")
  const isUsable = ids !== undefined && ids.length <= productsMax && ids.every(isId)
  return isUsable ? [...new Set(ids)] : "unusable"
}

const isId = (id: unknown): id is string => typeof id === "string" && isStorable(id)

/** A space-separated text (RFC 8693, section 4.2) or an array. */
const listOf = (claim: unknown): ReadonlyArray<unknown> | undefined =>
  typeof claim === "string" ? claim.split(" ") : Array.isArray(claim) ? claim : undefined
