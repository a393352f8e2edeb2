/**
 * Commits the decisions of all actors of the node in groups. A group is one transaction of set-based statements, for
 * all decisions that arrived while the previous group was committed. Its fence makes decisions on cached state safe: a
 * license is updated only if its revision, its policy's and its catalog's are still those of the decision. A license
 * that fails the fence is left out with all its rows, and its actor decides again. Responses leave only after the
 * commit.
 */
import { Clock, Context, Effect, Exit, Layer, Random, Schedule, Semaphore } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { insertResponses } from "../../auth/idempotency/StoredResponses.ts"
import { type Entry, EventLog } from "../../events/EventLog.ts"
import { makeBatcher, type SubmitToBatch } from "../../postgres/Batcher.ts"
import { Postgres } from "../../postgres/Postgres.ts"
import { makeRevisions } from "../../postgres/Revision.ts"
import { isConcurrentChange, isForeignKeyViolation, violates } from "../../postgres/Sql.ts"
import { retryTransaction } from "../../postgres/Transactions.ts"
import { journalGroup, journalSeconds } from "../../telemetry/Metrics.ts"
import type { DeviceRecord } from "../model/LicenseRecords.ts"
import * as Fence from "./Fence.ts"
import * as Statements from "./JournalStatements.ts"
import type { PendingChanges } from "./PendingChanges.ts"

/** `stale`: decided on outdated revisions; nothing was written. */
export type Verdict = "committed" | "stale"

/** Licenses in one transaction: bounds its duration and the size of its statements. */
const groupMax = 512
/**
 * Groups in progress at the same time. A second one would wait for the first one's event counter anyway, and smaller
 * groups cost more. Also, the groups' numbers rise only if groups run one after another.
 */
const concurrency = 1

const committed = Exit.succeed<Verdict>("committed")
const stale = Exit.succeed<Verdict>("stale")

type WriteEffect = Effect.Effect<unknown, SqlError.SqlError>

export class Journal extends Context.Service<
  Journal,
  {
    /**
     * Commits one license's pending changes, in a group with all others that wait. One commit per license at a time.
     */
    readonly commit: SubmitToBatch<PendingChanges, Verdict>
    /**
     * Commits a license that other nodes have overtaken several times. Locks the license first, then runs `decide` and
     * writes the changes that it returns, if any, before anyone else can change the license. `decide` runs in the
     * transaction that holds the lock, and runs again if the transaction is retried.
     */
    locked(licenseId: string, decide: Effect.Effect<PendingChanges | undefined>): Effect.Effect<Verdict>
    /** Records that devices were seen, when nothing else was decided. Needs no fence. */
    readonly recordSeen: SubmitToBatch<ReadonlyArray<DeviceRecord>, void>
  }
>()("licensing/licenses/engine/Journal") {
  static readonly layer = Layer.effect(
    Journal,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { inOneWrite, pipelined } = yield* Postgres
      const { appendAtOnce, appendRows, deliveriesQueued } = yield* EventLog
      const nextGroup = yield* makeGroupIds
      const measure = yield* makeMeasure

      /**
       * All rows that belong to the changes, written after the fence. Events come last, because their counter's lock is
       * taken last.
       */
      const rowsOf = (
        group: ReadonlyArray<PendingChanges>,
        append: (entries: ReadonlyArray<Entry>) => WriteEffect
      ): ReadonlyArray<WriteEffect> => {
        const entries = group.flatMap((pending) => pending.entries)
        const responses = group.flatMap((pending) => pending.responses)
        return [
          ...Statements.rowsOf(sql, group),
          ...(responses.length === 0 ? [] : [insertResponses(sql, responses)]),
          ...(entries.length === 0 ? [] : [append(entries)])
        ]
      }

      /** Writes the whole group in one round trip: all of it commits, or nothing is written. */
      const writeAll = Effect.fnUntraced(function* (group: ReadonlyArray<PendingChanges>, groupId: Fence.GroupId) {
        let queued = false
        for (const pending of group) pending.revision = groupId.revision
        const append = (entries: ReadonlyArray<Entry>) =>
          Effect.map(appendAtOnce(entries), (anyQueued) => {
            queued = anyQueued
          })
        yield* inOneWrite([Fence.fenceAll(sql, groupId, group), ...rowsOf(group, append)])
        if (queued) deliveriesQueued.openUnsafe()
      })

      /** Within a transaction, writes the changes that are still current and returns the ids of their licenses. */
      const writeFenced = Effect.fnUntraced(function* (group: ReadonlyArray<PendingChanges>, groupId: Fence.GroupId) {
        for (const pending of group) pending.revision = groupId.revision
        const writtenIds = yield* Fence.fence(sql, groupId, group)
        const rows = rowsOf(
          group.filter((pending) => writtenIds.has(pending.base.license.id)),
          appendRows
        )
        yield* Effect.all(rows, { concurrency: "unbounded", discard: true })
        return writtenIds
      })

      /**
       * Succeeds if the group is committed, fails if it is not and never will be, and dies if the outcome cannot be
       * determined.
       */
      const withKnownOutcome = (write: (groupId: Fence.GroupId) => WriteEffect, next = nextGroup) =>
        Effect.suspend(() => {
          const groupId = next()
          return Effect.catch(write(groupId), (error) => {
            if (error.reason._tag !== "ConnectionError") return Effect.fail(error)
            return Effect.flatMap(wasCommitted(sql, groupId, next), (committed) =>
              committed ? Effect.sync(() => deliveriesQueued.openUnsafe()) : Effect.fail(error)
            )
          })
        })

      /**
       * Whether the last group had stale changes. While other nodes write the same licenses, the next group will have
       * some, too.
       */
      let isContested = false

      /** Commits the changes that are still current. */
      const commitCurrent = (group: ReadonlyArray<PendingChanges>) => {
        let writtenIds: ReadonlySet<string> = new Set()
        // Set before the commit, because the commit's answer may be lost.
        const setWritten = (ids: ReadonlySet<string>) => {
          writtenIds = ids
        }
        const write = (groupId: Fence.GroupId) => pipelined(Effect.map(writeFenced(group, groupId), setWritten))
        return Effect.map(retryTransaction(withKnownOutcome(write)), () => {
          isContested = writtenIds.size < group.length
          return group.map((pending): Verdict => (writtenIds.has(pending.base.license.id) ? "committed" : "stale"))
        })
      }

      const commitGroup = (group: ReadonlyArray<PendingChanges>) =>
        Effect.suspend(() =>
          // For a single license this saves nothing: the attempt as a whole nearly always succeeds.
          isContested && group.length > 1
            ? commitCurrent(group)
            : retryTransaction(withKnownOutcome((groupId) => writeAll(group, groupId))).pipe(
                Effect.as(group.map((): Verdict => "committed")),
                Effect.catchIf(isConcurrentChange, () => commitCurrent(group))
              )
        ).pipe(measure(group.length))

      /**
       * Changes that the database refuses must not fail the others of their group: then each license is tried
       * separately.
       */
      const commitAll = (group: ReadonlyArray<PendingChanges>): Effect.Effect<ReadonlyArray<Exit.Exit<Verdict>>> =>
        commitGroup(group).pipe(
          Effect.map((verdicts) => verdicts.map((verdict) => (verdict === "stale" ? stale : committed))),
          Effect.catch((error) => {
            if (group.length === 1) return Effect.succeed([isOvertaken(error) ? stale : Exit.die(error)])
            return violates(error, "usage_ledger_event_id") ? commitWithoutRepeats(group) : commitEach(group)
          })
        )

      const commitEach = (group: ReadonlyArray<PendingChanges>) =>
        Effect.map(
          Effect.forEach(group, (pending) => commitAll([pending])),
          (verdicts) => verdicts.flat()
        )

      /** Changes with an event id that was counted before are decided again; the others are committed without them. */
      const commitWithoutRepeats = Effect.fnUntraced(function* (group: ReadonlyArray<PendingChanges>) {
        const repeated = yield* Effect.orDie(Statements.licensesWithRepeatedEventIds(sql, group))
        if (repeated.size === 0) return yield* commitEach(group)
        const others = group.filter((pending) => !repeated.has(pending.base.license.id))
        const verdicts = (others.length === 0 ? [] : yield* commitAll(others)).values()
        return group.map((pending) => (repeated.has(pending.base.license.id) ? stale : verdicts.next().value!))
      })

      const nextLocked = yield* makeGroupIds
      // One at a time, because their numbers must rise as well, and because they block every group that includes the
      // same license.
      const lock = yield* Semaphore.make(1)
      const locked = (licenseId: string, decide: Effect.Effect<PendingChanges | undefined>) => {
        let verdict: Verdict = "committed"
        const write = (groupId: Fence.GroupId) =>
          pipelined(
            Effect.gen(function* () {
              verdict = "committed"
              yield* sql`SELECT FROM licenses WHERE id = ${licenseId} FOR NO KEY UPDATE`
              const pending = yield* decide
              if (pending === undefined) return
              const writtenIds = yield* writeFenced([pending], groupId)
              verdict = writtenIds.size === 0 ? "stale" : "committed"
            })
          )
        return retryTransaction(withKnownOutcome(write, nextLocked)).pipe(
          Effect.map(() => verdict),
          Effect.catch((error) => (isOvertaken(error) ? Effect.succeed<Verdict>("stale") : Effect.die(error))),
          measure(1),
          lock.withPermit
        )
      }

      const batcher = yield* makeBatcher({ concurrency, batchMax: groupMax, run: commitAll })
      const recordAllSeen = Effect.fnUntraced(function* (lists: ReadonlyArray<ReadonlyArray<DeviceRecord>>) {
        yield* retryTransaction(Statements.recordSeenDevices(sql, lists.flat()))
        return lists.map(() => undefined)
      }, Effect.orDie)
      const { submit: recordSeen } = yield* makeBatcher({ concurrency: 1, batchMax: groupMax, run: recordAllSeen })
      const commit: SubmitToBatch<PendingChanges, Verdict> = (pending, onResult) =>
        batcher.submit(pending, (exit) => onResult(Exit.isSuccess(exit) ? exit.value : Exit.failCause(exit.cause)))
      return Journal.of({ commit, locked, recordSeen })
    })
  )
}

/** Numbers the groups of this journal and draws their revisions. The journal's name is unique among all nodes. */
const makeGroupIds = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const nextRevision = yield* makeRevisions
  const journal = `${yield* Random.nextInt}.${yield* Random.nextInt}`
  let last = 0
  return (): Fence.GroupId => ({
    journal,
    number: ++last,
    at: clock.currentTimeMillisUnsafe(),
    revision: nextRevision()
  })
})

/** Records how many licenses a commit wrote and how long it took. */
const makeMeasure = Effect.contextWith((context: Context.Context<never>) =>
  Effect.map(
    Clock.Clock,
    (clock) =>
      (licenses: number) =>
      <A, E, R>(commit: Effect.Effect<A, E, R>) =>
        Effect.suspend(() => {
          const started = clock.monotonicTimeNanosUnsafe()
          return Effect.onExit(commit, () =>
            Effect.sync(() => {
              journalGroup.updateUnsafe(licenses, context)
              journalSeconds.updateUnsafe(Number(clock.monotonicTimeNanosUnsafe() - started) / 1e9, context)
            })
          )
        })
  )
)

/**
 * A unique row that another node wrote first, or a record that was deleted after it was read: the next decision will
 * see it.
 */
const isOvertaken = (error: SqlError.SqlError): boolean =>
  error.reason._tag === "UniqueViolation" || isForeignKeyViolation(error)

/**
 * Whether a group was committed whose connection was lost, perhaps during the commit. The journal's row has the group's
 * number or it has not. Statements of the group that the server has not read yet are void from then on.
 */
const wasCommitted = (sql: SqlClient.SqlClient, groupId: Fence.GroupId, nextGroup: () => Fence.GroupId) =>
  retryTransaction(
    sql.withTransaction(
      Effect.gen(function* () {
        const [row] = yield* Fence.lockLastGroup(sql, groupId)
        if (row!.last_group === groupId.number) return true
        yield* Fence.abandonGroupsBelow(sql, nextGroup())
        return false
      })
    )
  ).pipe(Effect.retry({ schedule: Schedule.spaced("200 millis"), times: 50 }), Effect.orDie)
