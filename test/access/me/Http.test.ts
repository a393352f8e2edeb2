import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { audience, Issuer } from "../../support/http/Authentication.ts"
import { assertAnswered } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const path = "/api/v1/me"

const layerServer = Layer.unwrap(
  Issuer.useSync(({ url }) => TestServer.layerWith({ oidcIssuer: url, oidcAudience: audience }))
).pipe(Layer.provideMerge(Issuer.layer))

layer(layerServer)("The token of a request", (it) => {
  it.effect("is described for an API key with any one scope, by its current name and expiry", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { api_key, token } = yield* client["api-keys"].create({
        payload: { name: "console", scopes: ["device:write"], expires_at: 4_102_444_800_000 }
      })
      const ask = send({ path, headers: { authorization: `Bearer ${token}` } })
      assert.deepStrictEqual(assertAnswered(yield* ask, 200), {
        kind: "api_key",
        id: api_key.id,
        name: "console",
        scopes: ["device:write"],
        expires_at: "2100-01-01T00:00:00.000Z"
      })
      const payload = { name: "back office", scopes: ["report:read", "license:read"] as const, expires_at: null }
      yield* client["api-keys"].update({ params: { id: api_key.id }, payload })
      assert.deepStrictEqual(assertAnswered(yield* ask, 200), {
        kind: "api_key",
        id: api_key.id,
        name: "back office",
        scopes: ["report:read", "license:read"]
      })
    })
  )

  it.effect("is described for an OIDC subject by its claims, also without any scope", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const issuer = yield* Issuer
      const health = yield* send({ path: "/health" })
      const now = Date.parse((health.json as { readonly meta: { readonly timestamp: string } }).meta.timestamp)
      const meOf = Effect.fnUntraced(function* (claims: Record<string, unknown>) {
        const token = yield* issuer.sign(now, { payload: claims })
        const answer = yield* send({ path, headers: { authorization: `Bearer ${token}` } })
        return assertAnswered(answer, 200) as { readonly [field: string]: unknown }
      })
      const named = yield* meOf({
        sub: "u-1",
        scope: "license:read other",
        name: "Ada Byron",
        preferred_username: "ada"
      })
      assert.strictEqual(typeof named["expires_at"], "string")
      assert.deepInclude(named, { kind: "oidc_subject", id: "u-1", name: "Ada Byron", scopes: ["license:read"] })
      assert.deepInclude(yield* meOf({ sub: "u-2", scope: "", preferred_username: "ada" }), { name: "ada", scopes: [] })
      assert.deepInclude(yield* meOf({ sub: "u-3", name: 7 }), { name: "u-3" })
      assert.deepInclude(yield* meOf({ exp: 253_402_300_799 }), { expires_at: "9999-12-31T23:59:59.000Z" })
      // Later than any date-time.
      for (const exp of [253_402_300_800, 1e17, Number.MAX_VALUE])
        assert.notProperty(yield* meOf({ exp }), "expires_at")
      assert.deepInclude(yield* meOf({ sub: "u-4", name: "", email: "ada@example.com" }), { name: "ada@example.com" })
    })
  )
})
