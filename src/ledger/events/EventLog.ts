/**
 * Appends to the event log. An event is written in the transaction of its change. A transaction locks the single
 * counter row last. This makes the sequence gapless and commit-ordered over all nodes: after a reader has seen n, no
 * lower number appears. Webhook deliveries are written with the event. A consumption is only written as a row of the
 * usage ledger; the view `events` contains it as an event.
 */
import { Clock, Context, Effect, Latch, Layer, type Schema } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { CurrentActor } from "../../access/CurrentActor.ts"
import { RequestContext } from "../../contract/api/RequestContext.ts"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import { HoldLimit, mayNotPause } from "../../platform/postgres/driver/Transactions.ts"
import { concurrentChange, waitsForLog } from "../../platform/postgres/queries/Sql.ts"
import { makeCounterLock } from "./CounterLock.ts"
import { deliveryRows, missingDeliveries } from "./DeliveryQueue.ts"
import type { EventType, ResourceType } from "./EventType.ts"

/** An event without actor, time and request, which the log adds. */
export interface NewEvent {
  readonly event_type: EventType
  readonly resource_type: ResourceType
  readonly resource_id: string
  /** Changed field names with old and new values, ids. Never keys, tokens, secrets or bindings. */
  readonly metadata: { readonly [key: string]: Schema.Json }
}

/** A complete event except its sequence number. */
export interface EventRow extends NewEvent {
  readonly actor_type: string
  readonly actor_id: string
  readonly actor_name?: string | undefined
  readonly ip_address: string | undefined
  readonly created_at: number
}

export type UsageAction = "consume" | "reverse" | "reset" | "period_reset" | "top_up" | "set_limit"

/** A complete row of the usage ledger except its sequence numbers. A consumption is also the event `usage.consumed`. */
export interface UsageRow {
  readonly license_id: string
  readonly feature_id: string
  readonly action: UsageAction
  /** The caller's id of a consumption or reversal. */
  readonly event_id?: string | undefined
  readonly amount: number
  readonly balance_after: number
  readonly max_after?: number | undefined
  readonly credits?: number | undefined
  readonly overage?: number | undefined
  readonly reverses?: string | undefined
  readonly device_id?: string | undefined
  readonly actor_type: string
  readonly actor_id: string
  readonly actor_name?: string | undefined
  readonly request_id: string
  readonly occurred_at: number
  /** Only in the event of a consumption, as is `ip_address`. */
  readonly feature_code?: string | undefined
  readonly ip_address?: string | undefined
}

/** Events are numbered in the order of entries. */
export type Entry = EventRow | UsageRow

export const isUsage = (entry: Entry): entry is UsageRow => "action" in entry

interface Appended {
  /** Whether deliveries were written. Then the caller opens `deliveriesQueued` after its commit. */
  readonly queued: boolean
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
    /** The same on a connection for commits, which waits longer for the counter than for a license. */
    appendInCommit(entries: ReadonlyArray<Entry>): Effect.Effect<void, SqlError.SqlError>
    /** The same in one statement, for pipelined commits. Fails if webhook endpoints change meanwhile. */
    appendAtOnce(entries: ReadonlyArray<Entry>): Effect.Effect<Appended, SqlError.SqlError>
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
      const { isHeld, watch } = yield* makeCounterLock

      const deliveriesQueued = yield* Latch.make()
      const wake = Effect.sync(() => void deliveriesQueued.openUnsafe())

      const appending = (counter: CounterOf) =>
        Effect.fnUntraced(function* (entries: ReadonlyArray<Entry>) {
          if (entries.length === 0) return
          const rows = numbered(entries)
          const [written] = yield* watch(waitsForLog(insert(sql, rows, counter, holdLimit)))
          const { base, current, queued } = written!
          if (!current) yield* missingDeliveries(sql, base, base + rows.count)
          if (queued > 0 || !current) yield* sql.afterCommit(wake)
        })
      const [appendRows, appendInCommit] = [appending(counterOf), appending(counterOfCommit)]

      const appendAtOnce = (entries: ReadonlyArray<Entry>) => {
        if (entries.length === 0) return Effect.succeed({ queued: false, waitedMillis: 0 })
        return Effect.map(
          watch(
            waitsForLog(sql<{ readonly queued: number; readonly waited_ms: number }>`
            WITH ${changes(sql, numbered(entries), counterOfCommit)}
            SELECT (SELECT count(*) FROM delivery) AS queued, counter.waited_ms, demand(counter.webhooks_revision = seen.webhooks_revision,
              ${concurrentChange}, 'webhook endpoints were changed meanwhile')
            FROM counter, event_sequence seen`)
          ),
          ([row]): Appended => ({ queued: row!.queued > 0, waitedMillis: row!.waited_ms })
        )
      }

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

      return EventLog.of({ append, appendRows, appendInCommit, appendAtOnce, isCounterHeld: isHeld, deliveriesQueued })
    })
  )
}

/** Entries by table, each with its ordinal among the events. Ledger rows that are no events have none. */
interface Numbered {
  readonly events: ReadonlyArray<EventRow>
  readonly eventOrdinals: ReadonlyArray<number>
  readonly usage: ReadonlyArray<UsageRow>
  readonly usageOrdinals: ReadonlyArray<number | null>
  /** The number of events. */
  readonly count: number
}

const isConsumption = ({ action }: UsageRow): boolean => action === "consume"

const numbered = (entries: ReadonlyArray<Entry>): Numbered => {
  const events: Array<EventRow> = []
  const eventOrdinals: Array<number> = []
  const usage: Array<UsageRow> = []
  const usageOrdinals: Array<number | null> = []
  let count = 0
  for (const entry of entries) {
    if (!isUsage(entry)) {
      events.push(entry)
      eventOrdinals.push(++count)
    } else {
      usage.push(entry)
      usageOrdinals.push(isConsumption(entry) ? ++count : null)
    }
  }
  return { events, eventOrdinals, usage, usageOrdinals, count }
}

type CounterOf = (sql: SqlClient.SqlClient, rows: Numbered) => Statement.Fragment

/**
 * How long a commit waits for the counter, which other transactions of all nodes hold until the end of their commits,
 * with a synchronous standby for at least a round trip. PostgreSQL may wait twice, for its place in the queue and for
 * the row. Both together must take less than its time limit for the transaction.
 */
const counterWaitMillis = 800

// The condition is evaluated before the row is locked.
const counterOfCommit: CounterOf = (sql, rows) =>
  counterOf(sql, rows, sql`WHERE set_config('lock_timeout', ${String(counterWaitMillis)}, true) IS NOT NULL`)

const counterOf = (
  sql: SqlClient.SqlClient,
  { count, usage: { length } }: Numbered,
  condition: Statement.Fragment = sql``
) => sql`
  UPDATE event_sequence SET last = last + ${count}, ledger_last = ledger_last + ${length} ${condition}
  RETURNING last - ${count} AS base, ledger_last - ${length} AS ledger_base, webhooks_revision,
    1000 * date_part('epoch', clock_timestamp() - statement_timestamp()) AS waited_ms`

const eventRows = (sql: SqlClient.SqlClient, { events: rows, eventOrdinals }: Numbered) => sql`
  INSERT INTO event_log
    (sequence, event_type, actor_type, actor_id, actor_name, resource_type, resource_id, ip_address, metadata, created_at)
  SELECT counter.base + unnest(${columns.int4(eventOrdinals)}),
    unnest(${columns.text(rows.map((row) => row.event_type))}), unnest(${columns.text(rows.map((row) => row.actor_type))}),
    unnest(${columns.text(rows.map((row) => row.actor_id))}),
    unnest(${columns.text(rows.map((row) => row.actor_name ?? null))}), unnest(${columns.text(rows.map((row) => row.resource_type))}),
    unnest(${columns.text(rows.map((row) => row.resource_id))}),
    unnest(${columns.text(rows.map((row) => row.ip_address ?? null))}),
    unnest(${columns.jsonb(rows.map((row) => row.metadata))}),
    unnest(${columns.timestamptz(rows.map((row) => row.created_at))})
  FROM counter RETURNING sequence, event_type, created_at`

const usageRows = (sql: SqlClient.SqlClient, { usage: rows, usageOrdinals }: Numbered) => {
  const extended = rows.some(isExtended)
  return sql`
  INSERT INTO usage_ledger
    (sequence, license_id, feature_id, action, event_id, amount, balance_after, max_after, device_id, actor_type, actor_id,
     actor_name, request_id, occurred_at, event_sequence, event_feature_code, event_ip_address${sql.literal(extended ? ", credits, overage, reverses" : "")})
  SELECT counter.ledger_base + generate_series(1, ${rows.length}),
    unnest(${columns.text(rows.map((row) => row.license_id))}), unnest(${columns.text(rows.map((row) => row.feature_id))}),
    unnest(${columns.text(rows.map((row) => row.action))}), unnest(${columns.text(rows.map((row) => row.event_id ?? null))}),
    unnest(${columns.int8(rows.map((row) => row.amount))}), unnest(${columns.int8(rows.map((row) => row.balance_after))}),
    unnest(${columns.int8(rows.map((row) => row.max_after ?? null))}),
    unnest(${columns.text(rows.map((row) => row.device_id ?? null))}),
    unnest(${columns.text(rows.map((row) => row.actor_type))}), unnest(${columns.text(rows.map((row) => row.actor_id))}),
    unnest(${columns.text(rows.map((row) => row.actor_name ?? null))}),
    unnest(${columns.text(rows.map((row) => row.request_id))}),
    unnest(${columns.timestamptz(rows.map((row) => row.occurred_at))}),
    counter.base + unnest(${columns.int4(usageOrdinals)}),
    unnest(${columns.text(rows.map((row) => row.feature_code ?? null))}),
    unnest(${columns.text(rows.map((row) => row.ip_address ?? null))})${extended ? extensionOf(sql, rows) : sql``}
  FROM counter RETURNING event_sequence, occurred_at`
}

/** Columns that few rows have: without them the statement binds three arrays less. */
const extensionOf = (sql: SqlClient.SqlClient, rows: ReadonlyArray<UsageRow>) => sql`,
    unnest(${columns.int8(rows.map((row) => row.credits ?? null))}),
    unnest(${columns.int8(rows.map((row) => row.overage ?? null))}),
    unnest(${columns.text(rows.map((row) => row.reverses ?? null))})`

const isExtended = ({ credits, overage, reverses }: UsageRow): boolean =>
  credits !== undefined || overage !== undefined || reverses !== undefined

interface Written {
  /** The sequence number before the first of the events. */
  readonly base: number
  readonly queued: number
  /** Whether the statement's snapshot of the endpoints was up to date. */
  readonly current: boolean
}

const changes = (sql: SqlClient.SqlClient, rows: Numbered, counter: CounterOf) => {
  const logged = sql`SELECT sequence, event_type, created_at FROM logged`
  const used = sql`SELECT event_sequence, 'usage.consumed'::text, occurred_at FROM used WHERE event_sequence IS NOT NULL`
  const [isLogged, isUsed] = [rows.events.length > 0, rows.usage.length > 0]
  return sql`
    counter AS (${counter(sql, rows)}), ${isUsed ? sql`used AS (${usageRows(sql, rows)}),` : sql``}
    ${isLogged ? sql`logged AS (${eventRows(sql, rows)}),` : sql``}
    event (sequence, event_type, created_at) AS (${isLogged ? logged : sql``} ${isLogged && isUsed ? sql`UNION ALL` : sql``}
      ${isUsed ? used : sql``}),
    delivery AS (${deliveryRows(sql)})`
}

// The update returns the counter's row under the lock; `seen` is the same row in the statement's snapshot. All writers
// of all nodes wait for the counter, so the transaction must not be idle for long afterwards.
const insert = (sql: SqlClient.SqlClient, rows: Numbered, counter: CounterOf, holdLimit: number) => sql<Written>`
  WITH ${changes(sql, rows, counter)}
  SELECT counter.base, (SELECT count(*) FROM delivery) AS queued,
    counter.webhooks_revision = seen.webhooks_revision AS current, ${mayNotPause(sql, holdLimit)}
  FROM counter, event_sequence seen`
