/**
 * The append half of the event log. An event is written in the transaction of the change that it records, so the two commit
 * together or not at all, and the one counter row, locked last, makes the sequence gapless and commit-ordered over all nodes:
 * a reader that has seen n never later sees a number below n appear. The deliveries to webhook endpoints are written with it.
 * A consumption is written once: its row of the usage ledger is its event. The view `events` shows it among the others.
 */
import { Clock, Context, Effect, Latch, Layer, type Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { RequestContext } from "../api/RequestContext.ts"
import { CurrentActor } from "../auth/CurrentActor.ts"
import { columns } from "../postgres/Parameters.ts"
import { changedMeanwhile } from "../postgres/Sql.ts"
import { deliveryRows, missingDeliveries } from "./DeliveryQueue.ts"
import type { EventType, ResourceType } from "./EventType.ts"

/** An event as a service states it; who, when and for which request is added here. */
export interface NewEvent {
  readonly event_type: EventType
  readonly resource_type: ResourceType
  readonly resource_id?: string
  /** Changed field names with old and new values, ids. Never keys, tokens, secrets or bindings. */
  readonly metadata: { readonly [key: string]: Schema.Json }
}

/** An event with everything but its sequence number. */
export interface EventRow extends NewEvent {
  readonly actor_type: string
  readonly actor_id: string
  readonly ip_address: string | undefined
  readonly created_at: number
}

/** A row of the usage ledger with everything but its sequence numbers. A consumption is `usage.consumed`, too. */
export interface UsageRow {
  readonly license_id: string
  readonly feature_id: string
  readonly action: "consume" | "reset" | "top_up" | "set_limit"
  /** The caller's id of a consumption. */
  readonly event_id?: string | undefined
  readonly amount: number
  readonly balance_after: number
  readonly max_after?: number | undefined
  readonly device_id?: string | undefined
  readonly actor_type: string
  readonly actor_id: string
  readonly request_id: string
  readonly occurred_at: number
  /** What a consumption's feature was called then, and the address that it came from; in its event and nowhere else. */
  readonly feature_code?: string | undefined
  readonly ip_address?: string | undefined
}

/** What is appended, in the order in which events are numbered. */
export type Entry = EventRow | UsageRow

export const isUsage = (entry: Entry): entry is UsageRow => "action" in entry

export class EventLog extends Context.Service<
  EventLog,
  {
    /** Appends within the running transaction. The caller's other locks are all taken before: the counter's is the last. */
    append(...events: ReadonlyArray<NewEvent>): Effect.Effect<void>
    /** Appends entries that already say who and when; for the Journal, which writes on behalf of many requests at once. */
    appendRows(entries: ReadonlyArray<Entry>): Effect.Effect<void, SqlError.SqlError>
    /**
     * The same in one statement, for a transaction that nobody looks into before its commit: it fails where webhook endpoints
     * are being changed at this moment. Gives whether deliveries were written; who has committed them opens `deliveriesQueued`.
     */
    appendAtOnce(entries: ReadonlyArray<Entry>): Effect.Effect<boolean, SqlError.SqlError>
    /** Opened when this node has committed deliveries to webhook endpoints; closed by who takes them. */
    readonly deliveriesQueued: Latch.Latch
  }
>()("licensing/events/EventLog") {
  static readonly layer = Layer.effect(
    EventLog,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const deliveriesQueued = yield* Latch.make()
      const wake = Effect.sync(() => void deliveriesQueued.openUnsafe())

      const appendRows = Effect.fnUntraced(function* (entries: ReadonlyArray<Entry>) {
        if (entries.length === 0) return
        const rows = numbered(entries)
        const [written] = yield* insert(sql, rows)
        const { base, current, queued } = written!
        if (!current) yield* missingDeliveries(sql, base, base + rows.count)
        if (queued > 0 || !current) yield* sql.afterCommit(wake)
      })

      const appendAtOnce = (entries: ReadonlyArray<Entry>) => {
        if (entries.length === 0) return Effect.succeed(false)
        return Effect.map(
          sql<{ readonly queued: number }>`
            WITH ${changes(sql, numbered(entries))}
            SELECT (SELECT count(*) FROM delivery) AS queued, demand(counter.webhooks_revision = seen.webhooks_revision,
              ${changedMeanwhile}, 'webhook endpoints were changed meanwhile')
            FROM counter, event_sequence seen`,
          ([row]) => row!.queued > 0
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

      return EventLog.of({ append, appendRows, appendAtOnce, deliveriesQueued })
    })
  )
}

/** Entries by their tables, each with its place among the events; a ledger row that is no event has none. */
interface Numbered {
  readonly events: ReadonlyArray<EventRow>
  readonly places: ReadonlyArray<number>
  readonly usage: ReadonlyArray<UsageRow>
  readonly usagePlaces: ReadonlyArray<number | null>
  /** How many events there are in all. */
  readonly count: number
}

const isConsumption = ({ action }: UsageRow): boolean => action === "consume"

const numbered = (entries: ReadonlyArray<Entry>): Numbered => {
  const events: Array<EventRow> = []
  const places: Array<number> = []
  const usage: Array<UsageRow> = []
  const usagePlaces: Array<number | null> = []
  let count = 0
  for (const entry of entries) {
    if (!isUsage(entry)) {
      events.push(entry)
      places.push(++count)
    } else {
      usage.push(entry)
      usagePlaces.push(isConsumption(entry) ? ++count : null)
    }
  }
  return { events, places, usage, usagePlaces, count }
}

const counter = (sql: SqlClient.SqlClient, { count, usage: { length } }: Numbered) => sql`
  UPDATE event_sequence SET last = last + ${count}, ledger_last = ledger_last + ${length}
  RETURNING last - ${count} AS base, ledger_last - ${length} AS ledger_base, webhooks_revision`

const eventRows = (sql: SqlClient.SqlClient, { events: rows, places }: Numbered) => sql`
  INSERT INTO event_log
    (sequence, event_type, actor_type, actor_id, resource_type, resource_id, ip_address, metadata, created_at)
  SELECT counter.base + unnest(${columns.int4(places)}),
    unnest(${columns.text(rows.map((row) => row.event_type))}), unnest(${columns.text(rows.map((row) => row.actor_type))}),
    unnest(${columns.text(rows.map((row) => row.actor_id))}), unnest(${columns.text(rows.map((row) => row.resource_type))}),
    unnest(${columns.text(rows.map((row) => row.resource_id ?? null))}),
    unnest(${columns.text(rows.map((row) => row.ip_address ?? null))}),
    unnest(${columns.jsonb(rows.map((row) => row.metadata))}),
    unnest(${columns.timestamptz(rows.map((row) => row.created_at))})
  FROM counter RETURNING sequence, event_type, created_at`

const usageRows = (sql: SqlClient.SqlClient, { usage: rows, usagePlaces }: Numbered) => sql`
  INSERT INTO usage_ledger
    (sequence, license_id, feature_id, action, event_id, amount, balance_after, max_after, device_id, actor_type, actor_id,
     request_id, occurred_at, event_sequence, event_feature_code, event_ip_address)
  SELECT counter.ledger_base + generate_series(1, ${rows.length}),
    unnest(${columns.text(rows.map((row) => row.license_id))}), unnest(${columns.text(rows.map((row) => row.feature_id))}),
    unnest(${columns.text(rows.map((row) => row.action))}), unnest(${columns.text(rows.map((row) => row.event_id ?? null))}),
    unnest(${columns.int8(rows.map((row) => row.amount))}), unnest(${columns.int8(rows.map((row) => row.balance_after))}),
    unnest(${columns.int8(rows.map((row) => row.max_after ?? null))}),
    unnest(${columns.text(rows.map((row) => row.device_id ?? null))}),
    unnest(${columns.text(rows.map((row) => row.actor_type))}), unnest(${columns.text(rows.map((row) => row.actor_id))}),
    unnest(${columns.text(rows.map((row) => row.request_id))}),
    unnest(${columns.timestamptz(rows.map((row) => row.occurred_at))}),
    counter.base + unnest(${columns.int4(usagePlaces)}),
    unnest(${columns.text(rows.map((row) => row.feature_code ?? null))}),
    unnest(${columns.text(rows.map((row) => row.ip_address ?? null))})
  FROM counter RETURNING event_sequence, occurred_at`

interface Written {
  /** The sequence number before the first of the events. */
  readonly base: number
  /** How many deliveries were written. */
  readonly queued: number
  /** Whether the endpoints that were seen are those as of the events. */
  readonly current: boolean
}

const changes = (sql: SqlClient.SqlClient, rows: Numbered) => {
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

// The update gives the counter's row as it is under the lock; `seen` is the same row as of the statement's beginning.
const insert = (sql: SqlClient.SqlClient, rows: Numbered) => sql<Written>`
  WITH ${changes(sql, rows)}
  SELECT counter.base, (SELECT count(*) FROM delivery) AS queued,
    counter.webhooks_revision = seen.webhooks_revision AS current
  FROM counter, event_sequence seen`
