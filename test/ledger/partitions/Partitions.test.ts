/** Partitions are attached ahead of the numbers; no insert fails if the worker is late. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { withPartitionSession } from "../../../src/ledger/partitions/PartitionSession.ts"
import { Partitions } from "../../../src/ledger/partitions/Partitions.ts"
import { Settings } from "../../../src/platform/config/Config.ts"
import type { Postgres } from "../../../src/platform/postgres/driver/Postgres.ts"
import { HoldLimit } from "../../../src/platform/postgres/driver/Transactions.ts"
import { Database, holdLock } from "../../support/database/Database.ts"
import { appendEvents, appendUses, partitionsOf } from "../../support/database/Partitions.ts"
import { poll } from "../../support/rules/Poll.ts"

const license = { license: "lic_1", feature: "feat_1" }
const sizes = { rowsMax: 1_000, rowsMin: 1_000, scanMax: 2_000, marginMin: 1_000 }
/** The rows of an open partition are always validated by a constraint. */
const validating = { ...sizes, scanMax: 100 }

/** Runs a test with the worker on a database of its own. */
const withWorker =
  (limits: typeof sizes) =>
  <A, E>(test: Effect.Effect<A, E, Partitions | Postgres | SqlClient.SqlClient>) =>
    Effect.provide(
      test,
      Layer.fresh(
        Partitions.layerWith(limits).pipe(Layer.provide(Settings.layerTest()), Layer.provideMerge(Database.layer))
      )
    )

const attached = (first: number, end: number | null) => ({ first, end, detached: false })
const ledgerLast = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly last: number }>`SELECT ledger_last AS last FROM event_sequence`
  return row!.last
})

describe("partitions", () => {
  it.live("are attached before the numbers reach them, once, also by several nodes", () =>
    Effect.gen(function* () {
      const { pass } = yield* Partitions
      yield* Effect.all([pass, pass, pass], { concurrency: 3 })
      yield* pass
      const first = attached(1, 1_001)
      assert.deepStrictEqual(yield* partitionsOf("usage_ledger"), [first, attached(1_001, null)])
      assert.deepStrictEqual(yield* partitionsOf("event_log"), [first, attached(1_001, null)])

      const now = yield* Clock.currentTimeMillis
      yield* appendUses(license, 400, now)
      yield* pass
      assert.deepStrictEqual(
        yield* partitionsOf("usage_ledger"),
        [first, attached(1_001, null)],
        "half a partition is left"
      )
      yield* appendUses(license, 200, now)
      yield* pass
      yield* pass
      assert.deepStrictEqual(yield* partitionsOf("usage_ledger"), [
        first,
        attached(1_001, 2_001),
        attached(2_001, null)
      ])
      // The numbers of events include consumptions.
      assert.deepStrictEqual(yield* partitionsOf("event_log"), [first, attached(1_001, 2_001), attached(2_001, null)])
    }).pipe(withWorker(sizes))
  )

  it.live("that were not attached in time lack no row: the open partition has them, and gets an end behind them", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { pass } = yield* Partitions
      const now = yield* Clock.currentTimeMillis
      yield* pass
      yield* appendUses(license, 2_600, now)
      yield* appendEvents(2_000, now)
      const rows = sql`
        SELECT tableoid::regclass::text AS table, count(*) AS rows FROM usage_ledger GROUP BY 1 ORDER BY min(sequence)`
      assert.deepStrictEqual(yield* rows, [
        { table: "usage_ledger_from_1", rows: 1_000 },
        { table: "usage_ledger_from_1001", rows: 1_600 }
      ])
      yield* pass
      assert.deepStrictEqual(yield* partitionsOf("usage_ledger"), [
        attached(1, 1_001),
        attached(1_001, 3_601),
        attached(3_601, null)
      ])
      // The first number of an event in each partition is known, except where none is yet.
      assert.deepStrictEqual(
        yield* sql`SELECT first_event FROM sequence_partitions WHERE parent = 'usage_ledger' ORDER BY first_sequence`,
        [{ first_event: 1 }, { first_event: 1_001 }, { first_event: null }]
      )
      // Each event is found by its number, in whichever table and partition.
      const wrong = yield* sql`
        SELECT n FROM generate_series(1, 4600) AS n LEFT JOIN LATERAL event_numbered(n) AS event ON event.sequence = n
        GROUP BY n HAVING count(event) <> 1 OR min(event_type) <> CASE WHEN n <= 2600 THEN 'usage.consumed' ELSE 'product.created' END`
      assert.deepStrictEqual(wrong, [])
      const found = yield* sql`SELECT count(*) AS events FROM generate_series(1, 9999) AS n, event_numbered(n)`
      assert.deepStrictEqual(found, [{ events: 4_600 }])
    }).pipe(withWorker(sizes))
  )

  it.live("with very many rows get their end from a constraint that is validated beside reads and writes", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { pass } = yield* Partitions
      const now = yield* Clock.currentTimeMillis
      yield* appendUses(license, 4_000, now)
      // A reader holds the open partition all the time: the constraint cannot be added yet, and writers are not blocked.
      const reader = yield* holdLock((sql) => sql`SELECT FROM usage_ledger LIMIT 1`)
      yield* pass
      yield* appendUses(license, 10, now)
      assert.deepStrictEqual(yield* partitionsOf("usage_ledger"), [attached(1, null)])
      yield* reader.release
      yield* pass
      assert.deepStrictEqual(yield* partitionsOf("usage_ledger"), [attached(1, 5_010), attached(5_010, null)])
      assert.deepStrictEqual(yield* sql`SELECT conname FROM pg_constraint WHERE conname LIKE '%\\_end'`, [])
    }).pipe(withWorker(validating))
  )

  it.live("distinguish the event ids of two licenses with equal digests", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [pair] = yield* sql<{ readonly one: string; readonly other: string }>`
        SELECT min(id) AS one, max(id) AS other FROM (SELECT 'lic_' || n AS id FROM generate_series(1, 300000) n) AS ids
        GROUP BY hashtext(id) HAVING count(*) > 1 LIMIT 1`
      const { one, other } = pair!
      const consume = (licenseId: string, sequence: number, amount: number) => sql`
        INSERT INTO usage_ledger (sequence, license_id, feature_id, action, event_id, amount, balance_after, actor_type,
          actor_id, request_id, occurred_at)
        VALUES (${sequence}, ${licenseId}, 'feat_1', 'consume', 'the same', ${amount}, 5, 'license', 'lic', 'req', now())`
      yield* consume(one, 1, 5)
      assert.deepStrictEqual(yield* sql`SELECT amount FROM counted_event(${other}, 'the same')`, [])
      yield* consume(other, 2, 7)
      assert.deepStrictEqual(yield* sql`SELECT amount FROM counted_event(${other}, 'the same')`, [{ amount: 7 }])
      const error = yield* Effect.flip(consume(one, 3, 5))
      assert.strictEqual(error.reason._tag, "UniqueViolation")
    }).pipe(withWorker(sizes))
  )

  // A node stopped after it added the constraint. Writers must not meet the end.
  for (const { left, what, end } of [
    { what: "continue where a node has stopped", left: 900, end: 900 },
    { what: "begin again if the numbers have nearly reached the end", left: 10, end: 1_000 }
  ])
    it.live(what, () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { pass } = yield* Partitions
        yield* appendUses(license, 1_500, yield* Clock.currentTimeMillis)
        const last = yield* ledgerLast
        yield* sql.unsafe(
          `ALTER TABLE usage_ledger_from_1 ADD CONSTRAINT usage_ledger_from_1_end CHECK (sequence < ${last + left}) NOT VALID`
        )
        yield* sql`UPDATE sequence_partitions SET planned_end = ${last + left} WHERE name = 'usage_ledger_from_1'`
        yield* pass
        assert.deepStrictEqual(yield* partitionsOf("usage_ledger"), [
          attached(1, last + end),
          attached(last + end, null)
        ])
        yield* appendUses(license, 1_500, yield* Clock.currentTimeMillis)
      }).pipe(withWorker(validating))
    )

  it.live("of a node that is frozen while it locks a table are left to the others, and writers continue", () =>
    Effect.gen(function* () {
      const locked = yield* Deferred.make<void>()
      const frozen = withPartitionSession(({ values }) =>
        Effect.gen(function* () {
          yield* values("BEGIN")
          yield* values("LOCK TABLE ONLY usage_ledger IN ACCESS EXCLUSIVE MODE")
          yield* Deferred.succeed(locked, undefined)
          yield* Effect.never
        })
      )
      yield* Effect.forkChild(Effect.provideService(frozen, HoldLimit, 100))
      yield* Deferred.await(locked)
      yield* appendUses(license, 10, yield* Clock.currentTimeMillis)
      const { pass } = yield* Partitions
      yield* poll(Effect.andThen(pass, partitionsOf("usage_ledger")), (partitions) => partitions.length === 2)
    }).pipe(withWorker(sizes))
  )
})
