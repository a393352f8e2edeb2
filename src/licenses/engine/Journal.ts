/**
 * Commits the decisions of all actors of the node in groups. A group is one transaction of set-based statements, for
 * all decisions that arrived while the previous group was committed. Its fence makes decisions on cached state safe: a
 * license is updated only if its revision, its policy's and its catalog's are still those of the decision. A license
 * that fails the fence is left out with all its rows, and its actor decides again. Responses leave only after the
 * commit.
 */
import { Clock, Context, Effect, Exit, Layer, Semaphore } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { insertResponses } from "../../auth/idempotency/StoredResponses.ts"
import { type Entry, EventLog } from "../../events/EventLog.ts"
import { makeBatcher, type SubmitToBatch } from "../../postgres/Batcher.ts"
import { Postgres } from "../../postgres/Postgres.ts"
import { isConcurrentChange, isLockTimeout } from "../../postgres/Sql.ts"
import { retryTransaction } from "../../postgres/Transactions.ts"
import { journalGroup, journalSeconds } from "../../telemetry/Metrics.ts"
import type { DeviceRecord } from "../model/LicenseRecords.ts"
import { groupMax, makeCommitQueue, makeGathering } from "./CommitQueue.ts"
import * as Fence from "./Fence.ts"
import { makeGroupIds, makeKnownOutcomes, makeRetire } from "./GroupOutcome.ts"
import * as Statements from "./JournalStatements.ts"
import type { PendingChanges } from "./PendingChanges.ts"
import { changesOfEarlierTerm, isOfTerm, makeTerm, renewingTerm, type Term } from "./Term.ts"
import { exits, isOvertaken, type LockedVerdict, makeLockedRetry, type Verdict } from "./Verdict.ts"

const seenBatches = { name: "journal.record_seen", concurrency: 1, batchMax: groupMax }

/** How long `locked` waits for the lock: less than PostgreSQL gives to the whole transaction, whose connection it would end. */
const lockTimeoutMillis = 1_000

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
    locked(licenseId: string, decide: Effect.Effect<PendingChanges | undefined>): Effect.Effect<LockedVerdict>
    /** Records that devices were seen, when nothing else was decided. Needs no fence. */
    readonly recordSeen: SubmitToBatch<ReadonlyArray<DeviceRecord>, void>
    readonly term: Term
    /** Ends the term of any node: when this returns, what it committed can be read, and nothing more of it will be. */
    retire(term: string): Effect.Effect<void>
  }
>()("licensing/licenses/engine/Journal") {
  static readonly layer = Layer.effect(
    Journal,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { inOneWrite, pipelined } = yield* Postgres
      const { appendAtOnce, appendRows, deliveriesQueued } = yield* EventLog
      const term = yield* makeTerm
      const ofTerm = renewingTerm(term)
      const { nextAlone, nextGroup, nextLocked } = yield* makeGroupIds(term)
      const withKnownOutcome = yield* makeKnownOutcomes
      const [measure, gathering] = [yield* makeMeasure, yield* makeGathering]

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
        if (!group.every(isOfTerm(groupId))) return yield* Effect.fail(changesOfEarlierTerm)
        let queued = false
        for (const pending of group) pending.revision = groupId.revision
        const append = (entries: ReadonlyArray<Entry>) =>
          Effect.map(appendAtOnce(entries), (appended) => {
            queued = appended.queued
            gathering.waited(appended.waitedMillis)
          })
        const fenced = [...Fence.lockTargets(sql, group), Fence.fenceAll(sql, groupId, group)]
        yield* inOneWrite([...fenced, ...rowsOf(group, append)])
        if (queued) deliveriesQueued.openUnsafe()
      })

      /** Within a transaction, writes the changes that are still current and returns the ids of their licenses. */
      const writeFenced = Effect.fnUntraced(function* (all: ReadonlyArray<PendingChanges>, groupId: Fence.GroupId) {
        const group = all.filter(isOfTerm(groupId))
        if (group.length === 0) return noLicenses
        for (const pending of group) pending.revision = groupId.revision
        yield* Effect.all(Fence.lockTargets(sql, group), { discard: true })
        const writtenIds = yield* Fence.fence(sql, groupId, group)
        const rows = rowsOf(
          group.filter((pending) => writtenIds.has(pending.base.license.id)),
          appendRows
        )
        yield* Effect.all(rows, { concurrency: "unbounded", discard: true })
        return writtenIds
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
        const write = ofTerm((groupId) => pipelined(Effect.map(writeFenced(group, groupId), setWritten)))
        return Effect.map(retryTransaction(withKnownOutcome(write, nextGroup)), () => {
          isContested = writtenIds.size < group.length
          return group.map((pending): Verdict => (writtenIds.has(pending.base.license.id) ? "committed" : "stale"))
        })
      }

      /** Commits the changes that are still current and whose licenses no other transaction holds. */
      const commitFree = (group: ReadonlyArray<PendingChanges>, next = nextGroup) => {
        let verdicts: ReadonlyArray<Verdict> = []
        const write = ofTerm((groupId) =>
          pipelined(
            Effect.gen(function* () {
              const freeIds = yield* Fence.lockFree(sql, group)
              const free = group.filter(({ base }) => freeIds.has(base.license.id))
              const writtenIds = free.length === 0 ? freeIds : yield* writeFenced(free, groupId)
              verdicts = group.map(({ base: { license } }) =>
                writtenIds.has(license.id) ? "committed" : freeIds.has(license.id) ? "stale" : "locked"
              )
            })
          )
        )
        return retryTransaction(withKnownOutcome(write, next)).pipe(
          Effect.map(() => verdicts),
          // The event counter is locked, or a row that belongs to a license.
          Effect.catchIf(isLockTimeout, () => Effect.succeed(group.map((): Verdict => "locked")))
        )
      }

      const commitGroup = (group: ReadonlyArray<PendingChanges>) =>
        Effect.suspend(() =>
          // For a single license this saves nothing: the attempt as a whole nearly always succeeds.
          isContested && group.length > 1
            ? commitCurrent(group)
            : retryTransaction(withKnownOutcome((groupId) => writeAll(group, groupId), nextGroup)).pipe(
                Effect.as(group.map((): Verdict => "committed")),
                Effect.catchIf(isConcurrentChange, () => commitCurrent(group))
              )
        ).pipe(
          Effect.catchIf(isLockTimeout, () => commitFree(group)),
          measure(group.length)
        )

      /**
       * Changes that the database refuses must not fail the others of their group: then each license is tried
       * separately.
       */
      const commitAll = (group: ReadonlyArray<PendingChanges>): Effect.Effect<ReadonlyArray<Exit.Exit<Verdict>>> =>
        commitGroup(group).pipe(
          Effect.map((verdicts) => verdicts.map((verdict) => exits[verdict])),
          Effect.catch((error) => {
            // The number was refused, so nothing was written: the term was retired.
            if (isConcurrentChange(error)) return Effect.succeed(group.map(() => exits.stale))
            if (group.length === 1) return Effect.succeed([isOvertaken(error) ? exits.stale : Exit.die(error)])
            return Statements.repeatsEventId(error) ? commitWithoutRepeats(group) : commitEach(group)
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
        return group.map((pending) => (repeated.has(pending.base.license.id) ? exits.stale : verdicts.next().value!))
      })

      // One at a time, because their numbers must rise as well, and because they block every group that includes the
      // same license.
      const lock = yield* Semaphore.make(1)
      const locked = (licenseId: string, decide: Effect.Effect<PendingChanges | undefined>) => {
        let verdict: LockedVerdict = "committed"
        const write = ofTerm((groupId) =>
          pipelined(
            Effect.gen(function* () {
              verdict = "committed"
              yield* sql`SELECT set_config('lock_timeout', ${String(lockTimeoutMillis)}, true)`
              yield* sql`SELECT FROM licenses WHERE id = ${licenseId} FOR NO KEY UPDATE`
              const pending = yield* decide
              if (pending === undefined) return
              const writtenIds = yield* writeFenced([pending], groupId)
              verdict = writtenIds.size === 0 ? "stale" : "committed"
            })
          )
        )
        return retryTransaction(withKnownOutcome(write, nextLocked)).pipe(
          Effect.map(() => verdict),
          Effect.catch((error) => {
            if (isLockTimeout(error)) return Effect.succeed<LockedVerdict>("locked")
            return isOvertaken(error) ? Effect.succeed<LockedVerdict>("stale") : Effect.die(error)
          }),
          measure(1),
          lock.withPermit
        )
      }

      const retryLocked = yield* makeLockedRetry((pending: PendingChanges) =>
        commitFree([pending], nextAlone).pipe(
          Effect.map(([verdict]) => exits[verdict!]),
          Effect.catch((error) => Effect.succeed(isOvertaken(error) ? exits.stale : Exit.die(error)))
        )
      )

      const recordAllSeen = Effect.fnUntraced(function* (lists: ReadonlyArray<ReadonlyArray<DeviceRecord>>) {
        const devices = lists.flat()
        yield* Effect.catchIf(retryTransaction(Statements.recordSeenDevices(sql, devices)), isLockTimeout, () =>
          retryTransaction(Statements.recordFreeSeenDevices(sql, devices))
        )
        return lists.map(() => undefined)
      }, Effect.orDie)
      const { submit: recordSeen } = yield* makeBatcher({ ...seenBatches, run: recordAllSeen })
      const commit = yield* makeCommitQueue(commitAll, retryLocked, gathering)
      return Journal.of({ commit, locked, recordSeen, term, retire: yield* makeRetire })
    })
  )
}

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

const noLicenses: ReadonlySet<string> = new Set()
