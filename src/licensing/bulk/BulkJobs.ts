/** Bulk jobs: creates them with the licenses that match, lists them, and cancels them. `BulkWorker` carries them out. */
import { Clock, Context, Effect, Layer, Option, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { CurrentActor, CurrentProducts } from "../../access/CurrentActor.ts"
import { bodyRefusal, faultsOf } from "../../access/requests/RequestFaults.ts"
import { type Refusal, refuse, refuseUnknownId } from "../../contract/api/Failure.ts"
import { Identifiers } from "../../contract/api/Identifier.ts"
import { isMetadataParameter, withMetadataFilter } from "../../contract/api/Metadata.ts"
import type { ListRequest, Page, PageRequest } from "../../contract/api/Paging.ts"
import { RequestContext } from "../../contract/api/RequestContext.ts"
import { Timestamp } from "../../contract/api/Timestamp.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import { mayTakeLong } from "../../platform/postgres/driver/Transactions.ts"
import { transaction } from "../../platform/postgres/queries/Sql.ts"
import { Workers } from "../../platform/workers/Workers.ts"
import { type LicenseFilter, selectedIds } from "../management/LicenseList.ts"
import { licenseFilters } from "../model/License.ts"
import { type BulkJob, type BulkJobCreate, type BulkJobFilter, type BulkRefusal, licensesMax } from "./BulkJob.ts"
import { endJob, findJob, insertJob, insertParts, listJobs, listRefusals } from "./JobRows.ts"

export const bulkWorker = "bulk-jobs"

export class BulkJobs extends Context.Service<
  BulkJobs,
  {
    create(input: typeof BulkJobCreate.Type): Effect.Effect<BulkJob, Refusal<"VALIDATION_ERROR" | "NOT_FOUND">>
    list(request: ListRequest & BulkJobFilter): Effect.Effect<Page<BulkJob>>
    get(id: string): Effect.Effect<BulkJob, Refusal<"NOT_FOUND">>
    refusals(id: string, request: PageRequest): Effect.Effect<Page<BulkRefusal>, Refusal<"NOT_FOUND">>
    /** What the job has changed stays changed. */
    cancel(id: string): Effect.Effect<BulkJob, Refusal<"NOT_FOUND" | "BULK_JOB_STATE_CONFLICT">>
  }
>()("licensing/licensing/bulk/BulkJobs") {
  static readonly layer = Layer.effect(
    BulkJobs,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Identifiers
      const events = yield* EventLog
      const workers = yield* Effect.serviceOption(Workers)
      const wake = Option.match(workers, { onNone: () => Effect.void, onSome: ({ wake }) => wake(bulkWorker) })

      const get = Effect.fn("BulkJobs.get")(function* (id: string) {
        return (yield* Effect.orDie(findJob(sql, id))) ?? (yield* refuseUnknownId("bulk job", id))
      })

      const selectionOf = Effect.fnUntraced(function* ({ filter, license_ids = [] }: typeof BulkJobCreate.Type) {
        if (filter === undefined) return sql`SELECT DISTINCT unnest(${columns.text(license_ids)}) AS id`
        const products = yield* CurrentProducts
        return selectedIds(sql, yield* decodeFilter(filter), products, yield* Clock.currentTimeMillis)
      })

      const create = Effect.fn("BulkJobs.create")(function* (input: typeof BulkJobCreate.Type) {
        const { action, dry_run = false, filter, parameters = {}, reason } = input
        const selection = yield* selectionOf(input)
        const [id, now] = [yield* ids.make("bulkJob"), yield* Clock.currentTimeMillis]
        const [product_ids, { actor_id, actor_name, actor_type }] = [yield* CurrentProducts, yield* CurrentActor]
        const { clientAddress, requestId } = yield* RequestContext
        const store = Effect.gen(function* () {
          if (parameters.policy_id !== undefined) yield* refuseUnknownPolicy(sql, parameters.policy_id)
          yield* insertJob(sql, {
            ...{
              id,
              action,
              parameters,
              dry_run,
              created_by: actor_id,
              actor_type,
              request_id: requestId,
              created_at: now
            },
            ...(filter === undefined ? undefined : { filter: kept(filter) }),
            ...(actor_name === undefined ? undefined : { actor_name }),
            ...(reason === undefined ? undefined : { reason }),
            ...(product_ids === undefined ? undefined : { product_ids }),
            ...(clientAddress === undefined ? undefined : { ip_address: clientAddress })
          })
          yield* readMany(sql)
          const matched = yield* insertParts(sql, id, { ids: selection, max: licensesMax })
          if (matched > licensesMax) return yield* refuseTooMany(sql, selection)
          yield* sql`UPDATE bulk_jobs SET matched = ${matched} WHERE id = ${id}`
          yield* events.append({
            event_type: "bulk_job.created",
            resource_type: "bulk_job",
            resource_id: id,
            metadata: { action, dry_run, matched, ...(reason === undefined ? undefined : { reason }) }
          })
          yield* sql.afterCommit(wake)
          return (yield* findJob(sql, id))!
        })
        return yield* transaction(sql)(store)
      })

      const cancel = Effect.fn("BulkJobs.cancel")(function* (id: string) {
        const job = (yield* findJob(sql, id, true)) ?? (yield* refuseUnknownId("bulk job", id))
        if (job.ended_at !== undefined)
          return yield* refuse(
            "BULK_JOB_STATE_CONFLICT",
            `The job is ${job.status}: only a job that is pending or running can be canceled.`,
            job.status
          )
        const canceled = (yield* endJob(sql, id, { status: "canceled", now: yield* Clock.currentTimeMillis }))!
        yield* events.append(endedEvent(canceled))
        return canceled
      }, transaction(sql))

      return BulkJobs.of({
        create,
        list: Effect.fn("BulkJobs.list")(function* (request) {
          return yield* listJobs(sql, request, yield* CurrentProducts)
        }, Effect.orDie),
        get,
        refusals: Effect.fn("BulkJobs.refusals")(function* (id, request) {
          yield* get(id)
          return yield* Effect.orDie(listRefusals(sql, id, request))
        }),
        cancel
      })
    })
  )
}

/** The event of a job that has ended. */
export const endedEvent = ({ changed, id, matched, refused, status, unchanged }: BulkJob) =>
  ({
    event_type: `bulk_job.${status as "completed" | "canceled" | "failed"}`,
    resource_type: "bulk_job",
    resource_id: id,
    metadata: { matched, changed, unchanged, refused }
  }) as const

const Filter = withMetadataFilter(
  Schema.Struct({
    ...licenseFilters,
    created_after: Schema.optionalKey(Timestamp),
    created_before: Schema.optionalKey(Timestamp)
  })
)

const decodeFilter = (filter: {
  readonly [name: string]: string
}): Effect.Effect<LicenseFilter, Refusal<"VALIDATION_ERROR">> =>
  Schema.decodeUnknownEffect(Filter, { onExcessProperty: "error" })(filter).pipe(
    Effect.catch(({ issue }) => {
      const { details = [], message } = bodyRefusal(faultsOf(issue, ["filter"], filter))
      return Effect.fail(refuse("VALIDATION_ERROR", message, details[0]?.path ?? "filter", { details }))
    })
  )

/** The text of a search and a value of metadata may be a person's name, which an erasure would have to find. */
const kept = (filter: { readonly [name: string]: string }) =>
  Object.fromEntries(
    Object.entries(filter).map(([name, text]) => [name, name === "q" || isMetadataParameter(name) ? "…" : text])
  )

/** Selects up to a million rows: not like the other statements, which are planned as look-ups of a few. */
const readMany = (sql: SqlClient.SqlClient) =>
  Effect.andThen(
    mayTakeLong(sql),
    sql`SELECT set_config(name, 'on', true) FROM unnest('{enable_seqscan,enable_hashjoin,enable_mergejoin}'::text[]) AS name
      UNION ALL SELECT set_config('plan_cache_mode', 'force_custom_plan', true)`
  )

const refuseTooMany = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  selection: ReturnType<typeof selectedIds>
) {
  const [row] = yield* sql<{ readonly count: number }>`SELECT count(*) AS count FROM (${selection}) AS found`
  const message = `The filter matches ${row?.count} licenses, and a job takes at most ${licensesMax}: narrow the filter.`
  return yield* refuse("VALIDATION_ERROR", message, "filter")
})

const refuseUnknownPolicy = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, id: string) {
  const found = yield* sql`SELECT FROM policies WHERE id = ${id}`
  if (found.length === 0) yield* refuseUnknownId("policy", id, "parameters.policy_id")
})
