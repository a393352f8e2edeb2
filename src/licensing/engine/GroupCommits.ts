/**
 * Commits groups of changes. If a commit fails, it isolates the licenses that cause the failure: first the whole group
 * is tried, then without stale changes, without locked licenses, without repeated event ids, and then each license
 * separately.
 */
import { Clock, type Context, Effect, Exit } from "effect"
import { SqlClient } from "effect/sql"
import { isConcurrentChange, isLockTimeout, isLogBusy } from "../../platform/postgres/queries/Sql.ts"
import { journalGroup, journalSeconds } from "../../platform/telemetry/Metrics.ts"
import { type CommitResult, exits, isOvertaken, type WhileLogBusy } from "./CommitResult.ts"
import { type GroupId, lockFree } from "./Fence.ts"
import type { GroupIds } from "./GroupOutcome.ts"
import type { GroupWrites } from "./GroupWrites.ts"
import * as Statements from "./JournalStatements.ts"
import type { PendingChanges } from "./PendingChanges.ts"

export interface CommitNeeds {
  readonly writes: GroupWrites
  readonly ids: GroupIds
  readonly whileLogBusy: WhileLogBusy
  readonly measure: Effect.Success<typeof makeMeasure>
}

/** Records how many licenses a commit wrote and how long it took. */
export const makeMeasure = Effect.contextWith((context: Context.Context<never>) =>
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

export const makeGroupCommits = Effect.fnUntraced(function* ({ ids, measure, whileLogBusy, writes }: CommitNeeds) {
  const sql = yield* SqlClient.SqlClient
  const { inTransaction, writeAll, writeFenced } = writes
  const { nextAlone, nextGroup } = ids

  /** Whether the last group had stale changes. Then the next group probably has some, too. */
  let isContested = false

  /** Commits the changes that are still current. */
  const commitCurrent = (group: ReadonlyArray<PendingChanges>) => {
    let writtenIds: ReadonlySet<string> = new Set()
    // Set before the commit, because the response to the commit may be lost.
    const setWritten = (ids: ReadonlySet<string>) => {
      writtenIds = ids
    }
    const write = (groupId: GroupId) => Effect.map(writeFenced(group, groupId), setWritten)
    return Effect.map(inTransaction(write, nextGroup), () => {
      isContested = writtenIds.size < group.length
      return group.map((pending): CommitResult => (writtenIds.has(pending.base.license.id) ? "committed" : "stale"))
    })
  }

  /** Commits the changes that are still current and whose licenses no other transaction holds. */
  const commitFree = (group: ReadonlyArray<PendingChanges>, next: () => GroupId) => {
    let results: ReadonlyArray<CommitResult> = []
    const write = Effect.fnUntraced(function* (groupId: GroupId) {
      const freeIds = yield* lockFree(sql, group)
      const free = group.filter(({ base }) => freeIds.has(base.license.id))
      const writtenIds = free.length === 0 ? freeIds : yield* writeFenced(free, groupId)
      results = group.map(({ base: { license } }) =>
        writtenIds.has(license.id) ? "committed" : freeIds.has(license.id) ? "stale" : "locked"
      )
    })
    return inTransaction(write, next).pipe(
      Effect.map(() => results),
      // A row of a license, such as a device, is locked.
      Effect.catchIf(isLockTimeout, () => Effect.succeed(group.map((): CommitResult => "locked")))
    )
  }

  const commitGroup = (group: ReadonlyArray<PendingChanges>) =>
    Effect.suspend(() =>
      // For a single license this saves nothing, because a commit of the whole group nearly always succeeds.
      isContested && group.length > 1
        ? commitCurrent(group)
        : writeAll(group, nextGroup).pipe(
            Effect.as(group.map((): CommitResult => "committed")),
            Effect.catchIf(isConcurrentChange, () => commitCurrent(group))
          )
    ).pipe(
      Effect.catchIf(isLockTimeout, () => commitFree(group, nextGroup)),
      whileLogBusy,
      Effect.catchIf(isLogBusy, () => Effect.succeed(group.map((): CommitResult => "busy"))),
      measure(group.length)
    )

  /** If the database refuses the group, tries each license separately, so that one change does not fail the others. */
  const commitAll = (group: ReadonlyArray<PendingChanges>): Effect.Effect<ReadonlyArray<Exit.Exit<CommitResult>>> =>
    commitGroup(group).pipe(
      Effect.map((results) => results.map((result) => exits[result])),
      Effect.catch((error) => {
        // The epoch was retired, so the number was refused and nothing was written.
        if (isConcurrentChange(error)) return Effect.succeed(group.map(() => exits.stale))
        if (group.length === 1) return Effect.succeed([isOvertaken(error) ? exits.stale : Exit.die(error)])
        return Statements.repeatsEventId(error) ? commitWithoutRepeats(group) : commitEach(group)
      })
    )

  const commitEach = (group: ReadonlyArray<PendingChanges>) =>
    Effect.map(
      Effect.forEach(group, (pending) => commitAll([pending])),
      (results) => results.flat()
    )

  /** Commits the changes without repeated event ids; the others need a new decision. */
  const commitWithoutRepeats = Effect.fnUntraced(function* (group: ReadonlyArray<PendingChanges>) {
    const repeated = yield* Effect.orDie(Statements.licensesWithRepeatedEventIds(sql, group))
    if (repeated.size === 0) return yield* commitEach(group)
    const others = group.filter((pending) => !repeated.has(pending.base.license.id))
    const results = (others.length === 0 ? [] : yield* commitAll(others)).values()
    return group.map((pending) => (repeated.has(pending.base.license.id) ? exits.stale : results.next().value!))
  })

  /** Commits a single license that was locked, as a separate group. */
  const commitAlone = (pending: PendingChanges): Effect.Effect<Exit.Exit<CommitResult>> =>
    commitFree([pending], nextAlone).pipe(
      Effect.map(([result]) => exits[result!]),
      Effect.catch((error) =>
        Effect.succeed(isLogBusy(error) ? exits.busy : isOvertaken(error) ? exits.stale : Exit.die(error))
      )
    )

  return { commitAll, commitAlone }
})
