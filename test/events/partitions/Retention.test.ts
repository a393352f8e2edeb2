/** Partitions past their retention go, unless something needs their rows; what they proved stays true. */
import { assert, layer } from "@effect/vitest"
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { EventTimeIndex } from "../../../src/activities/EventTimeIndex.ts"
import { Settings } from "../../../src/config/Config.ts"
import { Events } from "../../../src/events/Events.ts"
import { Partitions } from "../../../src/events/partitions/Partitions.ts"
import { activate } from "../../../src/licenses/rules/Activation.ts"
import { consume } from "../../../src/licenses/rules/Consumption.ts"
import { ReportsDatabase } from "../../../src/reports/model/ReportsDatabase.ts"
import { usageLedger } from "../../../src/reports/usage/UsageLedger.ts"
import { UsageRollup } from "../../../src/reports/usage/UsageRollup.ts"
import { usageSummary } from "../../../src/reports/usage/UsageSummary.ts"
import { Database, holdLock } from "../../support/Database.ts"
import { makeNode } from "../../support/LicenseNodes.ts"
import { hardware } from "../../support/Licenses.ts"
import { appendEvents, appendUses, partitionsOf } from "../../support/Partitions.ts"
import { makeLicense } from "../../support/StoredLicenses.ts"

const dayMillis = 86_400_000
const days = 40
const sizes = { rowsMax: 2_000, rowsMin: 2_000 }
const settings = { eventRetentionDays: days, ledgerRetentionDays: days }

const layerPartitions = (given: Parameters<typeof Settings.layerTest>[0]) =>
  Partitions.layerWith(sizes).pipe(Layer.provide(Settings.layerTest(given)))

const Subject = Layer.mergeAll(
  layerPartitions(settings),
  EventTimeIndex.layer,
  UsageRollup.layer,
  Events.layer,
  ReportsDatabase.layer.pipe(Layer.provide(Settings.layerTest()))
).pipe(Layer.provideMerge(Database.layer))

const passWith = (given: Parameters<typeof Settings.layerTest>[0]) =>
  Effect.flatMap(Layer.build(Layer.fresh(layerPartitions(given))), (context) => Context.get(context, Partitions).pass)

const detached = Effect.map(Effect.all([partitionsOf("event_log"), partitionsOf("usage_ledger")]), (both) =>
  both.map((partitions) => partitions.filter(({ detached }) => detached).map(({ end }) => end))
)

const consumption = (license: { readonly keyHash: string }, event_id: string, amount: number) => ({
  keyHash: license.keyHash,
  binding: hardware("m"),
  feature_code: "export",
  event_id,
  amount
})

const tables = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) =>
    sql`SELECT relname FROM pg_class WHERE relname IN ('event_log_from_1', 'usage_ledger_from_1') ORDER BY relname`
)

layer(Subject, { timeout: 60_000, excludeTestServices: true })("partitions past their retention", (it) => {
  it.effect("go once nothing needs their rows, and what they held is still known", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { pass } = yield* Partitions
      const index = (yield* EventTimeIndex).pass
      const node = yield* makeNode
      const now = yield* Clock.currentTimeMillis
      yield* pass
      const license = yield* makeLicense({ max_consumptions: 1_000 })
      yield* node.ask(license.license, activate, { ...consumption(license, "", 0), newDeviceId: "dev_1" })
      yield* node.ask(license.license, consume, consumption(license, "first", 7))
      // Consumptions of 111 days: the last three thousand and some are younger than the retention.
      const [counter] = yield* sql<{ readonly last: number }>`SELECT last FROM event_sequence`
      const start = now - 111 * dayMillis
      yield* sql`UPDATE usage_ledger SET occurred_at = to_timestamp(${start / 1_000}::float8)`
      yield* sql`UPDATE event_log SET created_at = to_timestamp(${start / 1_000}::float8)`
      const used = counter!.last
      for (let uses = 0; uses < 8_000; uses += 1_000) {
        yield* appendUses(license, uses === 0 ? 1_000 - used : 1_000, start + (uses + 1_000) * 1_200_000)
        yield* pass
      }
      yield* appendEvents(1_000, now)
      yield* pass
      assert.deepStrictEqual(yield* detached, [[], []], "the times of the events are not indexed yet")
      yield* index
      yield* pass
      assert.deepStrictEqual(yield* detached, [[2_001, 4_001], []], "the days of the ledger are not summed yet")
      yield* (yield* UsageRollup).pass

      // A delivery is pending.
      yield* sql`
        INSERT INTO webhook_endpoints (id, name, url, event_types, is_active, secret_prefix, secret_sealed, created_at, updated_at)
        VALUES ('wh', 'W', 'https://example.com', '{}', true, 'whsec_', '', now(), now())`
      yield* sql`INSERT INTO webhook_deliveries (endpoint_id, sequence, due_at, created_at) VALUES ('wh', 3000, now(), now())`
      // An export runs.
      yield* sql`
        INSERT INTO report_exports (id, report_kind, format, status, filters, content_type, created_by, generated_at, ledger_last,
          created_at, updated_at) VALUES ('exp', 'usage-ledger', 'csv', 'processing', '{}', 'text/csv', 'key', now(), 1, now(), now())`
      yield* pass
      assert.deepStrictEqual((yield* detached)[1], [], "an export may read all rows")
      yield* sql`UPDATE report_exports SET status = 'completed'`
      yield* pass
      assert.deepStrictEqual((yield* detached)[1], [2_001], "a delivery needs its event")
      yield* sql`UPDATE webhook_deliveries SET status = 'delivered'`

      // A reader that is in the middle of its pages keeps the table; writers are not blocked by the attempt.
      const reader = yield* holdLock(
        (sql) => sql`SELECT FROM usage_ledger WHERE sequence < 5000 ORDER BY sequence DESC LIMIT 10`
      )
      yield* pass
      assert.deepStrictEqual((yield* detached)[1], [2_001])
      yield* reader.release
      yield* pass
      assert.deepStrictEqual(yield* detached, [
        [2_001, 4_001],
        [2_001, 4_001]
      ])
      assert.deepStrictEqual(yield* tables, [{ relname: "event_log_from_1" }, { relname: "usage_ledger_from_1" }])

      // An event id counts once for ever.
      const other = yield* makeNode
      yield* other.ask(license.license, consume, consumption(license, "first", 7))
      const refused = yield* Effect.flip(other.ask(license.license, consume, consumption(license, "first", 8)))
      assert.deepInclude(refused, { code: "EVENT_ID_CONFLICT" })
      yield* other.ask(license.license, consume, consumption(license, "use-500", 1))
      assert.deepStrictEqual(
        yield* sql`SELECT total_consumptions FROM licenses WHERE id = ${license.license}`,
        [{ total_consumptions: 7 }],
        "the rows that the test wrote itself are not in the counters"
      )
      yield* other.ask(license.license, consume, consumption(license, "new", 1))

      // Feeds end where rows were removed, and say so.
      const events = yield* Events
      assert.deepStrictEqual(yield* events.list({ cursor: 3_000 }), { items: [], removedTo: 4_001 })
      const page = yield* events.list({ cursor: 4_004, limit: 10 })
      assert.deepStrictEqual([page.items.map(({ sequence }) => sequence), page.removedTo], [[4_003, 4_002], 4_001])
      const { snapshot, sql: reports } = yield* ReportsDatabase
      const ledger = yield* snapshot(usageLedger(reports, {}, { limit: 10, cursor: 4_002 }))
      assert.deepStrictEqual([ledger.items.map(({ sequence }) => sequence), ledger.removedTo], [[4_001], 4_000])
      // Whole days are in the sums; other figures say from when on they are complete.
      const year = { from: start - dayMillis, group_by: ["product_id"] as const }
      const byDay = yield* snapshot(usageSummary(reports, { ...year, bucket: "1d" }, now + dayMillis, 10_000))
      assert.strictEqual(byDay.totals.consumptions, 8_000)
      const sum = yield* snapshot(usageSummary(reports, year, now + dayMillis, 10_000))
      assert.isBelow(sum.totals.consumptions, 4_100)
      assert.isDefined(sum.period.removed_until)
      const recent = { from: sum.period.removed_until! + 1, group_by: ["product_id"] as const }
      const complete = yield* snapshot(usageSummary(reports, recent, now + dayMillis, 10_000))
      assert.isUndefined(complete.period.removed_until)

      // Only with the setting are tables dropped.
      yield* passWith({ ...settings, retentionDrop: true })
      assert.deepStrictEqual(yield* tables, [])
      assert.deepStrictEqual(yield* detached, [
        [2_001, 4_001],
        [2_001, 4_001]
      ])
    })
  )

  it.effect("stay without the setting", () =>
    Effect.gen(function* () {
      const before = yield* detached
      yield* passWith({ eventRetentionDays: 0, ledgerRetentionDays: 0, retentionDrop: true })
      assert.deepStrictEqual(yield* detached, before)
    })
  )
})
