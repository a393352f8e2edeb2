/** The sweep of periods on a database: one step for any number of periods, once, in bounded batches, beside clients. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { activate } from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { withPeriods } from "../../../src/licensing/rules/UsagePeriods.ts"
import { Database } from "../../support/database/Database.ts"
import { fromNoon, twoNodes } from "../../support/database/LicenseNodes.ts"
import { requestOf, storeMany } from "../../support/database/StoredLicenses.ts"
import { assignmentOf, day, featureOf, noon, type RowsInput } from "../../support/rules/Licenses.ts"

const source = { license: { created_at: noon }, subscription: undefined }

const daily = (given: RowsInput = {}): RowsInput => ({
  license: { created_at: noon, expires_at: undefined },
  policy: { license_type: "consumption", max_activations: 0 },
  features: [featureOf("api"), featureOf("export")],
  assignments: [
    withPeriods(
      assignmentOf("api", { max_consumptions: 10, total_consumptions: 7, reset_period: "day", rollover_max: 4 }),
      source,
      noon
    ),
    withPeriods(
      assignmentOf("export", { max_consumptions: 5, total_consumptions: 0, reset_period: "month" }),
      source,
      noon
    )
  ],
  ...given
})

interface Closing {
  readonly license: string
  readonly code: string
  readonly periods: number
  readonly consumed: number
}

/** The events and the ledger rows of the ends of periods must be the same. */
const closings = Effect.fnUntraced(function* (licenses: ReadonlyArray<{ readonly license: string }>) {
  const sql = yield* SqlClient.SqlClient
  const ids = licenses.map(({ license }) => license)
  const events = yield* sql<Closing>`
    SELECT resource_id AS license, metadata->>'feature_code' AS code, (metadata->>'periods')::int AS periods,
      (metadata->>'consumed')::int AS consumed
    FROM events WHERE event_type = 'usage.period_closed' AND resource_id IN ${sql.in(ids)} ORDER BY sequence`
  const [rows] = yield* sql<{ readonly count: number; readonly consumed: number }>`
    SELECT count(*)::int AS count, coalesce(sum(-amount), 0)::int AS consumed FROM usage_ledger
    WHERE action = 'period_reset' AND license_id IN ${sql.in(ids)}`
  const consumed = events.reduce((sum, event) => sum + event.consumed, 0)
  assert.deepStrictEqual(rows, { count: events.length, consumed })
  return events
})

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })("The sweep of periods", (it) => {
  it.effect("closes a year of skipped periods in one step, and a second pass does nothing", () =>
    fromNoon(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const licenses = yield* storeMany(120, daily())
        // Before the nodes begin: their timers would all pass in this year.
        yield* TestClock.setTime(noon + 365 * day)
        const { sweeps } = yield* twoNodes
        yield* sweeps[0].period
        const closed = yield* closings(licenses)
        assert.strictEqual(closed.length, 240)
        for (const { code, consumed, periods } of closed)
          assert.deepStrictEqual([periods, consumed], code === "api" ? [365, 7] : [12, 0])
        const rows = yield* sql`
          SELECT DISTINCT feature.code, a.total_consumptions::int, a.rolled_over::int, a.resets_at
          FROM license_features a JOIN features feature ON feature.id = a.feature_id
          WHERE a.license_id IN ${sql.in(licenses.map(({ license }) => license))} ORDER BY feature.code`
        assert.deepStrictEqual(
          rows.map((row) => [row["total_consumptions"], row["rolled_over"]]),
          [
            [0, 4],
            [0, null]
          ]
        )
        yield* Effect.all([sweeps[0].period, sweeps[1].period], { concurrency: "unbounded" })
        assert.strictEqual((yield* closings(licenses)).length, 240)
        const batches = yield* sql<{ readonly licenses: number }>`
          SELECT count(*)::int AS licenses FROM licenses WHERE id IN ${sql.in(licenses.map(({ license }) => license))}
          GROUP BY xmin`
        assert.isAtLeast(batches.length, 3)
        assert.isAtMost(Math.max(...batches.map((batch) => batch.licenses)), 50)
      })
    )
  )

  it.effect("interrupted in the middle, loses nothing and repeats nothing", () =>
    fromNoon(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { sweeps } = yield* twoNodes
        const licenses = yield* storeMany(200, daily())
        yield* TestClock.setTime(noon + 3 * day)
        const pass = yield* Effect.forkChild(sweeps[0].period)
        const begun = sql<{ readonly has: boolean }>`
          SELECT EXISTS (SELECT FROM events WHERE event_type = 'usage.period_closed'
            AND resource_id IN ${sql.in(licenses.map(({ license }) => license))}) AS has`
        yield* Effect.repeat(begun, { until: ([row]) => row!.has })
        yield* Fiber.interrupt(pass)
        yield* sweeps[1].period
        const closed = yield* closings(licenses)
        assert.strictEqual(closed.length, 200)
        assert.strictEqual(new Set(closed.map(({ license }) => license)).size, 200)
        assert.isTrue(closed.every(({ periods }) => periods === 3))
      })
    )
  )

  it.effect("and clients on two nodes close each period once, and count each consumption in one period", () =>
    fromNoon(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { nodes, sweeps } = yield* twoNodes
        const licenses = yield* storeMany(12, daily())
        for (const license of licenses)
          yield* nodes[0].ask(license.license, activate, {
            ...requestOf(license, "m"),
            newDeviceId: `dev_${license.license}`
          })
        let consumed = 12 * 7
        for (let round = 1; round <= 6; round++) {
          yield* TestClock.setTime(noon + round * day)
          const use = (at: number) =>
            Effect.forEach(
              licenses,
              (license) =>
                nodes[at]!.ask(license.license, consume, {
                  ...{ ...requestOf(license, "m"), feature_code: "api", event_id: `e${round}-${at}` },
                  amount: 1 + at
                }),
              { concurrency: "unbounded" }
            )
          yield* Effect.all([use(0), sweeps[0].period, use(1), sweeps[1].period], { concurrency: "unbounded" })
          consumed += 12 * 3
        }
        const closed = yield* closings(licenses)
        assert.strictEqual(closed.length, 12 * 6)
        assert.isTrue(closed.every(({ periods }) => periods === 1))
        const [left] = yield* sql<{ readonly sum: number }>`
          SELECT sum(total_consumptions)::int FROM license_features
          WHERE license_id IN ${sql.in(licenses.map(({ license }) => license))}`
        assert.strictEqual(
          closed.reduce((sum, one) => sum + one.consumed, left!.sum),
          consumed
        )
      })
    )
  )
})
