/** The database rows of bulk jobs. */
import { Effect, Schema } from "effect"
import type { SqlClient, Statement } from "effect/sql"
import type { ProductIds } from "../../access/CurrentActor.ts"
import { ownedBy } from "../../access/productLimits/OwnedRows.ts"
import { Count } from "../../contract/api/Int64.ts"
import { type ListRequest, limitDefault, type PageRequest, pageOf } from "../../contract/api/Paging.ts"
import { columns, instant, json } from "../../platform/postgres/driver/Parameters.ts"
import { readPage } from "../../platform/postgres/queries/Pages.ts"
import { after, concurrentChange, decodeRows, equals } from "../../platform/postgres/queries/Sql.ts"
import { BulkJob, type BulkJobFilter, BulkRefusal, bulkJobSorts } from "./BulkJob.ts"
import type { LicenseDecision } from "./Decisions.ts"

/** Licenses in one transaction. More would hold the event counter for longer than other requests should wait. */
export const stepSize = 25
/** Licenses in one row: what a job reads at once. */
const partSize = 40 * stepSize

const JobRow = Schema.Struct({
  ...BulkJob.fields,
  position: Count,
  actor_type: Schema.String,
  actor_name: Schema.optionalKey(Schema.String),
  request_id: Schema.String,
  ip_address: Schema.optionalKey(Schema.String),
  attempts: Count
})
/** A job with what only the worker reads. */
export type JobRow = typeof JobRow.Type

const decodeJobs = decodeRows(BulkJob)
const decodeRowsOfJobs = decodeRows(JobRow)
const decodeRefusals = decodeRows(BulkRefusal)

const jobColumns = `id, action, filter, parameters, dry_run, reason, status, matched, changed, unchanged, refused, failure,
  actor_id AS created_by, actor_name AS created_by_name, product_ids, created_at, updated_at, ended_at`
const rowColumns = `${jobColumns}, position, actor_type, actor_name, request_id, ip_address, attempts`

export const findJob = (sql: SqlClient.SqlClient, id: string, lock = false) =>
  Effect.map(
    decodeJobs(
      sql`SELECT ${sql.literal(jobColumns)} FROM bulk_jobs WHERE id = ${id} ${sql.literal(lock ? "FOR UPDATE" : "")}`
    ),
    ([job]): BulkJob | undefined => job
  )

export const listJobs = (sql: SqlClient.SqlClient, request: ListRequest & BulkJobFilter, products: ProductIds) =>
  readPage(sql, request, {
    columns: sql.literal(jobColumns),
    table: "bulk_jobs",
    where: equals(sql, { action: request.action, status: request.status }),
    part: products && { condition: (row) => ownedBy(sql, "bulk_jobs", row, products) },
    sorts: bulkJobSorts,
    decode: decodeJobs
  })

export const listRefusals = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  jobId: string,
  { cursor, limit = limitDefault }: PageRequest
) {
  const rows = yield* decodeRefusals(sql`
    SELECT * FROM (SELECT license_id AS id, license_id, code, message, created_at FROM bulk_job_refusals WHERE job_id = ${jobId}) AS refusal
    WHERE ${after(sql, cursor)} ORDER BY created_at DESC, id DESC LIMIT ${limit + 1}`)
  const page = pageOf(
    rows.map((row) => ({ ...row, id: row.license_id })),
    limit
  )
  return { ...page, items: page.items.map(({ id: _, ...refusal }) => refusal) }
})

/**
 * Stores the licenses of a job, at most `max` and one more, and returns their number. Neighbours in a page of the table are
 * in different steps. Then the page has room for the new versions of all of them, and no index needs an entry.
 */
export const insertParts = (
  sql: SqlClient.SqlClient,
  jobId: string,
  { ids, max }: { readonly ids: Statement.Fragment; readonly max: number }
) =>
  Effect.map(
    sql<{ readonly found: number }>`
      WITH numbered AS (
        SELECT id, (row_number() OVER (ORDER BY id COLLATE "C") - 1)::integer AS n FROM (${ids} LIMIT ${max + 1}) AS found
      ), inserted AS (
        INSERT INTO bulk_job_parts (job_id, start, license_ids)
        SELECT ${jobId}, min(n), array_agg(id ORDER BY n % ${partSize / stepSize}, n)
        FROM numbered GROUP BY n / ${partSize}
        RETURNING cardinality(license_ids) AS size
      ) SELECT coalesce(sum(size), 0)::integer AS found FROM inserted`,
    ([row]) => row!.found
  )

export const insertJob = (
  sql: SqlClient.SqlClient,
  row: Pick<JobRow, "id" | "action" | "filter" | "parameters" | "dry_run" | "reason" | "product_ids" | "request_id"> &
    Pick<JobRow, "actor_type" | "actor_name" | "created_by" | "created_at" | "ip_address">
) => sql`
  INSERT INTO bulk_jobs (id, action, filter, parameters, dry_run, reason, status, matched, product_ids, actor_type, actor_id,
    actor_name, request_id, ip_address, created_at, updated_at)
  VALUES (${row.id}, ${row.action}, ${row.filter === undefined ? null : json(row.filter)}, ${json(row.parameters)}, ${row.dry_run},
    ${row.reason ?? null}, 'pending', 0, ${row.product_ids === undefined ? null : columns.text(row.product_ids)},
    ${row.actor_type}, ${row.created_by}, ${row.actor_name ?? null}, ${row.request_id}, ${row.ip_address ?? null}, ${instant(row.created_at)},
    ${instant(row.created_at)})`

/**
 * Takes the open job that has waited longest, for a node that continues it until `until`, so that several jobs take
 * turns. A node without a sign of life loses its job.
 */
export const claimJob = (sql: SqlClient.SqlClient, now: number, until: number) =>
  Effect.map(
    decodeRowsOfJobs(sql`
      UPDATE bulk_jobs SET status = 'running', leased_until = ${instant(until)}, attempts = attempts + 1
      WHERE id = (
        SELECT id FROM bulk_jobs WHERE status IN ('pending', 'running') AND coalesce(leased_until <= ${instant(now)}, TRUE)
        ORDER BY updated_at, id LIMIT 1 FOR UPDATE SKIP LOCKED
      )
      RETURNING ${sql.literal(rowColumns)}`),
    ([job]) => job
  )

/** The next licenses of a job. */
export const nextIds = (sql: SqlClient.SqlClient, { id, position }: JobRow) =>
  Effect.map(
    sql<{ readonly start: number; readonly license_ids: ReadonlyArray<string> }>`
      SELECT start, license_ids FROM bulk_job_parts WHERE job_id = ${id} AND start <= ${position}
      ORDER BY start DESC LIMIT 1`,
    ([part]) => part?.license_ids.slice(position - part.start) ?? []
  )

export interface Progress {
  readonly decisions: ReadonlyArray<LicenseDecision>
  readonly now: number
  /** Until when this node continues the job; undefined: any node may. */
  readonly until: number | undefined
}

/**
 * The statements that record how far a job has come. They fail as a concurrent change if it was canceled, or if another
 * node has taken it over: then the changes in the same transaction are not written either.
 */
export const progressOf = (
  sql: SqlClient.SqlClient,
  { id, position }: JobRow,
  { decisions, now, until }: Progress
): ReadonlyArray<Statement.Statement<object>> => {
  const refusals = decisions.flatMap(({ licenseId, refusal }) =>
    refusal === undefined ? [] : [{ licenseId, refusal }]
  )
  const changed = decisions.filter(({ isChanged }) => isChanged).length
  const advanced = sql`
    WITH advanced AS (
      UPDATE bulk_jobs SET position = position + ${decisions.length}, changed = changed + ${changed},
        refused = refused + ${refusals.length}, unchanged = unchanged + ${decisions.length - changed - refusals.length},
        attempts = 0, leased_until = ${instant(until ?? null)}, updated_at = ${instant(now)}
      WHERE id = ${id} AND position = ${position} AND status = 'running' RETURNING id
    )
    SELECT demand(EXISTS (SELECT FROM advanced), ${concurrentChange}, 'the job was canceled or taken over')`
  if (refusals.length === 0) return [advanced]
  return [
    advanced,
    sql`
      INSERT INTO bulk_job_refusals (job_id, license_id, code, message, created_at)
      SELECT ${id}, unnest(${columns.text(refusals.map(({ licenseId }) => licenseId))}),
        unnest(${columns.text(refusals.map(({ refusal }) => refusal.code))}),
        unnest(${columns.text(refusals.map(({ refusal }) => refusal.message))}), ${instant(now)}`
  ]
}

/** An attempt that only waited for the locks of other transactions says nothing about the job, so it does not count. */
export const discountAttempt = (sql: SqlClient.SqlClient, { id, position }: JobRow) =>
  sql`UPDATE bulk_jobs SET attempts = attempts - 1 WHERE id = ${id} AND position = ${position} AND attempts > 0`

/** Ends a job that is open, and returns it; undefined if another node has ended it. */
export const endJob = (
  sql: SqlClient.SqlClient,
  id: string,
  { failure, now, status }: { readonly status: BulkJob["status"]; readonly now: number; readonly failure?: string }
) =>
  Effect.map(
    decodeJobs(sql`
      UPDATE bulk_jobs SET status = ${status}, failure = ${failure ?? null}, leased_until = NULL,
        updated_at = ${instant(now)}, ended_at = ${instant(now)}
      WHERE id = ${id} AND status IN ('pending', 'running') RETURNING ${sql.literal(jobColumns)}`),
    ([job]): BulkJob | undefined => job
  )
