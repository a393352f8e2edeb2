/**
 * Appends to the event log. An event is written in the transaction of its change. A transaction locks the single
 * counter row last. This makes the sequence gapless and commit-ordered over all nodes: after a reader has seen n, no
 * lower number appears. A commit that finds the counter held for long stores its entries, which get their numbers after it
 * (`Numbering.ts`). Webhook deliveries are written with the event. A consumption is only written as a row of the
 * usage ledger; the view `events` contains it as an event.
 */
import { Clock, Context, Effect, Latch, Layer } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { CurrentActor } from "../../access/CurrentActor.ts"
import { RequestContext } from "../../contract/api/RequestContext.ts"
import { HoldLimit, mayNotPause } from "../../platform/postgres/driver/Transactions.ts"
import { concurrentChange, waitsForLog } from "../../platform/postgres/queries/Sql.ts"
import { counterWaitMillis, makeCounterLock } from "./CounterLock.ts"
import { missingDeliveries } from "./DeliveryQueue.ts"
import type { Entry, NewEvent } from "./Entry.ts"
import { type Numbers, numberedRows, storeWaiting } from "./EntryRows.ts"
import { makeNumbering } from "./Numbering.ts"

interface Appended {
  /** To be run after the commit: wakes the workers for what was written. */
  readonly wake: () => void
  /** How long other transactions held the counter. */
  readonly waitedMillis: number
}

export class EventLog extends Context.Service<
  EventLog,
  {
    /** Appends within the running transaction. The caller must take all other locks before. */
    append(...events: ReadonlyArray<NewEvent>): Effect.Effect<void>
    /** Appends entries with actor and time, for many requests at once. The connection limits the wait for locks. */
    appendRows(entries: ReadonlyArray<Entry>): Effect.Effect<void, SqlError.SqlError>
    /** The same on a connection for commits, which waits longer for the counter than for a license, or not at all. */
    appendInCommit(entries: ReadonlyArray<Entry>): Effect.Effect<void, SqlError.SqlError>
    /** The same in one statement, for pipelined commits. Fails if webhook endpoints change meanwhile. */
    appendAtOnce(entries: ReadonlyArray<Entry>): Effect.Effect<Appended, SqlError.SqlError>
    /** Readers that need everything that is committed run it first: the entries that commits have stored get their numbers. */
    readonly numberWaiting: Effect.Effect<void, SqlError.SqlError>
    /** The same for the worker: one node at a time. */
    readonly numberingPass: Effect.Effect<void, SqlError.SqlError>
    /** Opened after this node has stored entries. The worker that numbers them closes it. */
    readonly entriesWaiting: Latch.Latch
    /** How long the last commits of this node have waited for the counter on average; 0 after a minute without any. */
    readonly averageWaitMillis: Effect.Effect<number>
    /** Whether changes are refused because another transaction holds the counter for long. */
    readonly isCounterHeld: Effect.Effect<boolean, SqlError.SqlError>
    /** Opened after this node has committed webhook deliveries. The delivery worker closes it. */
    readonly deliveriesQueued: Latch.Latch
  }
>()("licensing/ledger/events/EventLog") {
  static readonly layer = Layer.effect(
    EventLog,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const holdLimit = yield* HoldLimit
      const counterLock = yield* makeCounterLock
      const { watch } = counterLock
      const deliveriesQueued = yield* Latch.make()
      const numbering = yield* makeNumbering(counterLock, deliveriesQueued)
      const wakeDelivery = () => void deliveriesQueued.openUnsafe()

      const appending = (counter: CounterOf) =>
        Effect.fnUntraced(function* (entries: ReadonlyArray<Entry>) {
          if (entries.length === 0) return
          const append = numbering.recordWait(watch(waitsForLog(insert(sql, entries, counter, holdLimit))))
          const { base, count, current, queued } = yield* append
          if (!current) yield* missingDeliveries(sql, base, base + count)
          if (queued > 0 || !current) yield* sql.afterCommit(Effect.sync(wakeDelivery))
        })
      const [appendRows, appendWaiting] = [appending(counterOf), appending(counterOfCommit)]

      const appendInCommit = (entries: ReadonlyArray<Entry>) =>
        Effect.suspend(() =>
          entries.length > 0 && numbering.isAfterCommit()
            ? Effect.andThen(storeWaiting(sql, entries), sql.afterCommit(Effect.sync(numbering.wake)))
            : appendWaiting(entries)
        )

      const appendAtOnce = (entries: ReadonlyArray<Entry>) =>
        Effect.suspend((): Effect.Effect<Appended, SqlError.SqlError> => {
          if (entries.length === 0) return Effect.succeed({ wake: nothing, waitedMillis: 0 })
          if (numbering.isAfterCommit())
            return Effect.as(storeWaiting(sql, entries), { wake: numbering.wake, waitedMillis: 0 })
          return Effect.map(
            numbering.recordWait(watch(waitsForLog(insertAtOnce(sql, entries)))),
            ({ queued, waited_ms }) => ({ wake: queued > 0 ? wakeDelivery : nothing, waitedMillis: waited_ms })
          )
        })

      const append = Effect.fn("EventLog.append")(function* (...events: ReadonlyArray<NewEvent>) {
        const { requestId, clientAddress } = yield* RequestContext
        const actor = yield* CurrentActor
        const now = yield* Clock.currentTimeMillis
        yield* appendRows(
          events.map((event) => ({
            ...event,
            ...actor,
            ip_address: clientAddress,
            created_at: now,
            metadata: { ...event.metadata, request_id: requestId }
          }))
        )
      }, Effect.orDie)

      return EventLog.of({
        append,
        appendRows,
        appendInCommit,
        appendAtOnce,
        numberWaiting: numbering.numberWaiting,
        numberingPass: numbering.pass,
        entriesWaiting: numbering.entriesWaiting,
        averageWaitMillis: numbering.averageWaitMillis,
        isCounterHeld: counterLock.isHeld,
        deliveriesQueued
      })
    })
  )
}

const nothing = () => {}

type CounterOf = (sql: SqlClient.SqlClient, numbers: Numbers) => Statement.Fragment

// The condition is evaluated before the row is locked.
const counterOfCommit: CounterOf = (sql, numbers) =>
  counterOf(sql, numbers, sql`WHERE set_config('lock_timeout', ${String(counterWaitMillis)}, true) IS NOT NULL`)

// Before the row is changed, a trigger numbers the entries that wait.
const counterOf = (sql: SqlClient.SqlClient, { events, ledger }: Numbers, condition: Statement.Fragment = sql``) => sql`
  UPDATE event_sequence SET last = last + ${events}, ledger_last = ledger_last + ${ledger} ${condition}
  RETURNING last - ${events} AS base, ledger_last - ${ledger} AS ledger_base, webhooks_revision,
    1000 * date_part('epoch', clock_timestamp() - statement_timestamp()) AS waited_ms, ${events}::int4 AS count`

/** On a busy machine a statement takes long without a wait. If it waited, others have appended since its snapshot. */
const waitedForOthers = (sql: SqlClient.SqlClient) => sql`
  CASE counter.base WHEN seen.last THEN 0 ELSE counter.waited_ms END AS waited_ms`

interface Written {
  /** The sequence number before the first of the events. */
  readonly base: number
  readonly count: number
  readonly queued: number
  /** Whether the statement's snapshot of the endpoints was up to date. */
  readonly current: boolean
  readonly waited_ms: number
}

// The update returns the counter's row under the lock; `seen` is the same row in the statement's snapshot. All writers
// of all nodes wait for the counter, so the transaction must not be idle for long afterwards.
const insert = (
  sql: SqlClient.SqlClient,
  entries: ReadonlyArray<Entry>,
  counter: CounterOf,
  holdLimit: number
) => sql<Written>`
  WITH ${numberedRows(sql, entries, (numbers) => counter(sql, numbers))}
  SELECT counter.base, counter.count, (SELECT count(*) FROM delivery) AS queued, ${waitedForOthers(sql)},
    counter.webhooks_revision = seen.webhooks_revision AS current, ${mayNotPause(sql, holdLimit)}
  FROM counter, event_sequence seen`

const insertAtOnce = (sql: SqlClient.SqlClient, entries: ReadonlyArray<Entry>) => sql<
  Pick<Written, "queued" | "waited_ms">
>`
  WITH ${numberedRows(sql, entries, (numbers) => counterOfCommit(sql, numbers))}
  SELECT (SELECT count(*) FROM delivery) AS queued, ${waitedForOthers(sql)}, demand(counter.webhooks_revision = seen.webhooks_revision,
    ${concurrentChange}, 'webhook endpoints were changed meanwhile')
  FROM counter, event_sequence seen`
