/** A retention that is switched on later ends the present partition early, so that its rows go when their time has come. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { EventTimeIndex } from "../../../src/insight/activities/EventTimeIndex.ts"
import { ReportsDatabase } from "../../../src/insight/reports/model/ReportsDatabase.ts"
import { usageLedger } from "../../../src/insight/reports/usage/UsageLedger.ts"
import { UsageRollup } from "../../../src/insight/reports/usage/UsageRollup.ts"
import { Events } from "../../../src/ledger/events/Events.ts"
import { Partitions } from "../../../src/ledger/partitions/Partitions.ts"
import { Settings } from "../../../src/platform/config/Config.ts"
import { Database, holdLock, untilBlockedOn } from "../../support/database/Database.ts"
import { appendEvents, appendUses, partitionsOf } from "../../support/database/Partitions.ts"
import { makeLicense } from "../../support/database/StoredLicenses.ts"
import { day, noon } from "../../support/rules/Licenses.ts"

const retention = { eventRetentionDays: 30, ledgerRetentionDays: 30 }
const scanned = { rowsMax: 100_000, rowsMin: 800, scanMax: 10_000, marginMin: 800 }
/** The rows of the present partition are validated by a constraint. */
const validated = { ...scanned, scanMax: 100 }

const Subject = Layer.mergeAll(
  EventTimeIndex.layer,
  UsageRollup.layer,
  Events.layer,
  ReportsDatabase.layer.pipe(Layer.provide(Settings.layerTest()))
).pipe(Layer.provideMerge(Database.layer))

/** Runs a test at noon on a database of its own. */
const onDatabase = <A, E>(test: Effect.Effect<A, E, Layer.Success<typeof Subject>>) =>
  TestClock.setTime(noon).pipe(
    Effect.andThen(test),
    Effect.provide(TestClock.layer()),
    Effect.provide(Layer.fresh(Subject))
  )

/** Noon is years ahead of the database server's clock. */
const clockOffsetSeconds = 10 * 366 * 86_400

/** The worker of a node with settings of its own. */
const passWith = Effect.fnUntraced(function* (
  limits: typeof scanned,
  given: Parameters<typeof Settings.layerTest>[0] = {}
) {
  const settings = Settings.layerTest({ clockOffsetSeconds, ...given })
  const worker = Layer.fresh(Partitions.layerWith(limits).pipe(Layer.provide(settings)))
  yield* Context.get(yield* Layer.build(worker), Partitions).pass
}, Effect.scoped)

const attached = (first: number, end: number | null) => ({ first, end, detached: false })

/** Two months without a retention: 6,000 consumptions, of which 3,000 are older than a month. */
const makeHistory = Effect.fnUntraced(function* (limits: typeof scanned) {
  yield* passWith(limits)
  const license = yield* makeLicense()
  for (let daysAgo = 60; daysAgo > 0; daysAgo -= 2) yield* appendUses(license, 200, noon - (daysAgo - 1) * day)
  yield* passWith(limits)
  const partitions = [attached(1, 100_001), attached(100_001, null)]
  assert.deepStrictEqual(yield* partitionsOf("event_log"), partitions)
  assert.deepStrictEqual(yield* partitionsOf("usage_ledger"), partitions)
  yield* summed
  return license
})

const summed = Effect.gen(function* () {
  yield* (yield* EventTimeIndex).pass
  yield* (yield* UsageRollup).pass
})

/** Each number has one event, and one row of the ledger. */
const assertGapless = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [found] = yield* sql`
    SELECT (SELECT count(*) FROM generate_series(1, last) AS n, event_numbered(n)) = last AS events,
      (SELECT count(DISTINCT sequence) FROM usage_ledger) = ledger_last AS ledger FROM event_sequence`
  assert.deepStrictEqual(found, { events: true, ledger: true })
})

describe("A retention that is switched on later", () => {
  for (const { limits, what, end } of [
    { what: "that are read at once", limits: scanned, end: 6_000 + 1 + 800 },
    { what: "that are validated beside reads and writes", limits: validated, end: 6_000 + 800 }
  ])
    it.live(`ends the present partition early, with rows ${what}, and removes them in time`, () =>
      Effect.gen(function* () {
        const license = yield* makeHistory(limits)
        yield* Effect.all([passWith(limits, retention), passWith(limits, retention)], { concurrency: 2 })
        yield* passWith(limits, retention)
        const partitions = [attached(1, end), attached(end, null)]
        assert.deepStrictEqual(yield* partitionsOf("event_log"), partitions)
        assert.deepStrictEqual(yield* partitionsOf("usage_ledger"), partitions)
        const sql = yield* SqlClient.SqlClient
        assert.deepStrictEqual(yield* sql`SELECT conname FROM pg_constraint WHERE conname LIKE '%\\_end'`, [])
        assert.deepStrictEqual(yield* sql`SELECT FROM pg_class WHERE relname LIKE '%_from_100001'`, [])

        yield* appendUses(license, 2_300, noon + 2 * day)
        yield* appendEvents(10, noon + 2 * day)
        yield* assertGapless
        const events = yield* Events
        const { items } = yield* events.list({ cursor: end + 2, limit: 4 })
        assert.deepStrictEqual(
          items.map(({ sequence }) => sequence),
          [end + 1, end, end - 1, end - 2]
        )
        yield* summed
        yield* passWith(limits, retention)
        assert.deepStrictEqual((yield* partitionsOf("event_log"))[0], attached(1, end), "its newest rows are new")

        yield* TestClock.setTime(noon + 33 * day)
        yield* appendUses(license, 10, noon + 33 * day)
        yield* summed
        yield* passWith(limits, retention)
        assert.deepInclude((yield* partitionsOf("event_log"))[0], { end, detached: true })
        assert.deepInclude((yield* partitionsOf("usage_ledger"))[0], { end, detached: true })
        const feed = yield* events.list({ cursor: end + 2, limit: 10 })
        assert.deepStrictEqual([feed.items.map(({ sequence }) => sequence), feed.removedTo], [[end + 1, end], end - 1])
        const { snapshot, sql: reports } = yield* ReportsDatabase
        const ledger = yield* snapshot(usageLedger(reports, {}, { limit: 10, cursor: end + 1 }))
        assert.deepStrictEqual([ledger.items.map(({ sequence }) => sequence), ledger.removedTo], [[end], end - 1])
      }).pipe(onDatabase)
    )

  it.live("waits for readers while others write, and then has later partitions small", () =>
    Effect.gen(function* () {
      const license = yield* makeHistory(validated)
      const reader = yield* holdLock((sql) => sql`SELECT FROM usage_ledger LIMIT 1`)
      const passing = yield* Effect.forkChild(passWith(validated, retention))
      for (let times = 1; times <= 20; times++) yield* appendUses(license, 1, noon)
      yield* Fiber.join(passing)
      assert.deepStrictEqual(yield* partitionsOf("usage_ledger"), [attached(1, 100_001), attached(100_001, null)])
      yield* reader.release
      const writing = yield* Effect.forkChild(
        Effect.forEach(Array.from({ length: 20 }), () => appendUses(license, 1, noon), { discard: true })
      )
      yield* passWith(validated, retention)
      yield* Fiber.join(writing)
      const [present] = yield* partitionsOf("usage_ledger")
      assert.isAtMost(present!.end!, 6_040 + 800)
      yield* appendUses(license, present!.end! - 6_040 - 100, noon)
      yield* passWith(validated, retention)
      const [, next] = yield* partitionsOf("usage_ledger")
      assert.isAtMost(next!.end! - next!.first, 1_000)
      yield* assertGapless
    }).pipe(onDatabase)
  )

  it.live("keeps the current partition if the retention is switched off again", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const license = yield* makeHistory(scanned)
      yield* sql.unsafe(
        "ALTER TABLE usage_ledger_from_1 ADD CONSTRAINT usage_ledger_from_1_end CHECK (sequence < 6500) NOT VALID"
      )
      yield* sql`UPDATE sequence_partitions SET planned_end = 6500 WHERE name = 'usage_ledger_from_1'`
      yield* passWith(scanned)
      yield* appendUses(license, 1_000, noon)
      assert.deepStrictEqual(yield* partitionsOf("usage_ledger"), [attached(1, 100_001), attached(100_001, null)])
    }).pipe(onDatabase)
  )

  it.live("refuses no row beyond a planned end while a backup keeps the worker from moving it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const license = yield* makeHistory(validated)
      const reader = yield* holdLock((sql) => sql`LOCK TABLE ONLY usage_ledger IN ACCESS SHARE MODE`)
      yield* passWith(validated, retention)
      const planned = sql`SELECT planned_end FROM sequence_partitions WHERE name = 'usage_ledger_from_1'`
      assert.deepStrictEqual(yield* planned, [{ planned_end: 6_800 }])
      const backup = yield* holdLock((sql) => sql`LOCK TABLE usage_ledger IN ACCESS SHARE MODE`)
      yield* reader.release
      yield* appendUses(license, 700, noon)
      yield* passWith(validated, retention)
      const appended = yield* Effect.exit(appendUses(license, 700, noon))
      yield* backup.release
      assert.deepStrictEqual(appended, Exit.void)
      assert.deepStrictEqual(yield* partitionsOf("usage_ledger"), [attached(1, 100_001), attached(100_001, null)])
      yield* passWith(validated, retention)
      const end = 7_400 + 800
      assert.deepStrictEqual(yield* partitionsOf("usage_ledger"), [attached(1, end), attached(end, null)])
      yield* assertGapless
    }).pipe(onDatabase)
  )

  for (const { limits, what } of [
    { what: "that are read at once", limits: scanned },
    { what: "that are validated", limits: validated }
  ])
    it.live(`moves the end of rows ${what} if the numbers reach it while the worker waits for its lock`, () =>
      Effect.gen(function* () {
        const license = yield* makeHistory(limits)
        const reader = yield* holdLock((sql) => sql`LOCK TABLE ONLY usage_ledger IN ACCESS SHARE MODE`)
        const passing = yield* Effect.forkChild(passWith(limits, retention))
        yield* untilBlockedOn("query LIKE 'LOCK TABLE ONLY usage_ledger %'")
        yield* appendUses(license, 1_000, noon)
        yield* reader.release
        yield* Fiber.join(passing)
        assert.deepStrictEqual(yield* partitionsOf("usage_ledger"), [attached(1, 100_001), attached(100_001, null)])
        yield* passWith(limits, retention)
        const [present] = yield* partitionsOf("usage_ledger")
        assert.isAbove(present!.end!, 7_000)
        assert.isBelow(present!.end!, 8_000)
        yield* assertGapless
      }).pipe(onDatabase)
    )

  it.live("plans another end if the numbers reach it while the validation waits", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const license = yield* makeHistory(validated)
      const reader = yield* holdLock((sql) => sql`LOCK TABLE ONLY usage_ledger IN ACCESS SHARE MODE`)
      yield* passWith(validated, retention)
      yield* reader.release
      const vacuum = yield* holdLock((sql) => sql`LOCK TABLE usage_ledger_from_1 IN SHARE UPDATE EXCLUSIVE MODE`)
      const passing = yield* Effect.forkChild(passWith(validated, retention))
      yield* untilBlockedOn("query LIKE '%VALIDATE CONSTRAINT usage_ledger_from_1_end'")
      yield* appendUses(license, 1_000, noon)
      yield* vacuum.release
      yield* Fiber.join(passing)
      assert.deepStrictEqual(yield* partitionsOf("usage_ledger"), [attached(1, 100_001), attached(100_001, null)])
      yield* passWith(validated, retention)
      const [present] = yield* partitionsOf("usage_ledger")
      assert.deepStrictEqual(present, attached(1, 7_000 + 800))
      assert.deepStrictEqual(yield* sql`SELECT conname FROM pg_constraint WHERE conname LIKE '%\\_end'`, [])
      yield* assertGapless
    }).pipe(onDatabase)
  )
})
