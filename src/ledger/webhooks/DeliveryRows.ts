/** The statements on queued deliveries. A node owns a claimed delivery until its lease ends. */
import { Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { columns, instant, int8 } from "../../platform/postgres/driver/Parameters.ts"
import { decodeRows } from "../../platform/postgres/queries/Sql.ts"
import type { Capacity } from "./ConcurrencyLimits.ts"

/** Deliveries claimed by one statement. */
export const claimMax = 512

/** An event with its claimed deliveries; the arrays are parallel. */
export interface ClaimedEvent {
  readonly sequence: number
  readonly event_type: string
  readonly actor_type: string
  readonly actor_id: string
  readonly actor_name?: string | null
  readonly resource_type: string
  readonly resource_id: string
  readonly metadata: { readonly [key: string]: unknown }
  readonly created_at: number
  readonly endpoint_ids: ReadonlyArray<string>
  readonly endpoint_revisions: ReadonlyArray<number>
  readonly attempts: ReadonlyArray<number>
}

// If a crash of the database loses a claim or an outcome, a delivery is repeated, which receivers expect. So these
// commits do not wait for the disk, which 3,000 deliveries a second would keep busy.
const asyncCommit = (sql: SqlClient.SqlClient) => sql`SELECT set_config('synchronous_commit', 'off', true)`
const configuredCommit = (sql: SqlClient.SqlClient) => sql`SELECT current_setting('synchronous_commit')`

/** Claims due deliveries, for each endpoint up to its capacity. `salt` shuffles endpoints: none is always last. */
export const claim = (
  sql: SqlClient.SqlClient,
  options: { readonly now: number; readonly leasedUntil: number; readonly capacity: Capacity; readonly salt: number }
) => {
  const { capacity, leasedUntil, now, salt } = options
  return sql<ClaimedEvent>`
    WITH commits AS MATERIALIZED (${asyncCommit(sql)}), endpoint AS MATERIALIZED (
      SELECT e.id, coalesce(known.free, ${capacity.initial}) AS free
      FROM commits, webhook_endpoints e
        LEFT JOIN unnest(${columns.text([...capacity.known.keys()])}, ${columns.int4([...capacity.known.values()])}) AS known (id, free)
          ON known.id = e.id
      WHERE e.is_active AND coalesce(known.free, 1) > 0
      ORDER BY hashtext(e.id || ${String(salt)})
    ), due AS MATERIALIZED (
      SELECT row.endpoint_id, row.sequence FROM endpoint CROSS JOIN LATERAL (
        SELECT endpoint_id, sequence FROM webhook_deliveries
        WHERE endpoint_id = endpoint.id AND status = 'pending' AND due_at <= ${instant(now)}
          AND (leased_until IS NULL OR leased_until <= ${instant(now)})
        ORDER BY due_at, sequence LIMIT endpoint.free FOR UPDATE SKIP LOCKED
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
      -- OFFSET stops the planner from reversing the join: it would read all events when it estimates few.
      SELECT sequence, event_type, actor_type, actor_id, actor_name, resource_type, resource_id, metadata, created_at
      FROM event_numbered(event_of.sequence) OFFSET 0
    ) AS event
    ORDER BY event.sequence`
}

/** The outcome of an attempt. */
export interface Outcome {
  readonly endpoint_id: string
  readonly sequence: number
  /** The end of the claim's lease. After it a node must not overwrite the state of the next owner. */
  readonly leased_until: number
  /** `pending`: retried at `due_at`. */
  readonly status: "pending" | "delivered" | "exhausted"
  readonly due_at: number
  readonly ended_at: number
  readonly failure: string | undefined
  /** Whether the receiver answered 410: it is permanently gone. */
  readonly gone: boolean
  /** The endpoint's revision that the attempt used. A failure of an earlier one does not count against the endpoint. */
  readonly revision: number
}

export interface UpdatedEndpoint {
  readonly id: string
  readonly revision: number
  readonly is_active: boolean
  readonly exhausted_in_a_row: number
}

/** The period of a row of counts. */
const periodMillis = 600_000

/**
 * Writes and counts outcomes. A success is always written, other outcomes only under the same lease. With `durably` the
 * commit waits for the disk.
 *
 * The condition for unfinished deliveries uses `finished_at`. With `status` PostgreSQL would use the index of due
 * deliveries and scan an endpoint's whole queue (20 ms instead of 1 ms for 50 rows of a long one).
 */
export const recordOutcomes = (
  sql: SqlClient.SqlClient,
  outcomes: ReadonlyArray<Outcome>,
  { now, durably }: { readonly now: number; readonly durably: boolean }
) => sql<UpdatedEndpoint>`
  WITH commits AS MATERIALIZED (${durably ? configuredCommit(sql) : asyncCommit(sql)}), outcome AS (
    SELECT outcome.* FROM commits, unnest(
      ${columns.text(outcomes.map((one) => one.endpoint_id))}, ${columns.int8(outcomes.map((one) => one.sequence))},
      ${columns.timestamptz(outcomes.map((one) => one.leased_until))}, ${columns.text(outcomes.map((one) => one.status))},
      ${columns.timestamptz(outcomes.map((one) => one.due_at))}, ${columns.timestamptz(outcomes.map((one) => one.ended_at))},
      ${columns.text(outcomes.map((one) => one.failure ?? null))}, ${columns.int8(outcomes.map((one) => one.revision))}
    ) AS outcome (endpoint_id, sequence, leased_until, status, due_at, ended_at, failure, revision)
  ), ended AS (
    UPDATE webhook_deliveries d SET status = outcome.status, attempts = d.attempts + 1, due_at = outcome.due_at, leased_until = NULL,
      finished_at = CASE WHEN outcome.status = 'pending' THEN NULL ELSE outcome.ended_at END
    FROM outcome
    WHERE d.endpoint_id = outcome.endpoint_id AND d.sequence = outcome.sequence AND d.finished_at IS NULL
      AND (outcome.status = 'delivered' OR d.leased_until = outcome.leased_until)
    RETURNING d.endpoint_id, d.status, outcome.ended_at, outcome.failure, outcome.revision
  ), tally AS MATERIALIZED (
    SELECT endpoint_id, count(*) FILTER (WHERE status = 'delivered') AS delivered,
      count(*) FILTER (WHERE status <> 'delivered') AS failed, count(*) FILTER (WHERE status = 'exhausted') AS exhausted,
      max(ended_at) FILTER (WHERE status = 'delivered') AS succeeded_at,
      max(ended_at) FILTER (WHERE status <> 'delivered') AS failed_at,
      (array_agg(failure ORDER BY ended_at DESC) FILTER (WHERE failure IS NOT NULL))[1] AS failure,
      array_agg(revision) FILTER (WHERE status = 'exhausted') AS exhausted_revisions
    FROM ended GROUP BY endpoint_id
  ), locked AS MATERIALIZED (
    -- In the order of their ids, so that two nodes cannot deadlock.
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
    exhausted_in_a_row = CASE WHEN delivered > 0 THEN 0
      ELSE exhausted_in_a_row + coalesce(cardinality(array_positions(exhausted_revisions, e.revision)), 0) END
  FROM tally JOIN locked ON locked.id = tally.endpoint_id
  WHERE e.id = tally.endpoint_id
  RETURNING e.id, e.revision, e.is_active, e.exhausted_in_a_row`

/** Records that the secrets of endpoints cannot be decrypted, which is no attempt of their deliveries. */
export const recordUnreadable = (
  sql: SqlClient.SqlClient,
  endpoints: ReadonlyArray<{ readonly id: string }>,
  now: number
) => sql`
  UPDATE webhook_endpoints SET last_failure_at = ${instant(now)}, last_failure = 'secret_unreadable'
  WHERE id = ANY(${columns.text(endpoints.map(({ id }) => id))})`

/** Releases unfinished claimed deliveries, which are due as before. */
export const release = (
  sql: SqlClient.SqlClient,
  claimed: ReadonlyArray<Pick<Outcome, "endpoint_id" | "sequence" | "leased_until">>
) => sql`
  UPDATE webhook_deliveries d SET leased_until = NULL
  FROM unnest(
    ${columns.text(claimed.map((one) => one.endpoint_id))}, ${columns.int8(claimed.map((one) => one.sequence))},
    ${columns.timestamptz(claimed.map((one) => one.leased_until))}
  ) AS taken (endpoint_id, sequence, leased_until)
  WHERE d.endpoint_id = taken.endpoint_id AND d.sequence = taken.sequence AND d.leased_until = taken.leased_until`

/** Disables endpoints, and returns those that were active. */
export const disable = (
  sql: SqlClient.SqlClient,
  endpoints: ReadonlyArray<{ readonly id: string; readonly reason: "gone" | "exhausted" }>,
  revision: number,
  now: number
) =>
  decodeDisabled(sql`
  UPDATE webhook_endpoints e SET is_active = FALSE, disabled_reason = off.reason, revision = ${int8(revision)},
    updated_at = ${instant(now)}
  FROM unnest(${columns.text(endpoints.map(({ id }) => id))}, ${columns.text(endpoints.map(({ reason }) => reason))}) AS off (id, reason)
  WHERE e.id = off.id AND e.is_active
  RETURNING e.id, e.name, e.disabled_reason`)

const decodeDisabled = decodeRows(
  Schema.Struct({ id: Schema.String, name: Schema.String, disabled_reason: Schema.String })
)
