/**
 * Carries out bulk jobs, license by license in the order of their ids. The changes of a step are committed together with
 * the job's progress, so each license is changed exactly once, whenever a node dies and whichever node continues.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { dayMillis } from "../../contract/api/Timestamp.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { instant } from "../../platform/postgres/driver/Parameters.ts"
import { isConcurrentChange, isLockTimeout, isLogBusy, transaction } from "../../platform/postgres/queries/Sql.ts"
import { makeThrottle } from "../../platform/workers/Exclusive.ts"
import { Journal } from "../engine/Journal.ts"
import type { Origin } from "../rules/LicenseCommand.ts"
import { actions } from "./Actions.ts"
import { endedEvent } from "./BulkJobs.ts"
import { type LicenseDecision, makeManyDecisions, type SharedCommand } from "./Decisions.ts"
import { claimJob, discountAttempt, endJob, type JobRow, nextIds, progressOf, stepSize } from "./JobRows.ts"

/** The pause after a part of a dry run, as a multiple of its duration. No request waits for its commits. */
const dryRunPauseFactor = 0.1
/** A step takes less than a second. A node without progress for longer has crashed. */
const leaseMillis = 10_000
/** After this many attempts without progress the cause is in the job itself. */
const attemptsMax = 10
/** Jobs that have ended are kept for this long, with their refusals. */
const retentionDays = 90

export class BulkWorker extends Context.Service<
  BulkWorker,
  {
    /** Goes through all open jobs, and deletes those past their retention. */
    readonly pass: Effect.Effect<void, unknown>
  }
>()("licensing/licensing/bulk/BulkWorker") {
  static readonly layer = Layer.effect(
    BulkWorker,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { many } = yield* Journal
      const events = yield* EventLog
      const { decide, decideLocked } = yield* makeManyDecisions
      const throttles = { change: makeThrottle(), dryRun: makeThrottle(dryRunPauseFactor) }

      const end = (job: JobRow, outcome: { readonly status: "completed" | "failed"; readonly failure?: string }) =>
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const ended = yield* endJob(sql, job.id, { ...outcome, now })
          if (ended === undefined) return
          const { metadata, ...event } = endedEvent(ended)
          const { actor_name, actor_type, created_by: actor_id, ip_address } = job
          const origin = { actor_type, actor_id, actor_name, ip_address }
          yield* events.appendRows([
            { ...event, ...origin, created_at: now, metadata: { ...metadata, request_id: job.request_id } }
          ])
        }).pipe(transaction(sql))

      /** Changes the licenses, and moves the job behind them. */
      const step = Effect.fnUntraced(function* (job: JobRow, ids: ReadonlyArray<string>, isLast: boolean) {
        const command = commandOf(job)
        const changesOf = (decisions: ReadonlyArray<LicenseDecision>) =>
          Effect.map(Clock.currentTimeMillis, (now) => ({
            group: decisions.flatMap(({ changes }) => changes ?? []),
            statements: progressOf(sql, job, { decisions, now, until: isLast ? undefined : now + leaseMillis })
          }))
        const decisions = Effect.forEach(chunksOf(ids), (chunk) => decide(chunk, command), { concurrency: 2 })
        yield* Effect.map(decisions, (chunks) => chunks.flat()).pipe(
          Effect.flatMap(changesOf),
          Effect.flatMap(many.commit),
          Effect.catchIf(isOvertaken, () => many.locked(ids, Effect.flatMap(decideLocked(ids, command), changesOf)))
        )
        return { ...job, position: job.position + ids.length }
      })

      /** Goes through the next part of a job. */
      const work = Effect.fnUntraced(function* (claimed: JobRow) {
        let job = claimed
        const ids = yield* nextIds(sql, job)
        if (ids.length === 0) return yield* end(job, { status: "completed" })
        const throttle = job.dry_run ? throttles.dryRun : throttles.change
        // A dry run holds no locks.
        const size = job.dry_run ? ids.length : stepSize
        for (let start = 0; start < ids.length; start += size) {
          const isLast = start + size >= ids.length
          job = yield* throttle(step(job, ids.slice(start, start + size), isLast))
        }
      })

      const attempt = (job: JobRow) =>
        Effect.tapError(work(job), (error) =>
          Effect.when(discountAttempt(sql, job), Effect.succeed(isLockTimeout(error) || isLogBusy(error)))
        )

      const claim = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        return yield* claimJob(sql, now, now + leaseMillis)
      })

      const pass = Effect.gen(function* () {
        for (let job = yield* claim; job !== undefined; job = yield* claim) {
          if (job.attempts > attemptsMax) {
            yield* Effect.logError("A bulk job failed after its last attempt.", { job: job.id })
            yield* end(job, { status: "failed", failure: "The job failed: report its id to the operator." })
          } else yield* Effect.catchIf(attempt(job), isConcurrentChange, () => Effect.void)
        }
        const before = instant((yield* Clock.currentTimeMillis) - retentionDays * dayMillis)
        yield* sql`DELETE FROM bulk_jobs WHERE ended_at < ${before}`
      })
      return BulkWorker.of({ pass: Effect.withSpan(pass, "BulkWorker.pass") })
    })
  )
}

/** Licenses that are read at once. While the process decides them, the database reads the next ones. */
const chunkSize = 250

const chunksOf = (ids: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> =>
  Array.from({ length: Math.ceil(ids.length / chunkSize) }, (_, index) =>
    ids.slice(index * chunkSize, (index + 1) * chunkSize)
  )

const isOvertaken = (error: SqlError.SqlError): boolean =>
  isConcurrentChange(error) || isLockTimeout(error) || isLogBusy(error)

const commandOf = (job: JobRow): SharedCommand => {
  const { commandOf, needsBare, rule } = actions[job.action]
  const { actor_name, actor_type, created_by, id, ip_address, parameters, product_ids, request_id } = job
  return {
    rule,
    isDryRun: job.dry_run,
    isBare: job.dry_run && needsBare,
    commandOf: (license) => commandOf(parameters, license),
    origin: {
      actor_type: actor_type as Origin["actor_type"],
      actor_id: created_by,
      actor_name,
      request_id,
      ip_address,
      bulk_job_id: id
    },
    reaches: (license) => product_ids === undefined || product_ids.includes(license.product_id)
  }
}
