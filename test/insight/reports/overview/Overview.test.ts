/** The overview over HTTP. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Refusals } from "../../../../src/insight/activities/Refusals.ts"
import type { Overview } from "../../../../src/insight/reports/model/Overview.ts"
import { layerActivities } from "../../../support/http/Activities.ts"
import { assertAnswered, assertRefused } from "../../../support/http/Http.ts"
import { codeOf, issue, makeMetered } from "../../../support/http/IssuedLicenses.ts"
import { makeProduct } from "../../../support/http/ProductTokens.ts"
import { TestServer } from "../../../support/http/TestServer.ts"

const day = 86_400_000

const request = Effect.fnUntraced(function* (query: string) {
  const { send } = yield* TestServer
  return yield* send({ path: `/api/v1/reports/overview?${query}` })
})

/** Moves the service's time on to the next noon, so that all that a test does falls into one hour and one day. */
const untilNoon = Effect.gen(function* () {
  const { advance, send } = yield* TestServer
  const { meta } = (yield* send({ path: "/health" })).json as { readonly meta: { readonly timestamp: string } }
  const now = Date.parse(meta.timestamp)
  const noon = Math.ceil((now + day / 2) / day) * day - day / 2
  yield* advance(Math.ceil((noon - now) / 1_000))
  return noon
})

/** The figures of the whole period of a report with one bucket that is not empty, which is the last but one or the last. */
const current = Effect.fnUntraced(function* (query: string) {
  const answer = yield* request(query)
  assertAnswered(answer, 200)
  const { data } = answer.json as { readonly data: Overview }
  const [last] = data.buckets.filter(({ licenses_created }) => licenses_created > 0)
  return { data, last: last! }
})

layer(layerActivities({ rateRuntime: 0 }), { timeout: 60_000 })("The overview", (it) => {
  it.effect("shows what happened under a product, and what holds now", () =>
    Effect.gen(function* () {
      const { pass } = yield* Refusals
      const noon = yield* untilNoon
      const { id, product_id, runtime } = yield* issue({ max_activations: 1, max_floating_users: 2 })
      yield* runtime.activate({ payload: { fingerprint: "A" } })
      yield* runtime.checkout({ payload: { fingerprint: "S" } })
      for (const fingerprint of ["B", "C"])
        assert.strictEqual(yield* codeOf(runtime.activate({ payload: { fingerprint } })), "ACTIVATION_LIMIT_REACHED")
      assert.strictEqual(yield* codeOf(runtime.validate({ payload: { fingerprint: "X" } })), "DEVICE_NOT_FOUND")
      yield* pass
      const metered = yield* makeMetered
      yield* metered.consume("exports", 7, "one")
      yield* metered.consume("exports", 5, "two")
      const { data, last } = yield* current(`product_id=${product_id}`)
      assert.strictEqual(data.product_id, product_id)
      assert.isAtLeast(data.buckets.length, 30)
      assert.deepInclude(last, {
        licenses_created: 1,
        licenses_expired: 0,
        licenses_active: 1,
        licenses_expiring: 1,
        activations: 1,
        seats_peak: 1,
        consumption: [],
        refusals: { ACTIVATION_LIMIT_REACHED: 2, DEVICE_NOT_FOUND: 1 }
      })
      for (const bucket of data.buckets.filter((bucket) => bucket !== last))
        assert.deepInclude(bucket, { licenses_created: 0, activations: 0, consumption: [], refusals: {} })
      const other = yield* current(
        `product_id=${metered.product.id}&bucket=1h&from=${new Date(noon - day / 2).toISOString()}`
      )
      assert.deepInclude(other.last, {
        licenses_created: 1,
        licenses_active: 1,
        licenses_expiring: 0,
        refusals: {},
        consumption: [{ feature_code: "exports", consumed: 12, consumptions: 2 }]
      })
      const all = yield* current("tz=Asia/Kathmandu")
      assert.deepInclude(all.last, { licenses_created: 2, licenses_active: 2, activations: 2, seats_peak: 1 })
      assert.deepStrictEqual(all.last.consumption, other.last.consumption)
      assert.notProperty(all.data, "product_id")
      assert.isString(id)
    })
  )

  it.effect("counts renewals of maintenance", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      yield* untilNoon
      const product = yield* makeProduct
      const policy = yield* client.policies.create({
        params: { id: product.id },
        payload: { name: "Forever", code: "forever", license_type: "perpetual", maintenance_days: 1 }
      })
      const { license } = yield* client.licenses.create({ payload: { product_id: product.id, policy_id: policy.id } })
      yield* client.licenses.renewMaintenance({
        params: { id: license.id },
        headers: { "idempotency-key": license.id },
        payload: { extend_by_days: 1 }
      })
      const { last } = yield* current(`product_id=${product.id}`)
      assert.deepInclude(last, { maintenance_renewed: 1, maintenance_expired: 0 })
    })
  )

  it.effect("refuses unknown products and zones, wrong periods and too many buckets", () =>
    Effect.gen(function* () {
      assertRefused(yield* request("product_id=prod_none"), 404, "NOT_FOUND", "product_id")
      assertRefused(yield* request("tz=Moon/Crater"), 400, "INVALID_QUERY", "tz")
      assertRefused(yield* request("bucket=1w"), 400, "INVALID_QUERY", "bucket")
      assertRefused(yield* request("customer_id=x"), 400, "INVALID_QUERY", "customer_id")
      assertRefused(yield* request("from=2030-01-02T00:00:00Z&to=2030-01-01T00:00:00Z"), 400, "INVALID_QUERY", "to")
      const long = "from=2020-01-01T00:00:00Z&to=2020-04-01T00:00:00Z"
      assertRefused(yield* request(`${long}&bucket=1h`), 400, "INVALID_QUERY", "bucket")
      assertAnswered(yield* request(long), 200)
    })
  )

  it.effect("has a bucket for each day of a zone with daylight saving time", () =>
    Effect.gen(function* () {
      const query = "from=2025-03-28T23:00:00Z&to=2025-03-31T22:00:00Z&tz=Europe/Zurich"
      const { data } = (yield* request(query)).json as { readonly data: Overview }
      assert.deepStrictEqual(
        data.buckets.map(({ bucket_start }) => bucket_start as unknown as string),
        ["2025-03-28T23:00:00.000Z", "2025-03-29T23:00:00.000Z", "2025-03-30T22:00:00.000Z"]
      )
    })
  )
})
