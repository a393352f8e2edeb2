import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { audience, Issuer } from "../../support/http/Authentication.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { idsIn, makeProduct } from "../../support/http/ProductTokens.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const layerServer = Layer.unwrap(
  Issuer.useSync(({ url }) =>
    TestServer.layerWith({
      ...{ oidcIssuer: url, oidcAudience: audience, oidcProductsClaim: "https://example.com/products" },
      rateFailures: 3
    })
  )
).pipe(Layer.provideMerge(Issuer.layer))

layer(layerServer)("A service that accepts tokens of an issuer", (it) => {
  const authorizationFor = Effect.fnUntraced(function* (payload: Record<string, unknown>, nowMillis: number) {
    const token = yield* (yield* Issuer).sign(nowMillis, { payload })
    return { authorization: `Bearer ${token}` }
  })
  const timeOf = Effect.map(
    Effect.flatMap(TestServer, ({ send }) => send({ path: "/health" })),
    ({ json }) => Date.parse((json as { readonly meta: { readonly timestamp: string } }).meta.timestamp)
  )

  it.effect("records their subject as the actor, and accepts API keys too", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const issuer = yield* Issuer
      const headers = { authorization: `Bearer ${yield* issuer.token("product:write")}` }
      const body = { name: "Editor", code: "editor" }
      assertAnswered(yield* send({ method: "POST", path: "/api/v1/products", headers, body }), 201)
      const [event] = (yield* client.events.list({ query: { event_type: "product.created" } })).items
      assert.deepStrictEqual([event?.actor_type, event?.actor_id], ["oidc_subject", "backoffice"])
      assert.strictEqual(event?.actor_name, "backoffice")
      const read = yield* send({ path: "/api/v1/products", headers })
      assertRefused(read, 403, "TOKEN_SCOPE_DENIED", "product:read")
      assert.include(String(read.headers["www-authenticate"]), 'error="insufficient_scope"')
    })
  )

  it.effect("limits a person to the products that the token names", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const [own, other] = [yield* makeProduct, yield* makeProduct]
      const scope = "admin product:read product:write"
      const headers = yield* authorizationFor({ scope, "https://example.com/products": [own.id] }, yield* timeOf)
      const ask = (path: string) => send({ path: `/api/v1${path}`, headers })
      assert.deepStrictEqual(idsIn((yield* ask("/products")).json), [own.id])
      assertRefused(yield* ask(`/products/${other.id}`), 404, "NOT_FOUND")
      assertRefused(yield* ask("/api-keys"), 403, "TOKEN_SCOPE_DENIED")
      assert.deepInclude(assertAnswered(yield* ask("/me"), 200), {
        product_ids: [own.id],
        scopes: ["product:read", "product:write"]
      })
    })
  )

  it.effect("stores responses for each subject separately", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const now = yield* timeOf
      const create = (sub: string) =>
        Effect.flatMap(authorizationFor({ sub }, now), (authorization) =>
          send({
            method: "POST",
            path: "/api/v1/customers",
            headers: { ...authorization, "idempotency-key": "same" },
            body: { name: "C", code: `c-${sub}` }
          })
        )
      const [one, again, other] = [yield* create("one"), yield* create("one"), yield* create("other")]
      assert.strictEqual(again.text, one.text)
      assert.strictEqual(again.headers["idempotency-replayed"], "true")
      assertAnswered(other, 201)
      assert.notProperty(other.headers, "idempotency-replayed")
    })
  )

  it.effect("uses its own clock, and counts tokens that fail", () =>
    Effect.gen(function* () {
      const { advance, send } = yield* TestServer
      const headers = yield* authorizationFor({}, yield* timeOf)
      const ask = send({ path: "/api/v1/products", headers })
      assertAnswered(yield* ask, 200)
      yield* advance(361)
      const expired = yield* ask
      assertRefused(expired, 401, "TOKEN_EXPIRED")
      assert.include(String(expired.headers["www-authenticate"]), 'error="invalid_token"')
      assertRefused(
        yield* send({ path: "/api/v1/products", headers: { authorization: "Bearer a.b.c" } }),
        401,
        "TOKEN_MALFORMED"
      )
      assertRefused(yield* ask, 401, "TOKEN_EXPIRED")
      assertRefused(yield* ask, 429, "RATE_LIMITED")
      const fresh = yield* authorizationFor({}, yield* timeOf)
      assertAnswered(yield* send({ path: "/api/v1/products", headers: fresh }), 200)
    })
  )
})
