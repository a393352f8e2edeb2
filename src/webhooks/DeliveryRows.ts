/**
 * The queue of deliveries in its table: taking what is due, writing how it ended, giving back what was not finished. A delivery
 * that was taken is a node's until its lease ends, so what a node leaves behind when it dies is taken by another one.
 */
import type { SqlClient } from "effect/sql"
import { columns, instant } from "../postgres/Parameters.ts"
import type { Capacity } from "./ConcurrencyLimits.ts"

/** Deliveries taken by one statement. */
export const claimMax = 512

/** An event with the deliveries of it that were taken; the arrays run in parallel. */
export interface Claimed {
  readonly sequence: number
  readonly event_type: string
  readonly actor_type: string
  readonly actor_id: string
  readonly resource_type: string
  readonly resource_id: string | null
  readonly metadata: { readonly [key: string]: unknown }
  readonly created_at: number
  readonly endpoint_ids: ReadonlyArray<string>
  readonly endpoint_revisions: ReadonlyArray<number>
  readonly attempts: ReadonlyArray<number>
}

// A claim or an outcome that is lost with the database's power is a delivery made twice, which receivers expect. So these
// commits do not wait for the disk: at 3,000 deliveries a second the disk would do little else.
const unhurried = (sql: SqlClient.SqlClient) => sql`SELECT set_config('synchronous_commit', 'off', true)`
const asSet = (sql: SqlClient.SqlClient) => sql`SELECT current_setting('synchronous_commit')`

/**
 * Takes what is due, for each endpoint as much as it has room for. `salt` shuffles the endpoints, so that where more is due
 * than one statement takes, none is always the last.
 */
export const claim = (
  sql: SqlClient.SqlClient,
  options: { readonly now: number; readonly leasedUntil: number; readonly rooms: Capacity; readonly salt: number }
) => {
  const { leasedUntil, now, rooms, salt } = options
  return sql<Claimed>`
    WITH unhurried AS MATERIALIZED (${unhurried(sql)}), endpoint AS MATERIALIZED (
      SELECT e.id, coalesce(known.room, ${rooms.first}) AS room
      FROM unhurried, webhook_endpoints e
        LEFT JOIN unnest(${columns.text([...rooms.known.keys()])}, ${columns.int4([...rooms.known.values()])}) AS known (id, room)
          ON known.id = e.id
      WHERE e.is_active AND coalesce(known.room, 1) > 0
      ORDER BY hashtext(e.id || ${String(salt)})
    ), due AS MATERIALIZED (
      SELECT row.endpoint_id, row.sequence FROM endpoint CROSS JOIN LATERAL (
        SELECT endpoint_id, sequence FROM webhook_deliveries
        WHERE endpoint_id = endpoint.id AND status = 'pending' AND due_at <= ${instant(now)}
          AND (leased_until IS NULL OR leased_until <= ${instant(now)})
        ORDER BY due_at, sequence LIMIT endpoint.room FOR UPDATE SKIP LOCKED
      ) AS row LIMIT ${claimMax}
    ), taken AS (
      UPDATE webhook_deliveries d SET leased_until = ${instant(leasedUntil)} FROM due
      WHERE d.endpoint_id = due.endpoint_id AND d.sequence = due.sequence
      RETURNING d.endpoint_id, d.sequence, d.attempts
    )
    SELECT event.*, event_of.endpoint_ids, event_of.endpoint_revisions, event_of.attempts
    FROM (
      SELECT sequence, array_agg(taken.endpoint_id) AS endpoint_ids, array_agg(endpoint.revision) AS endpoint_revisions,
        array_agg(attempts) AS attempts
      FROM taken JOIN webhook_endpoints endpoint ON endpoint.id = taken.endpoint_id GROUP BY sequence
    ) AS event_of CROSS JOIN LATERAL (
      -- OFFSET keeps the planner from turning this around: it would read all events where it takes them for few.
      SELECT sequence, event_type, actor_type, actor_id, resource_type, resource_id, metadata, created_at
      FROM events WHERE events.sequence = event_of.sequence OFFSET 0
    ) AS event
    ORDER BY event.sequence`
}

/** How an attempt ended. Instants are epoch milliseconds. */
export interface Outcome {
  readonly endpoint_id: string
  readonly sequence: number
  /** The lease that the delivery was taken with: who has lost it must not speak for who has it now. */
  readonly leased_until: number
  /** `pending`: it is tried again at `due_at`. */
  readonly status: "pending" | "delivered" | "exhausted"
  readonly due_at: number
  readonly ended_at: number
  readonly failure: string | undefined
  /** The receiver says that it is gone for good. */
  readonly gone: boolean
}

/** An endpoint after outcomes were written. */
export interface Tallied {
  readonly id: string
  readonly is_active: boolean
  readonly exhausted_in_a_row: number
}

/** Milliseconds that are counted together. */
const periodMillis = 600_000

/**
 * Writes outcomes and counts them. A success always holds; any other outcome only under the delivery's own lease. With `safely`
 * the commit waits for the disk, as for all other changes.
 *
 * That a delivery is not over is asked of `finished_at`: asked of `status`, the planner would look the row up in the index of
 * what is due, walking through all of an endpoint's queue (20 ms for 50 rows of a long one, against 1).
 */
export const settle = (
  sql: SqlClient.SqlClient,
  outcomes: ReadonlyArray<Outcome>,
  { now, safely }: { readonly now: number; readonly safely: boolean }
) => sql<Tallied>`
  WITH commits AS MATERIALIZED (${safely ? asSet(sql) : unhurried(sql)}), outcome AS (
    SELECT outcome.* FROM commits, unnest(
      ${columns.text(outcomes.map((one) => one.endpoint_id))}, ${columns.int8(outcomes.map((one) => one.sequence))},
      ${columns.timestamptz(outcomes.map((one) => one.leased_until))}, ${columns.text(outcomes.map((one) => one.status))},
      ${columns.timestamptz(outcomes.map((one) => one.due_at))}, ${columns.timestamptz(outcomes.map((one) => one.ended_at))},
      ${columns.text(outcomes.map((one) => one.failure ?? null))}
    ) AS outcome (endpoint_id, sequence, leased_until, status, due_at, ended_at, failure)
  ), ended AS (
    UPDATE webhook_deliveries d SET status = outcome.status, attempts = d.attempts + 1, due_at = outcome.due_at, leased_until = NULL,
      finished_at = CASE WHEN outcome.status = 'pending' THEN NULL ELSE outcome.ended_at END
    FROM outcome
    WHERE d.endpoint_id = outcome.endpoint_id AND d.sequence = outcome.sequence AND d.finished_at IS NULL
      AND (outcome.status = 'delivered' OR d.leased_until = outcome.leased_until)
    RETURNING d.endpoint_id, d.status, outcome.ended_at, outcome.failure
  ), tally AS MATERIALIZED (
    SELECT endpoint_id, count(*) FILTER (WHERE status = 'delivered') AS delivered,
      count(*) FILTER (WHERE status <> 'delivered') AS failed, count(*) FILTER (WHERE status = 'exhausted') AS exhausted,
      max(ended_at) FILTER (WHERE status = 'delivered') AS succeeded_at,
      max(ended_at) FILTER (WHERE status <> 'delivered') AS failed_at,
      (array_agg(failure ORDER BY ended_at DESC) FILTER (WHERE failure IS NOT NULL))[1] AS failure
    FROM ended GROUP BY endpoint_id
  ), locked AS MATERIALIZED (
    -- In the order of their ids, so that no two nodes wait for each other.
    SELECT e.id FROM webhook_endpoints e JOIN tally ON tally.endpoint_id = e.id ORDER BY e.id FOR NO KEY UPDATE OF e
  ), counted AS (
    INSERT INTO webhook_delivery_counts AS c (endpoint_id, period, delivered, failed, exhausted)
    SELECT endpoint_id, ${instant(now - (now % periodMillis))}, delivered, failed, exhausted
    FROM tally JOIN locked ON locked.id = tally.endpoint_id
    ON CONFLICT (endpoint_id, period) DO UPDATE SET delivered = c.delivered + excluded.delivered,
      failed = c.failed + excluded.failed, exhausted = c.exhausted + excluded.exhausted
  )
  UPDATE webhook_endpoints e SET last_success_at = GREATEST(last_success_at, succeeded_at),
    last_failure_at = GREATEST(last_failure_at, failed_at), last_failure = coalesce(failure, last_failure),
    exhausted_in_a_row = CASE WHEN delivered > 0 THEN 0 ELSE exhausted_in_a_row + exhausted END
  FROM tally JOIN locked ON locked.id = tally.endpoint_id
  WHERE e.id = tally.endpoint_id
  RETURNING e.id, e.is_active, e.exhausted_in_a_row`

/** Gives deliveries back that were taken and not finished: they are due as they were before. */
export const release = (
  sql: SqlClient.SqlClient,
  taken: ReadonlyArray<Pick<Outcome, "endpoint_id" | "sequence" | "leased_until">>
) => sql`
  UPDATE webhook_deliveries d SET leased_until = NULL
  FROM unnest(
    ${columns.text(taken.map((one) => one.endpoint_id))}, ${columns.int8(taken.map((one) => one.sequence))},
    ${columns.timestamptz(taken.map((one) => one.leased_until))}
  ) AS taken (endpoint_id, sequence, leased_until)
  WHERE d.endpoint_id = taken.endpoint_id AND d.sequence = taken.sequence AND d.leased_until = taken.leased_until`

/** Switches endpoints off. Gives those that were on. */
export const disable = (
  sql: SqlClient.SqlClient,
  endpoints: ReadonlyArray<{ readonly id: string; readonly reason: "gone" | "exhausted" }>,
  now: number
) => sql<{ readonly id: string; readonly name: string; readonly disabled_reason: string }>`
  UPDATE webhook_endpoints e SET is_active = FALSE, disabled_reason = off.reason, revision = e.revision + 1,
    updated_at = ${instant(now)}
  FROM unnest(${columns.text(endpoints.map(({ id }) => id))}, ${columns.text(endpoints.map(({ reason }) => reason))}) AS off (id, reason)
  WHERE e.id = off.id AND e.is_active
  RETURNING e.id, e.name, e.disabled_reason`
