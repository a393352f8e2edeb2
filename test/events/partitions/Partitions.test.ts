/** Partitions are attached ahead of the numbers; no insert fails if the worker is late. */
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Settings } from "../../../src/config/Config.ts"
import { Partitions } from "../../../src/events/partitions/Partitions.ts"
import { Database, holdLock } from "../../support/Database.ts"
import { appendEvents, appendUses, partitionsOf } from "../../support/Partitions.ts"

const license = { license: "lic_1", feature: "feat_1" }
const sizes = { rowsMax: 1_000, rowsMin: 1_000, scanMax: 2_000, marginMin: 1_000 }
const layerOf = (limits: typeof sizes) =>
  Partitions.layerWith(limits).pipe(Layer.provide(Settings.layerTest()), Layer.provideMerge(Database.layer))

const passOf = (limits: typeof sizes) =>
  Effect.flatMap(
    Layer.build(Layer.fresh(Partitions.layerWith(limits).pipe(Layer.provide(Settings.layerTest())))),
    (context) =>
      Effect.provide(
        Effect.flatMap(Partitions, ({ pass }) => pass),
        context
      )
  )

layer(layerOf(sizes), { timeout: 60_000, excludeTestServices: true })("partitions", (it) => {
  it.effect("are attached before the numbers reach them, once, also by several nodes", () =>
    Effect.gen(function* () {
      const { pass } = yield* Partitions
      yield* Effect.all([pass, pass, pass], { concurrency: 3 })
      yield* pass
      const first = { first: 1, end: 1_001, detached: false }
      const open = (from: number) => ({ first: from, end: null, detached: false })
      assert.deepStrictEqual(yield* partitionsOf("usage_ledger"), [first, open(1_001)])
      assert.deepStrictEqual(yield* partitionsOf("event_log"), [first, open(1_001)])

      const now = yield* Clock.currentTimeMillis
      yield* appendUses(license, 400, now)
      yield* pass
      assert.deepStrictEqual(
        yield* partitionsOf("usage_ledger"),
        [first, open(1_001)],
        "room for half a partition is left"
      )
      yield* appendUses(license, 200, now)
      yield* pass
      yield* pass
      const second = { first: 1_001, end: 2_001, detached: false }
      assert.deepStrictEqual(yield* partitionsOf("usage_ledger"), [first, second, open(2_001)])
      // The numbers of events include consumptions.
      assert.deepStrictEqual(yield* partitionsOf("event_log"), [first, second, open(2_001)])
    })
  )

  it.effect(
    "that were not attached in time lack no row: the open partition has them, and gets an end behind them",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { pass } = yield* Partitions
        const now = yield* Clock.currentTimeMillis
        yield* appendUses(license, 3_000, now)
        yield* appendEvents(2_000, now)
        const rows = sql<{ readonly table: string; readonly rows: number }>`
        SELECT tableoid::regclass::text AS table, count(*) AS rows FROM usage_ledger GROUP BY 1 ORDER BY min(sequence)`
        assert.deepStrictEqual(yield* rows, [
          { table: "usage_ledger_from_1", rows: 1_000 },
          { table: "usage_ledger_from_1001", rows: 1_000 },
          { table: "usage_ledger_from_2001", rows: 1_600 }
        ])
        yield* pass
        const [, , late, open] = yield* partitionsOf("usage_ledger")
        assert.deepStrictEqual([late?.first, late?.end, open?.first], [2_001, 4_601, 4_601])
        // The first number of an event in each partition is known, except where none is yet.
        assert.deepStrictEqual(
          yield* sql`SELECT first_event FROM sequence_partitions WHERE parent = 'usage_ledger' ORDER BY first_sequence`,
          [{ first_event: 1 }, { first_event: 1_001 }, { first_event: 2_001 }, { first_event: null }]
        )
        // Each event is found by its number, in whichever table and partition.
        assert.deepStrictEqual(
          yield* sql`
          SELECT n, array_agg(event_type) AS types FROM generate_series(1, 5601) AS n
          CROSS JOIN LATERAL event_numbered(n) AS event WHERE event.sequence = n
          GROUP BY n HAVING count(*) <> 1 OR min(event_type) <> CASE WHEN n <= 3600 THEN 'usage.consumed' ELSE 'product.created' END`,
          []
        )
        const [found] = yield* sql`SELECT count(*) AS events FROM generate_series(1, 9999) AS n, event_numbered(n)`
        assert.deepStrictEqual(found, { events: 5_600 })
      })
  )

  it.effect("with very many rows get their end from a constraint that is validated beside reads and writes", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const now = yield* Clock.currentTimeMillis
      yield* appendUses(license, 4_000, now)
      const last = 7_600
      // A reader holds the open partition all the time: the constraint cannot be added yet, and writers are not blocked.
      const reader = yield* holdLock((sql) => sql`SELECT FROM usage_ledger LIMIT 1`)
      const pass = passOf({ ...sizes, scanMax: 100 })
      yield* pass
      yield* appendUses(license, 10, now)
      assert.strictEqual((yield* partitionsOf("usage_ledger")).at(-1)?.first, 4_601)
      yield* reader.release
      yield* pass
      const [late, open] = (yield* partitionsOf("usage_ledger")).slice(-2)
      assert.deepStrictEqual([late?.first, late?.end, open?.first], [4_601, last + 10 + 1_000, last + 10 + 1_000])
      assert.deepStrictEqual(yield* sql`SELECT conname FROM pg_constraint WHERE conname LIKE '%\\_end'`, [])
    })
  )

  it.effect("continue after a node that stopped between the constraint and the end", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const now = yield* Clock.currentTimeMillis
      const [open] = (yield* partitionsOf("usage_ledger")).slice(-1)
      const name = `usage_ledger_from_${open!.first}`
      yield* appendUses(license, 1_500, now)
      const stopped = Effect.fnUntraced(function* (end: number) {
        yield* sql.unsafe(`ALTER TABLE ${name} ADD CONSTRAINT ${name}_end CHECK (sequence < ${end}) NOT VALID`)
        yield* sql`UPDATE sequence_partitions SET planned_end = ${end} WHERE name = ${name}`
      })
      // So long ago that the numbers have nearly reached the end: writers must not meet it.
      const [{ last } = { last: 0 }] = yield* sql<{
        readonly last: number
      }>`SELECT ledger_last AS last FROM event_sequence`
      yield* stopped(last + 10)
      yield* passOf({ ...sizes, scanMax: 100 })
      assert.strictEqual((yield* partitionsOf("usage_ledger")).at(-1)?.first, last + 1_000)
    })
  )
})
