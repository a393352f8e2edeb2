/** Commits a decided batch by the journal, or, without changes, checks that its revisions are still current. */
import { Clock, Effect, Exit } from "effect"
import { type Refusal, refuse } from "../../contract/api/Failure.ts"
import { monotonicMillis } from "../../platform/postgres/driver/Deadline.ts"
import { refuseBusyLog } from "../../platform/postgres/queries/Sql.ts"
import { LicenseStore } from "../lookups/LicenseStore.ts"
import type { Revisions } from "../model/LicenseRecords.ts"
import type { CommitResult } from "./CommitResult.ts"
import type { DecidedBatch, SubmittedResult } from "./DecidedBatch.ts"
import { Journal } from "./Journal.ts"
import { giveUpLate, spansOf } from "./PendingCommand.ts"

/** Updates the cached state after the commit or the check. */
export const applyCommitted = ({ license, state, pending, results, stored }: DecidedBatch): DecidedBatch["results"] => {
  state.absorb(pending)
  if (pending.movesPolicy) license.state = undefined
  for (const command of stored) command.committed?.()
  return results
}

export const refuseHeld = (result: "locked" | "busy", license: string): Refusal =>
  result === "busy"
    ? refuseBusyLog
    : refuse("NOT_READY", "The license is locked by another change: send the request again in a moment.", undefined, {
        waitedFor: { waited_for: "row of the license", license }
      })

export const makeBatchSubmission = Effect.gen(function* () {
  const store = yield* LicenseStore
  const journal = yield* Journal
  const clock = yield* Clock.Clock

  return (decided: DecidedBatch, onResult: (exit: Exit.Exit<SubmittedResult>) => void): void => {
    const { commands, confirmed, license, pending, state } = decided
    const finish = (isCurrent: boolean): void => onResult(Exit.succeed(isCurrent ? applyCommitted(decided) : "stale"))
    const refuseAll = (refusal: Refusal) => onResult(Exit.succeed(decided.results.map(() => Exit.fail(refusal))))
    const spans = spansOf(commands)
    license.decided = pending.changed
    if (pending.changed) {
      pending.deadline = commands.find(({ givenUp }) => givenUp !== true)?.deadline ?? pending.deadline
      const onCommitResult = (exit: Exit.Exit<CommitResult>): void => {
        license.decided = false
        if (Exit.isSuccess(exit) && exit.value === "late") giveUpLate(commands, monotonicMillis(clock))
        if (Exit.isFailure(exit)) onResult(Exit.failCause(exit.cause))
        else if (exit.value === "locked" || exit.value === "busy") refuseAll(refuseHeld(exit.value, license.licenseId))
        else finish(exit.value === "committed")
      }
      journal.commit(pending, onCommitResult, spans)
      return
    }
    let isCurrent = true
    let failure: Exit.Exit<never> | undefined
    let remaining = (confirmed ? 0 : 1) + (pending.seen.size > 0 ? 1 : 0)
    if (remaining === 0) {
      finish(true)
      return
    }
    const onPartDone = (exit: Exit.Exit<unknown>): void => {
      if (Exit.isFailure(exit)) failure = Exit.failCause(exit.cause)
      if (--remaining > 0) return
      if (failure === undefined) finish(isCurrent)
      else onResult(failure)
    }
    if (!confirmed) {
      const onRevisions = (exit: Exit.Exit<Revisions | undefined>): void => {
        if (Exit.isSuccess(exit)) isCurrent = exit.value !== undefined && state.hasRevisions(exit.value)
        onPartDone(exit)
      }
      store.revisions(state.license.id, onRevisions, spans)
    }
    if (pending.seen.size > 0) journal.recordSeen(Array.from(pending.seen.values()), onPartDone, spans)
  }
})
