/** The overview over time: what is sampled, in which bucket it is shown, and that counting changes no figure. */
import { assert, layer } from "@effect/vitest"
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import type { OverviewFilter } from "../../../../src/insight/reports/model/Overview.ts"
import { OverviewCounts } from "../../../../src/insight/reports/overview/OverviewCounts.ts"
import { overview } from "../../../../src/insight/reports/overview/OverviewReport.ts"
import { OverviewSamples } from "../../../../src/insight/reports/overview/OverviewSamples.ts"
import { checkin, checkout } from "../../../../src/licensing/rules/Floating.ts"
import { suspend } from "../../../../src/licensing/rules/Lifecycle.ts"
import { Settings } from "../../../../src/platform/config/Config.ts"
import { instant } from "../../../../src/platform/postgres/driver/Parameters.ts"
import { Database } from "../../../support/database/Database.ts"
import { fromNoon, makeNode, makeSweeps } from "../../../support/database/LicenseNodes.ts"
import { checkoutOf, leaseCommandOf, storeOne } from "../../../support/database/StoredLicenses.ts"
import { day, minute, noon } from "../../../support/rules/Licenses.ts"

const Workers = Layer.mergeAll(OverviewCounts.layer, OverviewSamples.layer).pipe(Layer.provide(Settings.layerTest()))

const makeWorkers = Effect.map(Layer.build(Layer.fresh(Workers)), (context) => ({
  count: Context.get(context, OverviewCounts).pass,
  sample: Context.get(context, OverviewSamples).pass
}))

const hour = 60 * minute

const read = Effect.fnUntraced(function* (filter: OverviewFilter, products?: ReadonlyArray<string>) {
  const sql = yield* SqlClient.SqlClient
  return yield* overview(sql, filter, products, yield* Clock.currentTimeMillis)
})

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })("An overview", (it) => {
  it.effect("shows active and expiring licenses at the end of each bucket, and seats at their peak", () =>
    fromNoon(
      Effect.gen(function* () {
        const { ask } = yield* makeNode
        const sweeps = yield* makeSweeps
        const { count, sample } = yield* makeWorkers
        yield* storeOne({ license: { expires_at: noon + 25 * hour }, policy: { grace_period_days: 0 } })
        const second = yield* storeOne({ license: { expires_at: noon + 90 * day }, policy: { max_floating_users: 5 } })
        yield* sample
        const seats = [
          yield* ask(second.license, checkout, checkoutOf(second, "a")),
          yield* ask(second.license, checkout, checkoutOf(second, "b"))
        ]
        yield* TestClock.adjust("1 minute")
        yield* sample
        for (const seat of seats) yield* ask(second.license, checkin, leaseCommandOf(second, seat as never) as never)
        // Until the next hour nothing changes; then one license is suspended, and the other expires a day later.
        yield* TestClock.adjust("59 minutes")
        yield* sample
        yield* ask(second.license, suspend, undefined)
        yield* TestClock.adjust("15 minutes")
        yield* sample
        yield* TestClock.adjust("1 day")
        yield* sweeps.expiry
        yield* sample
        yield* TestClock.adjust("30 minutes")
        const hours = yield* read({ bucket: "1h", from: noon - hour, to: noon + 27 * hour })
        const shown = (index: number) => {
          const { licenses_active, licenses_expiring, licenses_expired, seats_peak } = hours.buckets[index]!
          return [licenses_active, licenses_expiring, licenses_expired, seats_peak]
        }
        assert.lengthOf(hours.buckets, 28)
        assert.deepStrictEqual(
          hours.buckets.map(({ bucket_start }) => bucket_start),
          Array.from({ length: 28 }, (_, index) => noon + (index - 1) * hour)
        )
        assert.strictEqual(hours.counted_from, noon)
        // The end of the hour before noon is noon, when both are active.
        assert.deepStrictEqual(shown(0), [2, 1, 0, 0])
        assert.deepStrictEqual(shown(1), [2, 1, 0, 2])
        assert.deepStrictEqual(shown(2), [1, 1, 0, 0])
        // No sample was taken in this hour.
        assert.deepStrictEqual(shown(25), [undefined, undefined, 0, undefined])
        // The hour that contains now is counted now, and those that follow have no number.
        assert.deepStrictEqual(shown(26), [0, 0, 1, 0])
        assert.deepStrictEqual(shown(27), [undefined, undefined, 0, undefined])
        yield* count
        assert.deepStrictEqual(yield* read({ bucket: "1h", from: noon - hour, to: noon + 27 * hour }), hours)
        // A count of the last minute takes the place of a new one.
        yield* storeOne({ license: { expires_at: noon + 90 * day } })
        const now = Effect.map(read({ bucket: "1h" }), ({ buckets }) => buckets.at(-1)!.licenses_active)
        assert.strictEqual(yield* now, 1)
        yield* sample
        yield* storeOne({ license: { expires_at: noon + 90 * day } })
        yield* sample
        assert.strictEqual(yield* now, 1)
        yield* TestClock.adjust("2 minutes")
        yield* sample
        assert.strictEqual(yield* now, 2)
        const [before, , today] = (yield* read({ from: noon - 2 * day })).buckets
        assert.notProperty(before!, "licenses_active")
        assert.deepInclude(today!, { licenses_active: 1, seats_peak: 2 })
      })
    )
  )

  it.effect("shows the most seats taken at once, of a product and of all, however short the time was", () =>
    fromNoon(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const start = noon + 10 * day
        yield* TestClock.setTime(start)
        const { ask } = yield* makeNode
        const { sample } = yield* makeWorkers
        const terms = { license: { expires_at: start + 90 * day }, policy: { max_floating_users: 5 } }
        const [one, other] = [yield* storeOne(terms), yield* storeOne(terms)]
        const [{ product_id }] = (yield* sql<{ readonly product_id: string }>`
          SELECT product_id FROM licenses WHERE id = ${one.license}`) as [{ product_id: string }]
        const take = (of: typeof one, name: string) => ask(of.license, checkout, checkoutOf(of, name))
        const giveBack = (of: typeof one, seat: unknown) =>
          ask(of.license, checkin, leaseCommandOf(of, seat as never) as never)
        const peaks = Effect.fnUntraced(function* (products?: ReadonlyArray<string>) {
          const { buckets } = yield* read({ bucket: "1h", from: start, to: start + 2 * hour }, products)
          return buckets.map(({ seats_peak }) => seats_peak)
        })
        yield* sample
        yield* TestClock.adjust("10 seconds")
        const seats = [yield* take(one, "a"), yield* take(one, "b"), yield* take(one, "c")]
        yield* TestClock.adjust("10 seconds")
        for (const seat of seats) yield* giveBack(one, seat)
        // Of both products there are never more than three at once.
        yield* giveBack(other, yield* take(other, "d"))
        yield* TestClock.adjust("30 seconds")
        yield* sample
        assert.deepStrictEqual(yield* peaks([product_id]), [3, undefined])
        assert.deepStrictEqual(yield* peaks(), [3, undefined])
        // A seat that is taken beyond an hour counts in both.
        yield* TestClock.setTime(start + hour - minute)
        yield* sample
        const later = [yield* take(other, "d"), yield* take(other, "e")]
        yield* TestClock.adjust("80 seconds")
        for (const seat of later) yield* giveBack(other, seat)
        yield* TestClock.adjust("10 seconds")
        yield* sample
        assert.deepStrictEqual(yield* peaks(), [3, 2])
      })
    )
  )

  it.effect("counts each event and refusal once, in the days of any time zone, by product and in all", () =>
    fromNoon(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { count } = yield* makeWorkers
        const one = yield* storeOne({ license: { expires_at: undefined }, policy: { license_type: "perpetual" } })
        const other = yield* storeOne({ license: { expires_at: undefined }, policy: { license_type: "perpetual" } })
        const productOf = Effect.fnUntraced(function* ({ license }: typeof one) {
          const [row] = yield* sql<{ id: string }>`SELECT product_id AS id FROM licenses WHERE id = ${license}`
          return row!.id
        })
        const products = [yield* productOf(one), yield* productOf(other)]
        let number = 1_000_000
        const refuse = (license: string, at: number, code: string) => sql`
          INSERT INTO refusals VALUES (${++number}, ${instant(at)}, 'license.validate', ${license}, NULL, NULL, ${code}, 403, 'req_x', NULL)`
        const activated = (license: string, at: number) => sql`
          INSERT INTO event_log VALUES (${++number}, 'license.activated', 'license', ${license}, 'license', ${license}, NULL, '{}', ${instant(at)})`
        // 23:50 of the day before in Kathmandu (+05:45) is 18:05 in UTC.
        const late = Date.UTC(2030, 0, 13, 18, 5)
        yield* refuse(one.license, late, "LICENSE_EXPIRED")
        yield* refuse(one.license, late + 15 * minute, "LICENSE_EXPIRED")
        yield* refuse(other.license, late, "DEVICE_NOT_ACTIVE")
        yield* activated(one.license, late)
        const day13 = { from: Date.UTC(2030, 0, 13), to: Date.UTC(2030, 0, 15) }
        const refusals = Effect.fnUntraced(function* (filter: OverviewFilter, products?: ReadonlyArray<string>) {
          return (yield* read(filter, products)).buckets.map(({ activations, refusals }) => ({
            activations,
            ...refusals
          }))
        })
        const all = Effect.all([
          refusals(day13),
          refusals({ ...day13, tz: "Asia/Kathmandu" }),
          refusals(day13, [products[1]!]),
          refusals(day13, products),
          refusals({ ...day13, tz: "Europe/Zurich" })
        ])
        const expected = [{ activations: 1, LICENSE_EXPIRED: 2, DEVICE_NOT_ACTIVE: 1 }, { activations: 0 }]
        const shown = yield* all
        assert.deepStrictEqual(shown, [
          expected,
          [
            { activations: 1, LICENSE_EXPIRED: 1, DEVICE_NOT_ACTIVE: 1 },
            { activations: 0, LICENSE_EXPIRED: 1 },
            { activations: 0 }
          ],
          [{ activations: 0, DEVICE_NOT_ACTIVE: 1 }, { activations: 0 }],
          expected,
          [...expected, { activations: 0 }]
        ] as never)
        yield* count
        assert.deepStrictEqual(yield* all, shown)
        yield* refuse(one.license, late, "LICENSE_EXPIRED")
        const [added] = yield* refusals(day13)
        assert.deepStrictEqual(added, { activations: 1, LICENSE_EXPIRED: 3, DEVICE_NOT_ACTIVE: 1 } as never)
        yield* Effect.all([count, count], { concurrency: "unbounded" })
        assert.deepStrictEqual((yield* refusals(day13))[0], added)
      })
    )
  )
})
