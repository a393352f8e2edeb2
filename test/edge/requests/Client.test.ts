import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../support/http/TestServer.ts"

layer(TestServer.layer)("The typed client", (it) => {
  it.effect("gives domain values and pages without their envelopes", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const created = yield* client.products.create({ payload: { name: "Editor", code: "editor" } })
      assert.strictEqual(typeof created.created_at, "number")
      assert.deepStrictEqual(yield* client.products.get({ params: { id: created.id } }), created)
      yield* client.products.create({ payload: { name: "Viewer", code: "viewer" } })
      const first = yield* client.products.list({ query: { limit: 1 } })
      assert.deepStrictEqual(
        first.items.map(({ code }) => code),
        ["viewer"]
      )
      const rest = yield* client.products.list({ query: { limit: 1, cursor: first.next! } })
      assert.deepStrictEqual(rest, { items: [created] })
      yield* client.products.delete({ params: { id: created.id } })
    })
  )

  it.effect("fails with the refusal, whoever refuses", () =>
    Effect.gen(function* () {
      const { client, connect } = yield* TestServer
      const codeOf = <A, E, R>(call: Effect.Effect<A, E, R>) =>
        Effect.map(Effect.flip(call), (error) => (error as { readonly code?: string }).code)
      assert.strictEqual(yield* codeOf(client.products.get({ params: { id: "prod_none" } })), "NOT_FOUND")
      yield* client.products.create({ payload: { name: "Twice", code: "twice" } })
      assert.strictEqual(
        yield* codeOf(client.products.create({ payload: { name: "Twice", code: "twice" } })),
        "DUPLICATE_CODE"
      )
      const nobody = yield* connect({ token: "lsm_nobody" })
      assert.strictEqual(yield* codeOf(nobody.products.list({ query: {} })), "TOKEN_MALFORMED")
      const keyless = yield* connect({ licenseKey: "LK-NONE" })
      assert.strictEqual(yield* codeOf(keyless.runtime.check({ payload: { fingerprint: "x" } })), "LICENSE_KEY_INVALID")
    })
  )
})
