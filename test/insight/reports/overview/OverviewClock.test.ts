/** The samples of the overview after the clock was wrong. */
import { assert, layer } from "@effect/vitest"
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { overview } from "../../../../src/insight/reports/overview/OverviewReport.ts"
import { OverviewSamples } from "../../../../src/insight/reports/overview/OverviewSamples.ts"
import { checkout } from "../../../../src/licensing/rules/Floating.ts"
import { Settings } from "../../../../src/platform/config/Config.ts"
import { Database } from "../../../support/database/Database.ts"
import { fromNoon, makeNode } from "../../../support/database/LicenseNodes.ts"
import { checkoutOf, storeOne } from "../../../support/database/StoredLicenses.ts"
import { day, minute, noon } from "../../../support/rules/Licenses.ts"

const Samples = OverviewSamples.layer.pipe(Layer.provide(Settings.layerTest()))
const hour = 60 * minute

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })("The overview's samples", (it) => {
  it.effect("continue at the right time after a clock was a day ahead, and keep nothing of the day ahead", () =>
    fromNoon(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { ask } = yield* makeNode
        const { pass } = Context.get(yield* Layer.build(Layer.fresh(Samples)), OverviewSamples)
        const sampleAt = (time: number) => Effect.andThen(TestClock.setTime(time), pass)
        const shownAt = Effect.fnUntraced(function* (from: number) {
          const now = yield* Clock.currentTimeMillis
          const { buckets, counted_from } = yield* overview(
            sql,
            { bucket: "1h", from, to: from + hour },
            undefined,
            now
          )
          return { counted_from, active: buckets[0]!.licenses_active, seats: buckets[0]!.seats_peak }
        })
        const lasting = { license: { expires_at: noon + 90 * day }, policy: { max_floating_users: 5 } }

        // The first sample of all is a day ahead, and finds two seats taken.
        const first = yield* storeOne(lasting)
        yield* TestClock.setTime(noon + day)
        for (const name of ["a", "b"]) yield* ask(first.license, checkout, checkoutOf(first, name))
        yield* pass
        yield* sampleAt(noon)
        assert.deepStrictEqual(yield* sql`SELECT DISTINCT at FROM license_samples`, [{ at: noon }])
        yield* storeOne(lasting)
        yield* sampleAt(noon + hour)
        yield* TestClock.setTime(noon + 90 * minute)
        assert.deepInclude(yield* shownAt(noon), { counted_from: noon, active: 2 })

        // Another one is a day ahead, in the middle.
        yield* sampleAt(noon + day + hour)
        yield* storeOne(lasting)
        yield* sampleAt(noon + 2 * hour)
        yield* TestClock.setTime(noon + 150 * minute)
        assert.deepInclude(yield* shownAt(noon + hour), { counted_from: noon, active: 3 })

        // The seats have lapsed when the day comes, and its numbers are those of then.
        yield* storeOne(lasting)
        yield* sampleAt(noon + day)
        yield* sampleAt(noon + day + hour)
        yield* TestClock.setTime(noon + day + 90 * minute)
        assert.deepInclude(yield* shownAt(noon + day), { active: 4 })
      })
    )
  )

  it.effect("are kept by a node whose clock is behind by less than a quarter of an hour", () =>
    fromNoon(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { pass } = Context.get(yield* Layer.build(Layer.fresh(Samples)), OverviewSamples)
        yield* TestClock.setTime(noon + 2 * day)
        yield* storeOne({ license: { expires_at: noon + 90 * day } })
        yield* pass
        yield* TestClock.setTime(noon + 2 * day - minute)
        yield* pass
        assert.deepStrictEqual(yield* sql`SELECT max(at) AS at FROM license_samples`, [{ at: noon + 2 * day }])
      })
    )
  )
})
