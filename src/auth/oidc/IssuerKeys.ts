/**
 * The public keys of the OIDC issuer, fetched through its discovery document and held. What must stay true: no token makes the
 * service fetch more often than once in ten seconds; an issuer that cannot be reached costs nobody anything while its keys are
 * known, for an hour, but for those who are the first to find it so; and nothing is fetched from anywhere but where the issuer's own
 * document points, without redirects.
 */
import { Clock, Context, Duration, Effect, Layer, Schema, Semaphore, Stream } from "effect"
import { FetchHttpClient, HttpClient } from "effect/http"
import { createLocalJWKSet, importJWK, type JSONWebKeySet, type JWK, type LocalJWKSet } from "jose"
import { issuerAddress } from "../../config/Setting.ts"

/** The keys that tokens are verified with. The same object for as long as nothing was fetched. */
export interface KeySet {
  readonly find: LocalJWKSet
  readonly fetchedAt: bigint
}

class IssuerUnreachable extends Schema.TaggedError<IssuerUnreachable>()("IssuerUnreachable", {
  message: Schema.String
}) {}

interface IssuerKeys {
  /** The keys as they are known. */
  readonly current: Effect.Effect<KeySet, IssuerUnreachable>
  /** Newer keys than those, where it is time to ask for them; else the same. For a token that names an unknown key. */
  newerThan(keys: KeySet): Effect.Effect<KeySet, IssuerUnreachable>
}

// Keys that were taken back are honoured for no longer than this.
const freshNanos = Duration.toNanosUnsafe("10 minutes")
// An issuer that is down must not take us down at once, and not be believed for ever.
const usableNanos = Duration.toNanosUnsafe("1 hour")
// Whoever makes up key ids must not make us ask the issuer for each.
const betweenAttemptsNanos = Duration.toNanosUnsafe("10 seconds")
const patience = "5 seconds"
const documentBytesMax = 262_144

export const makeIssuerKeys = Effect.fnUntraced(function* (issuer: string) {
  const fetched = yield* makeFetch(issuer)
  const semaphore = yield* Semaphore.make(1)
  const scope = yield* Effect.scope
  let held: KeySet | undefined
  let triedAt: bigint | undefined
  let hasFailed = false

  const fetchKeys = Effect.gen(function* () {
    triedAt = yield* Clock.monotonicTimeNanos
    const keys: KeySet = { find: yield* fetched, fetchedAt: triedAt }
    held = keys
    hasFailed = false
    return keys
  })

  const mayTry = (now: bigint) => triedAt === undefined || now - triedAt >= betweenAttemptsNanos

  /** Fetches, unless somebody just has: `isWanted` is asked again once it is our turn. */
  const fetchWhere = (isWanted: (held: KeySet | undefined, now: bigint) => boolean) =>
    semaphore.withPermit(
      Effect.gen(function* () {
        const now = yield* Clock.monotonicTimeNanos
        if (isWanted(held, now) && mayTry(now)) {
          yield* Effect.catch(fetchKeys, (error) => {
            hasFailed = true
            return Effect.logWarning("The OIDC issuer's keys cannot be fetched.", { reason: error.message })
          })
        }
        if (isUsable(held, now)) return held
        return yield* new IssuerUnreachable({ message: `The keys of ${issuer} cannot be fetched.` })
      })
    )

  const isStale = (keys: KeySet | undefined, now: bigint) => keys === undefined || now - keys.fetchedAt >= freshNanos
  const current = Effect.flatMap(Clock.monotonicTimeNanos, (now) => {
    if (held !== undefined && !isStale(held, now)) return Effect.succeed(held)
    if (!hasFailed || !isUsable(held, now)) return fetchWhere(isStale)
    // One that does not answer would have everybody wait for it.
    const behind = mayTry(now) ? Effect.forkIn(Effect.ignore(fetchWhere(isStale)), scope) : Effect.void
    return Effect.as(behind, held)
  })
  return { current, newerThan: (keys) => fetchWhere((known) => known === keys) } satisfies IssuerKeys as IssuerKeys
})

const isUsable = (keys: KeySet | undefined, now: bigint): keys is KeySet =>
  keys !== undefined && now - keys.fetchedAt < usableNanos

const Discovery = Schema.Struct({ issuer: Schema.String, jwks_uri: Schema.String })

/** One look at the issuer: its discovery document, then the keys that it points to. */
const makeFetch = Effect.fnUntraced(function* (issuer: string) {
  const client = Context.get(yield* Layer.build(httpClient), HttpClient.HttpClient)

  const json = Effect.fnUntraced(function* (url: string) {
    const { stream } = yield* client.get(url)
    const chunks: Array<Uint8Array> = []
    let length = 0
    yield* Stream.runForEach(stream, (chunk) => {
      chunks.push(chunk)
      length += chunk.length
      return length <= documentBytesMax
        ? Effect.void
        : Effect.fail(new IssuerUnreachable({ message: `${url} is larger than ${documentBytesMax} bytes.` }))
    })
    return yield* Effect.try({
      try: (): unknown => JSON.parse(Buffer.concat(chunks).toString()),
      catch: () => new IssuerUnreachable({ message: `${url} is no JSON.` })
    })
  })

  return Effect.gen(function* () {
    const found = yield* json(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`)
    const discovery = yield* Schema.decodeUnknownEffect(Discovery)(found)
    if (discovery.issuer !== issuer || issuerAddress(discovery.jwks_uri.split("?", 1)[0]!) === undefined) {
      return yield* new IssuerUnreachable({
        message: `The discovery document of ${issuer} names another issuer or no safe place.`
      })
    }
    const listed = (yield* json(discovery.jwks_uri)) as JSONWebKeySet
    yield* Effect.try({
      try: () => createLocalJWKSet(listed),
      catch: () => new IssuerUnreachable({ message: `${discovery.jwks_uri} is no list of keys.` })
    })
    const keys = yield* Effect.filter(listed.keys, isWhole)
    return createLocalJWKSet({ keys })
  }).pipe(Effect.timeout(patience), Effect.withSpan("IssuerKeys.fetch"))
})

/** The one algorithm of each kind of key that tokens may be signed with. */
const algorithms = new Map<string | undefined, string>([
  ["RSA", "RS256"],
  ["EC", "ES256"],
  ["OKP", "EdDSA"]
])
const modulusBitsMin = 2_048

/** Whether a key can verify anything. A token that names one that cannot is refused like one that names a key that nobody has. */
const isWhole = (key: JWK): Effect.Effect<boolean> =>
  Effect.tryPromise(() => importJWK(key, algorithms.get(key.kty) ?? "none")).pipe(
    Effect.map((made) => {
      const { modulusLength = modulusBitsMin } = ("algorithm" in made ? made.algorithm : {}) as {
        modulusLength?: number
      }
      return modulusLength >= modulusBitsMin
    }),
    Effect.catch((error) => Effect.as(Effect.logDebug("A key of the OIDC issuer is left out.", error), false))
  )

const httpClient = Layer.effect(
  HttpClient.HttpClient,
  Effect.map(HttpClient.HttpClient, HttpClient.filterStatusOk)
).pipe(
  Layer.provide(FetchHttpClient.layer),
  Layer.provide(Layer.succeed(FetchHttpClient.RequestInit, { redirect: "error" }))
)
