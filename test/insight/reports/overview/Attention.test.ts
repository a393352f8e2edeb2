/** What needs attention, over HTTP. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Refusals } from "../../../../src/insight/activities/Refusals.ts"
import { layerActivities } from "../../../support/http/Activities.ts"
import { assertRefused } from "../../../support/http/Http.ts"
import { codeOf, issue, makeMetered } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"

const attention = (product_id?: string) =>
  Effect.flatMap(TestServer, ({ client }) =>
    client.reports.attention({ query: product_id === undefined ? {} : { product_id } })
  )

layer(layerActivities({ rateRuntime: 0 }), { timeout: 60_000 })("What needs attention", (it) => {
  it.effect("is a license that was refused three times in a week, with the most frequent reason", () =>
    Effect.gen(function* () {
      const { pass } = yield* Refusals
      const { advance } = yield* TestServer
      const one = yield* issue({ max_activations: 1 })
      const other = yield* issue({ max_activations: 1 })
      for (const { runtime } of [one, other]) yield* runtime.activate({ payload: { fingerprint: "A" } })
      // The first of them is an event, the others are refusals.
      for (const fingerprint of ["B", "C", "D"])
        assert.strictEqual(
          yield* codeOf(one.runtime.activate({ payload: { fingerprint } })),
          "ACTIVATION_LIMIT_REACHED"
        )
      assert.strictEqual(yield* codeOf(one.runtime.validate({ payload: { fingerprint: "X" } })), "DEVICE_NOT_FOUND")
      for (const fingerprint of ["X", "Y"])
        assert.strictEqual(yield* codeOf(other.runtime.validate({ payload: { fingerprint } })), "DEVICE_NOT_FOUND")
      yield* pass
      const { refused_licenses } = yield* attention()
      assert.deepStrictEqual(
        refused_licenses.map(({ code, license_id, refusals }) => [license_id, refusals, code]),
        [[one.id, 4, "ACTIVATION_LIMIT_REACHED"]]
      )
      assert.strictEqual((yield* attention(one.product_id)).refused_licenses.length, 1)
      assert.deepStrictEqual((yield* attention(other.product_id)).refused_licenses, [])
      yield* advance(8 * 86_400)
      const later = yield* attention()
      assert.deepStrictEqual(later.refused_licenses, [])
      assert.isAbove(later.refusals_from, refused_licenses[0]!.last_refused_at)
    })
  )

  it.effect("is a quota that is nearly used up now, the fullest first", () =>
    Effect.gen(function* () {
      const { advance, client } = yield* TestServer
      const { consume, license, product } = yield* makeMetered
      const near = Effect.map(attention(product.id), ({ near_quotas }) =>
        near_quotas.map(({ feature_code, quota, remaining }) => [feature_code, quota, remaining])
      )
      yield* consume("exports", 799, "one")
      assert.deepStrictEqual(yield* near, [])
      yield* consume("exports", 1, "two")
      yield* consume("renders", 900, "three")
      assert.deepStrictEqual(yield* near, [
        ["renders", 1_000, 100],
        ["exports", 1_000, 200]
      ])
      const reset = (payload: object) =>
        client.licenses.resetUsage({ params: { id: license.id }, payload: { feature_code: "renders", ...payload } })
      yield* reset({ add_credits: 2_000 })
      assert.deepStrictEqual(yield* near, [["exports", 1_000, 200]])
      // A new period begins by the clock, before a worker records it.
      const { items } = yield* client.licenses.listFeatures({ params: { id: license.id }, query: {} })
      const { feature_id } = items.find(({ feature_code }) => feature_code === "exports")!
      yield* client.licenses.assignFeature({ params: { id: license.id }, payload: { feature_id, reset_period: "day" } })
      assert.deepStrictEqual(yield* near, [["exports", 1_000, 200]])
      yield* advance(86_400)
      assert.deepStrictEqual(yield* near, [])
      yield* consume("exports", 1_000, "four")
      assert.deepStrictEqual(yield* near, [["exports", 1_000, 0]])
      yield* client.licenses.suspend({ params: { id: license.id } })
      assert.deepStrictEqual(yield* near, [])
    })
  )

  it.effect("is only that of a token's products", () =>
    Effect.gen(function* () {
      const { client, connect } = yield* TestServer
      const [own, other] = [yield* makeMetered, yield* makeMetered]
      for (const { consume } of [own, other]) yield* consume("exports", 900, "one")
      const { token } = yield* client["api-keys"].create({
        payload: { name: "own", scopes: ["report:read"], product_ids: [own.product.id] }
      })
      const limited = yield* connect({ token })
      const { near_quotas } = yield* limited.reports.attention({ query: {} })
      assert.deepStrictEqual(
        near_quotas.map(({ license_id }) => license_id),
        [own.license.id]
      )
      assert.strictEqual(
        yield* codeOf(limited.reports.attention({ query: { product_id: other.product.id } })),
        "NOT_FOUND"
      )
    })
  )

  it.effect("has no other parameters", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      assertRefused(yield* send({ path: "/api/v1/reports/attention?tz=UTC" }), 400, "INVALID_QUERY", "tz")
      assertRefused(yield* send({ path: "/api/v1/reports/attention?product_id=none" }), 404, "NOT_FOUND", "product_id")
    })
  )
})
