/**
 * A batch: all pending commands of one license, decided and committed together. A batch without changes checks that the
 * revisions of its decision are still current in the database, unless a prefetch has checked them. So the database
 * confirms every result, with any number of nodes.
 */

import { Context, Effect, Exit, Result } from "effect"
import { refuse } from "../../contract/api/Failure.ts"
import { applyCommitted, makeBatchSubmission, refuseHeld } from "./BatchSubmission.ts"
import {
  type BatchResult,
  type CachedLicense,
  type DecidedBatch,
  dropOutdated,
  isDecided,
  makeBatchDecisions,
  type SubmittedResult
} from "./DecidedBatch.ts"
import { Journal } from "./Journal.ts"
import type { CommandResult, PendingCommand } from "./PendingCommand.ts"

/** Attempts at a batch whose license other nodes keep changing. */
const attemptsMax = 8
/**
 * Attempts without a lock. A node with the license in memory is always faster than a node that has to load it, so later
 * attempts lock the license. Only simulations lower this number, to use the lock more often.
 */
export const UnlockedAttempts = Context.Reference("licensing/licensing/engine/UnlockedAttempts", {
  defaultValue: () => 5
})

export const makeCommandBatches = Effect.gen(function* () {
  const journal = yield* Journal
  const { decideBatch, decideFromMemory, decideLocked } = yield* makeBatchDecisions
  const submit = yield* makeBatchSubmission
  const unlockedAttempts = yield* UnlockedAttempts

  /**
   * Starts a batch without a fiber, which saves a tenth of a request's CPU time. Returns false, and has no effect, if
   * the batch needs look-ups or stores responses, which few batches do.
   */
  const startFromMemory = (
    license: CachedLicense,
    commands: ReadonlyArray<PendingCommand>,
    onResult: (exit: Exit.Exit<SubmittedResult>) => void
  ): boolean => {
    const decided = decideFromMemory(license, commands)
    if (decided === undefined) return false
    submit(decided, onResult)
    return true
  }

  const submitAndWait = (decided: DecidedBatch) => Effect.callback<SubmittedResult>((resume) => submit(decided, resume))

  /** Decides and submits the batch once. Returns the results, or why another decision is needed. */
  const attempt = Effect.fnUntraced(function* (
    license: CachedLicense,
    commands: ReadonlyArray<PendingCommand>,
    checkEventIds: boolean
  ) {
    const decided = yield* decideBatch(license, commands, checkEventIds)
    return isDecided(decided) ? yield* submitAndWait(decided) : decided
  })

  /** Decides and submits the batch with the license locked, because other nodes keep changing it. */
  const attemptLocked = Effect.fnUntraced(function* (license: CachedLicense, commands: ReadonlyArray<PendingCommand>) {
    let decided: DecidedBatch | BatchResult = "stale"
    const decide = Effect.map(decideLocked(license, commands), (batch) => {
      decided = batch
      return isDecided(batch) && batch.pending.changed ? batch.pending : undefined
    })
    const result = yield* journal.locked(license.licenseId, decide)
    if (result === "stale") return "stale"
    if (result === "locked" || result === "busy") {
      return commands.map((): CommandResult => Exit.fail(refuseHeld(result, license.licenseId)))
    }
    const last = decided as DecidedBatch | BatchResult
    if (!isDecided(last)) return last
    return last.pending.changed ? applyCommitted(last) : yield* submitAndWait(last)
  })

  const run = Effect.fnUntraced(function* (
    license: CachedLicense,
    commands: ReadonlyArray<PendingCommand>,
    attemptsBefore: number
  ) {
    for (let attempts = attemptsBefore; attempts < attemptsMax; attempts++) {
      license.decided = false
      if (commands.every(({ givenUp }) => givenUp)) break
      const results = yield* attempts < unlockedAttempts
        ? attempt(license, commands, attempts > 0)
        : attemptLocked(license, commands)
      if (results === "stale") dropOutdated(license)
      else if (results !== "eventIdsNeeded") return results
    }
    return commands.map(
      (): CommandResult =>
        Exit.fail(refuse("NOT_READY", "Many requests change the license at the same time: try again."))
    )
  })

  return {
    run,
    startFromMemory: (
      license: CachedLicense,
      commands: ReadonlyArray<PendingCommand>,
      onResult: (exit: Exit.Exit<SubmittedResult>) => void
    ) => Result.try({ try: () => startFromMemory(license, commands, onResult), catch: (defect) => defect })
  }
})
