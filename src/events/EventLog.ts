/**
 * The append half of the event log. An event is written in the transaction of the change that it records, so the two commit
 * together or not at all, and the one counter row, locked last, makes the sequence gapless and commit-ordered over all nodes:
 * a reader that has seen n never later sees a number below n appear. The deliveries to webhook endpoints are written with it.
 */
import { Clock, Context, Effect, Latch, Layer, type Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { RequestContext } from "../api/RequestContext.ts"
import { CurrentActor } from "../auth/CurrentActor.ts"
import { columns } from "../postgres/Parameters.ts"
import { changedMeanwhile } from "../postgres/Sql.ts"
import { deliveryRows, missingDeliveries } from "../webhooks/Queueing.ts"
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

/** A row of the usage ledger with everything but its sequence number. */
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
}

export class EventLog extends Context.Service<
  EventLog,
  {
    /** Appends within the running transaction. The caller's other locks are all taken before: the counter's is the last. */
    append(...events: ReadonlyArray<NewEvent>): Effect.Effect<void>
    /**
     * Appends rows that already say who and when, and the usage that they record; for the Journal, which writes on behalf of
     * many requests at once.
     */
    appendRows(events: ReadonlyArray<EventRow>, usage: ReadonlyArray<UsageRow>): Effect.Effect<void, SqlError.SqlError>
    /**
     * The same in one statement, for a transaction that nobody looks into before its commit: it fails where webhook endpoints
     * are being changed at this moment. Gives whether deliveries were written; who has committed them opens `deliveriesQueued`.
     */
    appendAtOnce(
      events: ReadonlyArray<EventRow>,
      usage: ReadonlyArray<UsageRow>
    ): Effect.Effect<boolean, SqlError.SqlError>
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

      const appendRows = Effect.fnUntraced(function* (events: ReadonlyArray<EventRow>, usage: ReadonlyArray<UsageRow>) {
        if (events.length === 0 && usage.length === 0) return
        const [written] = yield* insert(sql, events, usage)
        const { base, current, queued } = written!
        if (!current) yield* missingDeliveries(sql, base, base + events.length)
        if (queued > 0 || !current) yield* sql.afterCommit(wake)
      })

      const appendAtOnce = (events: ReadonlyArray<EventRow>, usage: ReadonlyArray<UsageRow>) =>
        Effect.map(
          sql<{ readonly queued: number }>`
            WITH ${changes(sql, events, usage)}
            SELECT (SELECT count(*) FROM delivery) AS queued, demand(counter.webhooks_revision = seen.webhooks_revision,
              ${changedMeanwhile}, 'webhook endpoints were changed meanwhile')
            FROM counter, event_sequence seen`,
          ([row]) => row!.queued > 0
        )

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
          })),
          []
        )
      }, Effect.orDie)

      return EventLog.of({ append, appendRows, appendAtOnce, deliveriesQueued })
    })
  )
}

const counter = (sql: SqlClient.SqlClient, events: number, usage: number) => sql`
  UPDATE event_sequence SET last = last + ${events}, ledger_last = ledger_last + ${usage}
  RETURNING last - ${events} AS base, ledger_last - ${usage} AS ledger_base, webhooks_revision`

const eventRows = (sql: SqlClient.SqlClient, rows: ReadonlyArray<EventRow>) => sql`
  INSERT INTO events
    (sequence, event_type, actor_type, actor_id, resource_type, resource_id, ip_address, metadata, created_at)
  SELECT counter.base + generate_series(1, ${rows.length}),
    unnest(${columns.text(rows.map((row) => row.event_type))}), unnest(${columns.text(rows.map((row) => row.actor_type))}),
    unnest(${columns.text(rows.map((row) => row.actor_id))}), unnest(${columns.text(rows.map((row) => row.resource_type))}),
    unnest(${columns.text(rows.map((row) => row.resource_id ?? null))}),
    unnest(${columns.text(rows.map((row) => row.ip_address ?? null))}),
    unnest(${columns.jsonb(rows.map((row) => row.metadata))}),
    unnest(${columns.timestamptz(rows.map((row) => row.created_at))})
  FROM counter`

const usageRows = (sql: SqlClient.SqlClient, rows: ReadonlyArray<UsageRow>) => sql`
  INSERT INTO usage_ledger
    (sequence, license_id, feature_id, action, event_id, amount, balance_after, max_after, device_id, actor_type, actor_id,
     request_id, occurred_at)
  SELECT counter.ledger_base + generate_series(1, ${rows.length}),
    unnest(${columns.text(rows.map((row) => row.license_id))}), unnest(${columns.text(rows.map((row) => row.feature_id))}),
    unnest(${columns.text(rows.map((row) => row.action))}), unnest(${columns.text(rows.map((row) => row.event_id ?? null))}),
    unnest(${columns.int8(rows.map((row) => row.amount))}), unnest(${columns.int8(rows.map((row) => row.balance_after))}),
    unnest(${columns.int8(rows.map((row) => row.max_after ?? null))}),
    unnest(${columns.text(rows.map((row) => row.device_id ?? null))}),
    unnest(${columns.text(rows.map((row) => row.actor_type))}), unnest(${columns.text(rows.map((row) => row.actor_id))}),
    unnest(${columns.text(rows.map((row) => row.request_id))}),
    unnest(${columns.timestamptz(rows.map((row) => row.occurred_at))})
  FROM counter`

interface Written {
  /** The sequence number before the first of the events. */
  readonly base: number
  /** How many deliveries were written. */
  readonly queued: number
  /** Whether the endpoints that were seen are those as of the events. */
  readonly current: boolean
}

const changes = (sql: SqlClient.SqlClient, events: ReadonlyArray<EventRow>, usage: ReadonlyArray<UsageRow>) => sql`
  counter AS (${counter(sql, events.length, usage.length)}), ${usage.length === 0 ? sql`` : sql`usage AS (${usageRows(sql, usage)}),`}
  event AS (${eventRows(sql, events)} RETURNING sequence, event_type, created_at), delivery AS (${deliveryRows(sql)})`

// The update gives the counter's row as it is under the lock; `seen` is the same row as of the statement's beginning.
const insert = (
  sql: SqlClient.SqlClient,
  events: ReadonlyArray<EventRow>,
  usage: ReadonlyArray<UsageRow>
) => sql<Written>`
  WITH ${changes(sql, events, usage)}
  SELECT counter.base, (SELECT count(*) FROM delivery) AS queued,
    counter.webhooks_revision = seen.webhooks_revision AS current
  FROM counter, event_sequence seen`
