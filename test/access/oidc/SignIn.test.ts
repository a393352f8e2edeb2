import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { SignIn } from "../../../src/access/oidc/SignIn.ts"
import { Settings } from "../../../src/platform/config/Config.ts"
import { audience, Issuer } from "../../support/http/Authentication.ts"

const makeSignIn = Effect.fnUntraced(function* (consoleClientId: string | undefined) {
  const { url } = yield* Issuer
  const settings = Settings.layerTest({
    oidcIssuer: url,
    oidcAudience: audience,
    consoleClientId,
    consoleParameters: [["resource", audience]]
  })
  return Context.get(yield* Layer.build(Layer.fresh(SignIn.layer).pipe(Layer.provide(settings))), SignIn)
})

layer(Issuer.layer)("The ways to sign in to the console", (it) => {
  it.effect("are API tokens only, unless the console is known to the issuer", () =>
    Effect.gen(function* () {
      const { tokenOrigin, ways } = yield* makeSignIn(undefined)
      assert.deepStrictEqual([yield* ways, yield* tokenOrigin], [{}, undefined])
    })
  )

  it.effect("are the issuer's addresses as it names them, and nothing secret", () =>
    Effect.gen(function* () {
      const { url } = yield* Issuer
      const { tokenOrigin, ways } = yield* makeSignIn("console")
      const { issuer, provider } = yield* ways
      assert.strictEqual(issuer, url)
      assert.deepInclude(provider, {
        client_id: "console",
        scope: "openid",
        parameters: [["resource", audience]],
        authorization_endpoint: `${url}/auth`,
        token_endpoint: `${url}/token`
      })
      assert.strictEqual(yield* tokenOrigin, url)
    })
  )

  it.effect("are without the issuer's addresses while it is down, whose token endpoint stays known", () =>
    Effect.gen(function* () {
      const { start, stop, url } = yield* Issuer
      yield* stop
      const { tokenOrigin, ways } = yield* makeSignIn("console")
      assert.deepStrictEqual([yield* ways, yield* tokenOrigin], [{ issuer: url }, undefined])
      yield* start
      assert.notProperty(yield* ways, "provider", "asked at most once in ten seconds")
      yield* TestClock.adjust("10 seconds")
      assert.property(yield* ways, "provider")
      yield* stop
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual([yield* ways, yield* tokenOrigin], [{ issuer: url }, url])
      yield* start
    })
  )

  it.effect("are known although the client that asked first has gone", () =>
    Effect.gen(function* () {
      const { pretend, url } = yield* Issuer
      const asked = yield* Deferred.make<() => void>()
      yield* pretend((_, response) =>
        Deferred.doneUnsafe(
          asked,
          Effect.succeed(() =>
            response.end(
              JSON.stringify({
                issuer: url,
                jwks_uri: `${url}/jwks`,
                authorization_endpoint: `${url}/auth`,
                token_endpoint: `${url}/token`
              })
            )
          )
        )
      )
      const { ways } = yield* makeSignIn("console")
      const first = yield* Effect.forkChild(ways)
      const answer = yield* Deferred.await(asked)
      const gone = yield* Effect.forkChild(Fiber.interrupt(first), { startImmediately: true })
      answer()
      yield* Fiber.join(gone)
      assert.property(yield* ways, "provider")
      yield* pretend()
    })
  )

  it.effect("are without the issuer's addresses if it does not answer within five seconds", () =>
    Effect.gen(function* () {
      const { pretend, url } = yield* Issuer
      const asked = yield* Deferred.make<void>()
      yield* pretend(() => Deferred.doneUnsafe(asked, Effect.void))
      const { ways } = yield* makeSignIn("console")
      const waiting = yield* Effect.forkChild(ways)
      yield* Deferred.await(asked)
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* Fiber.join(waiting), { issuer: url })
      yield* pretend()
    })
  )

  it.effect("leave out an issuer that names an unsafe place", () =>
    Effect.gen(function* () {
      const { pretend, url } = yield* Issuer
      yield* pretend((_, response) =>
        response.end(
          JSON.stringify({
            issuer: url,
            jwks_uri: `${url}/jwks`,
            authorization_endpoint: `${url}/auth`,
            token_endpoint: "http://token.example.com/"
          })
        )
      )
      const { ways } = yield* makeSignIn("console")
      assert.deepStrictEqual(yield* ways, { issuer: url })
      yield* pretend()
    })
  )
})
