/**
 * The ways in which users of the console sign in. What must stay true: the service requests the issuer's document at most once in
 * ten seconds, independent of the requests that it receives, and no request waits longer than the timeout for it.
 */
import { Clock, Context, Duration, Effect, Layer, Semaphore } from "effect"
import { Settings } from "../../platform/config/Config.ts"
import { issuerTimeout, makeIssuerDocuments } from "./IssuerDocuments.ts"
import type { SignInProvider, SignInWays } from "./SignInProvider.ts"

// A failure of the issuer is noticed within a minute, its recovery within ten seconds.
const freshNanos = Duration.toNanosUnsafe("1 minute")
const betweenAttemptsNanos = Duration.toNanosUnsafe("10 seconds")

export class SignIn extends Context.Service<
  SignIn,
  {
    readonly ways: Effect.Effect<SignInWays>
    /** The last known origin of the issuer's token endpoint. The console's page may call it. */
    readonly tokenOrigin: Effect.Effect<string | undefined>
  }
>()("licensing/access/oidc/SignIn") {
  static readonly layer = Layer.effect(
    SignIn,
    Effect.gen(function* () {
      const { consoleClientId, consoleParameters, consoleScopes, oidcIssuer: issuer } = yield* Settings
      if (issuer === undefined || consoleClientId === undefined)
        return SignIn.of({ ways: Effect.succeed({}), tokenOrigin: Effect.undefined })
      const fetched = yield* makeFetch(issuer, {
        client_id: consoleClientId,
        scope: consoleScopes.join(" "),
        parameters: consoleParameters
      })
      const { current, last } = yield* makeCache(fetched)
      return SignIn.of({
        ways: Effect.map(current, (provider) => (provider === undefined ? { issuer } : { issuer, provider })),
        tokenOrigin: Effect.map(
          Effect.suspend(() => (last() === undefined ? current : Effect.succeed(last()))),
          (provider) => (provider === undefined ? undefined : new URL(provider.token_endpoint).origin)
        )
      })
    })
  )
}

/** Makes an effect that fetches the issuer's endpoints. It returns undefined if that fails. */
const makeFetch = Effect.fnUntraced(function* (
  issuer: string,
  own: Pick<SignInProvider, "client_id" | "scope" | "parameters">
) {
  const { discovery } = yield* makeIssuerDocuments(issuer)
  return Effect.map(discovery, ({ issuer: _, jwks_uri: __, authorization_endpoint, token_endpoint, ...others }) =>
    authorization_endpoint === undefined || token_endpoint === undefined
      ? undefined
      : { ...own, ...others, authorization_endpoint, token_endpoint }
  ).pipe(
    Effect.timeout(issuerTimeout),
    Effect.catch((error) =>
      Effect.as(Effect.logWarning("The OIDC issuer cannot be reached.", { reason: error.message }), undefined)
    ),
    Effect.withSpan("SignIn.fetch")
  )
})

const makeCache = Effect.fnUntraced(function* (fetch: Effect.Effect<SignInProvider | undefined>) {
  const semaphore = yield* Semaphore.make(1)
  let latest: SignInProvider | undefined
  let isAvailable = false
  let triedAt: bigint | undefined

  // The attempt continues when its client disconnects: otherwise other requests would wait ten seconds for the next one.
  const ask = Effect.uninterruptible(
    Effect.gen(function* () {
      const now = yield* Clock.monotonicTimeNanos
      if (triedAt === undefined || now - triedAt >= (isAvailable ? freshNanos : betweenAttemptsNanos)) {
        triedAt = now
        const fetched = yield* fetch
        isAvailable = fetched !== undefined
        latest = fetched ?? latest
      }
      return isAvailable ? latest : undefined
    })
  )
  return { current: semaphore.withPermit(ask), last: () => latest }
})
