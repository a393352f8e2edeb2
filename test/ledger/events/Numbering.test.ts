/**
 * Entries that commits have stored without waiting for the event counter: who gives them their numbers, in which order, and what
 * holds in the meantime.
 */
import { assert, layer } from "@effect/vitest"
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { CounterPatience } from "../../../src/ledger/events/Numbering.ts"
import { repeatsEventId } from "../../../src/licensing/engine/JournalStatements.ts"
import { openSession } from "../../../src/platform/postgres/driver/Postgres.ts"
import { isLogBusy } from "../../../src/platform/postgres/queries/Sql.ts"
import { Database } from "../../support/database/Database.ts"
import { consumption, event, makeStoring, waitingCount } from "../../support/database/StoredEntries.ts"
import { deliveriesOf, layerWebhooks, makeEndpoint } from "../../support/http/Webhooks.ts"
import { poll } from "../../support/rules/Poll.ts"

const lastNumbers = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly last: number; readonly ledger_last: number }>`
    SELECT last, ledger_last FROM event_sequence`
  return row!
})

/** Until the request's transaction has found entries that wait. */
const untilQueried = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const idle = sql`SELECT FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'`
  yield* poll(idle, (rows) => rows.length > 0)
})

/** Resources of events and event ids of consumptions, in the order of their numbers, which have no gap. */
const namesAfter = Effect.fnUntraced(function* (after: { readonly last: number; readonly ledger_last: number }) {
  const sql = yield* SqlClient.SqlClient
  const events = yield* sql<{ readonly sequence: number; readonly name: string }>`
    SELECT sequence, coalesce(metadata ->> 'event_id', resource_id) AS name FROM events
    WHERE sequence > ${after.last} ORDER BY sequence`
  const rows = yield* sql<{ readonly sequence: number }>`
    SELECT sequence FROM usage_ledger WHERE sequence > ${after.ledger_last} ORDER BY sequence`
  const now = yield* lastNumbers
  const numbersUpTo = (first: number, last: number) => Array.from({ length: last - first }, (_, n) => first + n + 1)
  assert.deepStrictEqual(
    events.map(({ sequence }) => sequence),
    numbersUpTo(after.last, now.last)
  )
  assert.deepStrictEqual(
    rows.map(({ sequence }) => sequence),
    numbersUpTo(after.ledger_last, now.ledger_last)
  )
  return events.map(({ name }) => name)
})

/** A node whose commits store their entries after waits of 30 ms on average. */
const makeWaiting = Effect.gen(function* () {
  const built = yield* Layer.build(Layer.fresh(EventLog.layer)).pipe(Effect.provideService(CounterPatience, 30))
  const log = Context.get(built, EventLog)
  const sql = yield* SqlClient.SqlClient
  const commit = sql.withTransaction(log.appendInCommit([event("waits")]))
  const holder = yield* openSession((yield* Database).url)
  const append = `
    WITH counter AS (UPDATE event_sequence SET last = last + 1 RETURNING last)
    INSERT INTO event_log (sequence, event_type, actor_type, actor_id, resource_type, metadata, created_at)
    SELECT last, 'product.created', 'system', 'holder', 'product', '{}', to_timestamp(0) FROM counter`
  /** A commit that waits for as long as the holder sleeps. */
  const wait = (seconds: number) =>
    Effect.gen(function* () {
      yield* holder.values("BEGIN")
      yield* holder.values(append)
      const held = holder.values(`SELECT pg_sleep(${seconds})`)
      yield* Effect.all([commit, Effect.andThen(held, holder.values("COMMIT"))], { concurrency: "unbounded" })
    })
  return { commit, log, wait }
})

layer(layerWebhooks(), { excludeTestServices: true })("Entries that wait for their numbers", (it) => {
  it.effect("get them from the next commit that locks the counter, before its own and in their order", () =>
    Effect.gen(function* () {
      const { commit } = yield* makeStoring
      const { webhook } = yield* makeEndpoint("http://127.0.0.1:9/", { event_types: ["license.*", "usage.*"] })
      const before = yield* lastNumbers
      yield* commit(
        event("a"),
        consumption("b"),
        consumption("-", { action: "reset", event_id: undefined }),
        event("c")
      )
      yield* commit(consumption("d", { credits: 1, overage: 0, actor_name: "Ann" }))
      assert.deepStrictEqual(yield* lastNumbers, before)
      assert.deepStrictEqual(yield* namesAfter(before), [])
      yield* (yield* EventLog).append({
        ...{ event_type: "product.created", resource_type: "product", resource_id: "e", metadata: {} }
      })
      assert.deepStrictEqual(yield* namesAfter(before), ["a", "b", "c", "d", "e"])
      assert.deepStrictEqual(
        (yield* deliveriesOf(webhook.id)).map(({ sequence }) => sequence),
        [1, 2, 3, 4].map((number) => before.last + number)
      )
      const [row] = yield* (yield* SqlClient.SqlClient)`
        SELECT license_id, feature_id, action, event_id, amount, balance_after, max_after, device_id, actor_type, actor_id, actor_name,
          request_id, occurred_at, event_feature_code, event_ip_address, credits, overage, reverses
        FROM usage_ledger WHERE event_id = 'd'`
      const { feature_code, ...stored } = consumption("d", { credits: 1, overage: 0, actor_name: "Ann" })
      assert.deepStrictEqual(row, {
        ...{ ...stored, max_after: null, reverses: null, event_feature_code: feature_code, event_ip_address: null }
      })
    })
  )

  it.effect("get them from any node, although the one that stored them is gone, and each once", () =>
    Effect.gen(function* () {
      const before = yield* lastNumbers
      yield* Effect.scoped(Effect.flatMap(makeStoring, ({ commit }) => commit(event("left"), event("behind"))))
      const [one, other] = [(yield* makeStoring).log, (yield* makeStoring).log]
      yield* one.deliveriesQueued.close
      yield* Effect.all([one.numberingPass, other.numberingPass], { concurrency: "unbounded" })
      assert.strictEqual(yield* waitingCount, 0)
      const names = yield* namesAfter(before)
      assert.deepStrictEqual(
        names.filter((name) => !name.startsWith("the first")),
        ["left", "behind"]
      )
    })
  )

  it.effect("wake the worker that numbers them, and then the deliveries", () =>
    Effect.gen(function* () {
      const { commit, log } = yield* makeStoring
      yield* Effect.all([log.entriesWaiting.close, log.deliveriesQueued.close])
      yield* commit(event("x"))
      assert.isTrue(log.entriesWaiting.isOpen())
      assert.isFalse(log.deliveriesQueued.isOpen())
      // Another node numbers them: the deliveries of this node start anyway.
      yield* (yield* EventLog).numberWaiting
      yield* log.numberingPass
      assert.isTrue(log.deliveriesQueued.isOpen())
    })
  )

  it.effect("of a transaction that commits after later ones were numbered get later numbers", () =>
    Effect.gen(function* () {
      const { commit, log } = yield* makeStoring
      const before = yield* lastNumbers
      const sql = yield* SqlClient.SqlClient
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* log.appendInCommit([event("slow")])
          // On other connections.
          const elsewhere = Effect.andThen(commit(event("fast")), log.numberWaiting)
          yield* Effect.updateContext(elsewhere, Context.omit(sql.transactionService)<never>)
          assert.strictEqual((yield* lastNumbers).last, before.last + 1)
        })
      )
      yield* log.numberWaiting
      assert.deepStrictEqual(yield* namesAfter(before), ["fast", "slow"])
    })
  )

  it.effect("are waited for within a request's transaction, which must not hold the counter", () =>
    Effect.gen(function* () {
      const { commit, log } = yield* makeStoring
      const sql = yield* SqlClient.SqlClient
      yield* commit(event("awaited"))
      const free = Effect.updateContext(
        sql`SELECT FROM event_sequence FOR NO KEY UPDATE SKIP LOCKED`,
        Context.omit(sql.transactionService)<never>
      )
      const [rows] = yield* Effect.all(
        [sql.withTransaction(Effect.andThen(log.numberWaiting, free)), Effect.andThen(untilQueried, log.numberingPass)],
        { concurrency: "unbounded" }
      )
      assert.lengthOf(rows, 1)
      assert.strictEqual(yield* waitingCount, 0)
    })
  )

  it.effect("are lost with their transaction", () =>
    Effect.gen(function* () {
      const { log } = yield* makeStoring
      const sql = yield* SqlClient.SqlClient
      const failing = Effect.andThen(log.appendInCommit([consumption("undone")]), Effect.fail("no"))
      assert.strictEqual(yield* Effect.flip(sql.withTransaction(failing)), "no")
      assert.strictEqual(yield* waitingCount, 0)
      assert.deepStrictEqual(yield* sql`SELECT * FROM counted_event('lic_1', 'undone')`, [])
    })
  )

  it.effect("have used their event ids, before and after they are numbered", () =>
    Effect.gen(function* () {
      const { commit, log } = yield* makeStoring
      const direct = yield* EventLog
      const sql = yield* SqlClient.SqlClient
      const isRefusedTwice = Effect.gen(function* () {
        assert.isTrue(repeatsEventId(yield* Effect.flip(commit(consumption("once")))))
        assert.isTrue(repeatsEventId(yield* Effect.flip(sql.withTransaction(direct.appendRows([consumption("once")])))))
      })
      yield* commit(consumption("once"))
      yield* isRefusedTwice
      yield* log.numberWaiting
      yield* isRefusedTwice
      assert.lengthOf(yield* sql`SELECT FROM usage_ledger WHERE event_id = 'once'`, 1)
    })
  )

  it.effect("are found in a database that was restored where transaction ids are lower", () =>
    Effect.gen(function* () {
      const { commit, log } = yield* makeStoring
      const before = yield* lastNumbers
      yield* (yield* SqlClient.SqlClient)`UPDATE event_sequence SET waiting_from = '1000000000000'`
      yield* (yield* SqlClient.SqlClient)`ALTER TABLE event_sequence DISABLE TRIGGER event_sequence_waiting`
      yield* (yield* SqlClient.SqlClient)`UPDATE event_sequence SET waiting_from = '1000000000000'`
      yield* (yield* SqlClient.SqlClient)`ALTER TABLE event_sequence ENABLE TRIGGER event_sequence_waiting`
      yield* commit(event("restored"))
      yield* log.numberWaiting
      assert.deepStrictEqual(yield* namesAfter(before), ["restored"])
    })
  )

  it.effect("are no more than a second's: nothing is stored while the counter cannot be locked", () =>
    Effect.gen(function* () {
      const { commit, log } = yield* makeStoring
      const before = yield* lastNumbers
      const holder = yield* openSession((yield* Database).url)
      yield* holder.values("BEGIN")
      yield* holder.values("SELECT FROM event_sequence FOR UPDATE")
      yield* commit(event("stored"))
      assert.isTrue(isLogBusy(yield* Effect.flip(log.numberWaiting)))
      assert.isTrue(isLogBusy(yield* Effect.flip(commit(event("refused")))))
      yield* holder.values("ROLLBACK")
      yield* log.numberWaiting
      // The first one waits for the counter, if the second is over.
      yield* commit(event("again"))
      yield* commit(event("stored again"))
      assert.isAbove(yield* waitingCount, 0)
      yield* log.numberWaiting
      assert.deepStrictEqual(yield* namesAfter(before), ["stored", "again", "stored again"])
    })
  )

  it.effect("have a column for each of an event and of a ledger row", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const columnsOf = (table: string) =>
        Effect.map(
          sql<{ readonly name: string }>`
            SELECT attname AS name FROM pg_attribute WHERE attrelid = ${table}::text::regclass AND attnum > 0 AND NOT attisdropped`,
          (rows) => new Set(rows.map(({ name }) => name.replace("event_", "").replace("created_at", "occurred_at")))
        )
      const waiting = yield* columnsOf("waiting_entries")
      const stored = (yield* columnsOf("event_log")).union(yield* columnsOf("usage_ledger"))
      assert.deepStrictEqual(stored.symmetricDifference(waiting), new Set(["writer"]))
    })
  )

  it.effect("begin once commits have waited for others for long on average, not after one that did", () =>
    Effect.gen(function* () {
      const { commit, log, wait } = yield* makeWaiting
      yield* wait(0.1)
      yield* commit
      assert.strictEqual(yield* waitingCount, 0)
      let waits = 1
      for (; waits < 20 && (yield* waitingCount) === 0; waits++) yield* wait(0.1)
      assert.isAbove(waits, 2)
      assert.isBelow(waits, 20)
      yield* log.numberWaiting
    })
  )

  it.effect("do not begin because of waits from more than a minute ago, which the average forgets", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      let ahead = 0n
      const later = Object.assign(Object.create(clock) as Clock.Clock, {
        monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe() + ahead
      })
      const { commit, log, wait } = yield* Effect.provideService(makeWaiting, Clock.Clock, later)
      yield* wait(0.1)
      assert.isAbove(yield* log.averageWaitMillis, 0)
      ahead += 61_000_000_000n
      assert.strictEqual(yield* log.averageWaitMillis, 0)
      yield* commit
      assert.strictEqual(yield* log.averageWaitMillis, 0)
    })
  )
})
