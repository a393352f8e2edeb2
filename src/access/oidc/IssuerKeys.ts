/**
 * Fetches the OIDC issuer's public keys through its discovery document and caches them. What must stay true: the service fetches at
 * most once in ten seconds, independent of the tokens that it receives. If the issuer becomes unreachable, its keys stay cached for
 * an hour, and only the requests that first notice the failure wait for it. Keys are fetched only from the URL in the issuer's own
 * document (`IssuerDocuments`).
 */
import { Clock, Duration, Effect, Semaphore } from "effect"
import { createLocalJWKSet, importJWK, type JSONWebKeySet, type JWK, type LocalJWKSet } from "jose"
import { IssuerUnreachable, issuerTimeout, makeIssuerDocuments } from "./IssuerDocuments.ts"

/** The keys that tokens are verified with. Each fetch makes a new object. */
export interface KeySet {
  readonly find: LocalJWKSet
  readonly fetchedAt: bigint
}

interface IssuerKeys {
  /** The cached keys, fetched if they are stale. */
  readonly current: Effect.Effect<KeySet, IssuerUnreachable>
  /** Fetches newer keys than these, if enough time has passed; otherwise the same keys. For a token that none of these has signed. */
  newerThan(keys: KeySet): Effect.Effect<KeySet, IssuerUnreachable>
}

// Withdrawn keys are accepted for no longer than this.
const freshNanos = Duration.toNanosUnsafe("10 minutes")
// While the issuer is down, its cached keys stay valid for this long.
const usableNanos = Duration.toNanosUnsafe("1 hour")
// Tokens with invented key ids must not cause a fetch each.
const betweenAttemptsNanos = Duration.toNanosUnsafe("10 seconds")

export const makeIssuerKeys = Effect.fnUntraced(function* (issuer: string) {
  const fetchKeySet = yield* makeFetch(issuer)
  const semaphore = yield* Semaphore.make(1)
  const scope = yield* Effect.scope
  let cached: KeySet | undefined
  let triedAt: bigint | undefined
  let hasFailed = false

  const fetchKeys = Effect.gen(function* () {
    triedAt = yield* Clock.monotonicTimeNanos
    const keys: KeySet = { find: yield* fetchKeySet, fetchedAt: triedAt }
    cached = keys
    hasFailed = false
    return keys
  })

  const mayTry = (now: bigint) => triedAt === undefined || now - triedAt >= betweenAttemptsNanos

  /**
   * Fetches if `isNeeded`, which is evaluated with the permit, because another fiber may have fetched in the meantime. The fetch
   * continues when its client disconnects: otherwise other requests would wait ten seconds for the next one.
   */
  const fetchIf = (isNeeded: (cached: KeySet | undefined, now: bigint) => boolean) =>
    semaphore.withPermit(
      Effect.gen(function* () {
        const now = yield* Clock.monotonicTimeNanos
        if (isNeeded(cached, now) && mayTry(now)) {
          yield* Effect.catch(fetchKeys, (error) => {
            hasFailed = true
            return Effect.logWarning("The OIDC issuer's keys cannot be fetched.", { reason: error.message })
          })
        }
        if (isUsable(cached, now)) return cached
        return yield* new IssuerUnreachable({ message: `The keys of ${issuer} cannot be fetched.` })
      }).pipe(Effect.uninterruptible)
    )

  const needsFetch = (keys: KeySet | undefined, now: bigint) => keys === undefined || now - keys.fetchedAt >= freshNanos
  const current = Effect.flatMap(Clock.monotonicTimeNanos, (now) => {
    if (cached !== undefined && !needsFetch(cached, now)) return Effect.succeed(cached)
    if (!hasFailed || !isUsable(cached, now)) return fetchIf(needsFetch)
    // Fetches in the background, because requests must not wait for an issuer that does not respond.
    const background = mayTry(now) ? Effect.forkIn(Effect.ignore(fetchIf(needsFetch)), scope) : Effect.void
    return Effect.as(background, cached)
  })
  return { current, newerThan: (keys) => fetchIf((current) => current === keys) } satisfies IssuerKeys as IssuerKeys
})

const isUsable = (keys: KeySet | undefined, now: bigint): keys is KeySet =>
  keys !== undefined && now - keys.fetchedAt < usableNanos

/** Makes an effect that fetches the issuer's discovery document, then the keys at its `jwks_uri`. */
const makeFetch = Effect.fnUntraced(function* (issuer: string) {
  const { discovery, json } = yield* makeIssuerDocuments(issuer)
  return Effect.gen(function* () {
    const { jwks_uri } = yield* discovery
    const published = (yield* json(jwks_uri)) as JSONWebKeySet
    yield* Effect.try({
      try: () => createLocalJWKSet(published),
      catch: () => new IssuerUnreachable({ message: `${jwks_uri} is not a list of keys.` })
    })
    const keys = yield* Effect.filter(published.keys, isUsableKey)
    return createLocalJWKSet({ keys })
  }).pipe(Effect.timeout(issuerTimeout), Effect.withSpan("IssuerKeys.fetch"))
})

/** The one algorithm per key type that tokens may be signed with. */
const algorithms = new Map<string | undefined, string>([
  ["RSA", "RS256"],
  ["EC", "ES256"],
  ["OKP", "EdDSA"]
])
const modulusBitsMin = 2_048

/** Filters keys that cannot verify tokens. A token with an unusable key is refused like one with an unknown key. */
const isUsableKey = (key: JWK): Effect.Effect<boolean> =>
  Effect.tryPromise(() => importJWK(key, algorithms.get(key.kty) ?? "none")).pipe(
    Effect.map((imported) => {
      const { modulusLength = modulusBitsMin } = ("algorithm" in imported ? imported.algorithm : {}) as {
        modulusLength?: number
      }
      return modulusLength >= modulusBitsMin
    }),
    Effect.catch((error) => Effect.as(Effect.logDebug("A key of the OIDC issuer is left out.", error), false))
  )
