/** Partitions past their retention go, unless something needs their rows; what they proved stays true. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Effect, Layer, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { formatTimestamp } from "../../../src/contract/api/Timestamp.ts"
import { EventTimeIndex } from "../../../src/insight/activities/EventTimeIndex.ts"
import { decompress } from "../../../src/insight/reports/exports/Compression.ts"
import { ledgerStart, makeLedgerPieces } from "../../../src/insight/reports/exports/LedgerPieces.ts"
import { ReportsDatabase } from "../../../src/insight/reports/model/ReportsDatabase.ts"
import { licenseAudit } from "../../../src/insight/reports/usage/LicenseAudit.ts"
import { usageLedger } from "../../../src/insight/reports/usage/UsageLedger.ts"
import { UsageRollup } from "../../../src/insight/reports/usage/UsageRollup.ts"
import { usageSummary } from "../../../src/insight/reports/usage/UsageSummary.ts"
import { Events } from "../../../src/ledger/events/Events.ts"
import { Partitions } from "../../../src/ledger/partitions/Partitions.ts"
import { activate } from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { Settings } from "../../../src/platform/config/Config.ts"
import * as RehearsalClock from "../../../src/platform/telemetry/RehearsalClock.ts"
import { Database, holdLock } from "../../support/database/Database.ts"
import { makeNode } from "../../support/database/LicenseNodes.ts"
import { appendEvents, appendUses, partitionsOf } from "../../support/database/Partitions.ts"
import { makeLicense } from "../../support/database/StoredLicenses.ts"
import { hardware } from "../../support/rules/Licenses.ts"

const dayMillis = 86_400_000
const settings = { eventRetentionDays: 4, ledgerRetentionDays: 4 }
const layerPartitions = (given: Parameters<typeof Settings.layerTest>[0]) =>
  Partitions.layerWith({ rowsMax: 2_000, rowsMin: 2_000 }).pipe(Layer.provide(Settings.layerTest(given)))

const Subject = Layer.mergeAll(
  layerPartitions(settings),
  EventTimeIndex.layer,
  UsageRollup.layer,
  Events.layer,
  ReportsDatabase.layer.pipe(Layer.provide(Settings.layerTest()))
).pipe(Layer.provideMerge(Database.layer))

/** Runs a test on a database of its own. */
const onDatabase = <A, E>(test: Effect.Effect<A, E, Layer.Success<typeof Subject> | Scope.Scope>) =>
  Effect.provide(test, Layer.fresh(Subject))

const passWith = Effect.fnUntraced(function* (given: Parameters<typeof Settings.layerTest>[0]) {
  yield* Context.get(yield* Layer.build(Layer.fresh(layerPartitions(given))), Partitions).pass
}, Effect.scoped)

/** The ends of the detached partitions of events and ledger. */
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

/**
 * An activation and 8,000 consumptions in eleven days, in partitions of 2,000: those of the first two are past the retention.
 * The first consumption is the license's own, with the event id `first` and the amount 7.
 */
const makeHistory = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { pass } = yield* Partitions
  const now = yield* Clock.currentTimeMillis
  const start = now - 8_000 * 120_000
  yield* pass
  const license = yield* makeLicense({ max_consumptions: 1_000 })
  const node = yield* makeNode
  yield* node.ask(license.license, activate, { ...consumption(license, "", 0), newDeviceId: "dev_1" })
  yield* node.ask(license.license, consume, consumption(license, "first", 7))
  yield* sql`UPDATE usage_ledger SET occurred_at = to_timestamp(${start / 1_000}::float8)`
  yield* sql`UPDATE event_log SET created_at = to_timestamp(${start / 1_000}::float8)`
  for (let uses = 1_000; uses <= 8_000; uses += 1_000) {
    yield* appendUses(license, uses === 1_000 ? 999 : 1_000, start + uses * 120_000)
    yield* pass
  }
  yield* appendEvents(1_000, now)
  return { license, now, start }
})

const summed = Effect.gen(function* () {
  yield* (yield* EventTimeIndex).pass
  yield* (yield* UsageRollup).pass
})

const removed = Effect.gen(function* () {
  const history = yield* makeHistory
  yield* summed
  yield* (yield* Partitions).pass
  assert.deepStrictEqual(yield* detached, [
    [2_001, 4_001],
    [2_001, 4_001]
  ])
  return history
})

/** The tables of the partitions that `removed` has detached. */
const tables = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`SELECT relname AS name FROM pg_class WHERE relname ~ '^(event_log|usage_ledger)_from_(1|2001)$'`
)

describe("partitions past their retention", () => {
  it.live("go once nothing needs their rows", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { pass } = yield* Partitions
      yield* makeHistory
      assert.deepStrictEqual(yield* detached, [[], []], "the times of the events are not indexed yet")
      yield* (yield* EventTimeIndex).pass
      yield* pass
      assert.deepStrictEqual(yield* detached, [[2_001, 4_001], []], "the days of the ledger are not summed yet")
      yield* summed

      yield* sql`
        INSERT INTO webhook_endpoints (id, name, url, event_types, is_active, secret_prefix, secret_sealed, created_at, updated_at)
        VALUES ('wh', 'W', 'https://example.com', '{}', true, 'whsec_', '', now(), now())`
      yield* sql`INSERT INTO webhook_deliveries (endpoint_id, sequence, due_at, created_at) VALUES ('wh', 3000, now(), now())`
      yield* sql`
        INSERT INTO report_exports (id, report_kind, format, status, filters, content_type, created_by, generated_at, ledger_last,
          created_at, updated_at) VALUES ('exp', 'usage-ledger', 'csv', 'processing', '{}', 'text/csv', 'key', now(), 1, now(), now())`
      yield* pass
      assert.deepStrictEqual((yield* detached)[1], [], "an export may read all rows")
      yield* sql`UPDATE report_exports SET status = 'completed'`
      yield* pass
      assert.deepStrictEqual((yield* detached)[1], [2_001], "a delivery needs its event")
      yield* sql`UPDATE webhook_deliveries SET status = 'delivered'`

      const reader = yield* holdLock((sql) => sql`SELECT FROM usage_ledger WHERE sequence < 5000 LIMIT 10`)
      yield* pass
      assert.deepStrictEqual((yield* detached)[1], [2_001], "a reader is between its pages")
      yield* reader.release
      yield* pass
      assert.deepStrictEqual((yield* detached)[1], [2_001, 4_001])
    }).pipe(onDatabase)
  )

  it.live("leave their event ids used, and counters as they are", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { license } = yield* removed
      assert.deepStrictEqual(yield* sql`SELECT FROM usage_ledger WHERE event_id = 'first'`, [])
      const node = yield* makeNode
      const ask = (event_id: string, amount: number) =>
        node.ask(license.license, consume, consumption(license, event_id, amount))
      yield* ask("first", 7)
      assert.deepInclude(yield* Effect.flip(ask("first", 8)), { code: "EVENT_ID_CONFLICT" })
      yield* ask("new", 1)
      assert.deepStrictEqual(yield* sql`SELECT total_consumptions AS total FROM licenses`, [{ total: 8 }])
    }).pipe(onDatabase)
  )

  it.live("are missing in feeds and reports, which say so", () =>
    Effect.gen(function* () {
      const { license, now, start } = yield* removed
      const events = yield* Events
      // The activation is an event without a ledger row.
      assert.deepStrictEqual(yield* events.list({ cursor: 3_000 }), { items: [], removedTo: 4_001 })
      const page = yield* events.list({ cursor: 4_004, limit: 10 })
      assert.deepStrictEqual([page.items.map(({ sequence }) => sequence), page.removedTo], [[4_003, 4_002], 4_001])
      const { snapshot, sql } = yield* ReportsDatabase
      const ledger = yield* snapshot(usageLedger(sql, {}, { limit: 10, cursor: 4_002 }))
      assert.deepStrictEqual([ledger.items.map(({ sequence }) => sequence), ledger.removedTo], [[4_001], 4_000])

      const summaryOf = (from: number, bucket: { readonly bucket?: "1d" }) =>
        snapshot(usageSummary(sql, { from, group_by: ["product_id"], ...bucket }, now + 2 * dayMillis, 10_000))
      const days = yield* summaryOf(start - dayMillis, { bucket: "1d" })
      assert.strictEqual(days.totals.consumptions, 8_000, "whole days are in the sums")
      const { period, totals } = yield* summaryOf(start - dayMillis, {})
      assert.strictEqual(totals.consumptions, 4_000)
      assert.isDefined(period.removed_until)
      assert.isUndefined((yield* summaryOf(period.removed_until! + 1, {})).period.removed_until)

      const auditOf = (from: number) =>
        snapshot(licenseAudit(sql, { license_id: license.license, from, limit: 10 }, now + 2 * dayMillis))
      const audit = yield* auditOf(start - dayMillis)
      assert.isAbove(audit.period.events_removed_until!, start)
      assert.isBelow(audit.period.events_removed_until!, now - settings.eventRetentionDays * dayMillis)
      assert.isUndefined((yield* auditOf(audit.period.events_removed_until! + 1)).period.events_removed_until)

      yield* (yield* SqlClient.SqlClient)`UPDATE event_sequence SET ledger_last = ledger_last + 200000`
      const late = yield* summaryOf(start - dayMillis, { bucket: "1d" })
      assert.deepStrictEqual([late.rows, late.totals], [days.rows, days.totals], "also if the sums are late")

      const request = { report_kind: "usage-ledger", format: "json", generated_at: now, ledger_last: 8_000 } as const
      const headOf = Effect.fnUntraced(function* (filters: { readonly from?: string }) {
        const pieceFrom = yield* makeLedgerPieces({ ...request, filters })
        const piece = yield* snapshot(pieceFrom(sql, ledgerStart, 1))
        const { bytes, plainSize } = piece.snapshot[0]!
        return Buffer.from(yield* decompress(bytes, plainSize)).toString()
      })
      const until = formatTimestamp(period.removed_until!)
      assert.include(yield* headOf({}), `"period":{"removed_until":"${until}",`)
      assert.notInclude(yield* headOf({ from: formatTimestamp(period.removed_until! + 1) }), "removed_until")
    }).pipe(onDatabase)
  )

  it.live("stay as tables unless a setting drops them", () =>
    Effect.gen(function* () {
      yield* removed
      yield* passWith({ eventRetentionDays: 0, ledgerRetentionDays: 0 })
      assert.lengthOf(yield* tables, 4)
      yield* passWith({ ...settings, retentionDrop: true })
      assert.deepStrictEqual(yield* tables, [])
    }).pipe(onDatabase)
  )

  it.live("that others read, as a backup does, are dropped later", () =>
    Effect.gen(function* () {
      yield* removed
      const drop = passWith({ ...settings, retentionDrop: true })
      const reader = yield* holdLock((sql) => sql`SELECT FROM event_log_from_2001 LIMIT 1`)
      yield* drop
      assert.deepStrictEqual(yield* tables, [{ name: "event_log_from_2001" }])
      yield* reader.release
      yield* drop
      assert.deepStrictEqual(yield* tables, [])
    }).pipe(onDatabase)
  )

  it.live("go by the clocks of the node and of the database, which must both be past it", () =>
    Effect.gen(function* () {
      yield* makeHistory
      yield* summed
      const retention = { eventRetentionDays: 20, ledgerRetentionDays: 20 }
      const days = 30
      const ahead = Effect.provide(RehearsalClock.layer(() => days * dayMillis))
      yield* passWith(retention).pipe(ahead)
      assert.deepStrictEqual(yield* detached, [[], []])
      // A rehearsal's clock is ahead on purpose.
      yield* passWith({ ...retention, clockOffsetSeconds: days * 86_400 }).pipe(ahead)
      assert.isNotEmpty((yield* detached)[1])
    }).pipe(onDatabase)
  )

  it.live("are recorded with the time of their detachment", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { now, start } = yield* removed
      const rows = yield* sql<{ readonly detached_at: number; readonly newest_at: number }>`
        SELECT detached_at, newest_at FROM sequence_partitions WHERE detached_at IS NOT NULL`
      assert.lengthOf(rows, 4)
      for (const { detached_at, newest_at } of rows) {
        assert.isAtLeast(detached_at, now)
        assert.isAtLeast(newest_at, start)
        assert.isBelow(newest_at, now - 4 * dayMillis)
      }
    }).pipe(onDatabase)
  )

  it.live("can be attached and read again, with a retention that covers them", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* removed
      yield* sql`ALTER TABLE usage_ledger ATTACH PARTITION usage_ledger_from_1 FOR VALUES FROM (MINVALUE) TO (2001)`
      yield* sql`ALTER TABLE usage_ledger ATTACH PARTITION usage_ledger_from_2001 FOR VALUES FROM (2001) TO (4001)`
      yield* sql`UPDATE sequence_partitions SET detached_at = NULL, newest_at = NULL WHERE parent = 'usage_ledger'`
      yield* passWith({ eventRetentionDays: 4, ledgerRetentionDays: 0 })
      const reports = yield* ReportsDatabase
      const ledger = yield* reports.snapshot(usageLedger(reports.sql, {}, { limit: 10, cursor: 2 }))
      assert.deepStrictEqual([ledger.items.map(({ sequence }) => sequence), ledger.removedTo], [[1], undefined])
      yield* (yield* Partitions).pass
      assert.deepStrictEqual((yield* detached)[1], [2_001, 4_001])
    }).pipe(onDatabase)
  )
})
