/**
 * A batch: all pending commands of one license, decided together and committed as one. A batch that changes nothing
 * checks that the revisions of its decision are still current in the database, unless a prefetch has already checked
 * them. So every result is confirmed by the database and never assumes that this process is the only one.
 */

import { Clock, Context, Effect, Exit, Result } from "effect"
import { type Refusal, refuse } from "../../api/Failure.ts"
import type { Revisions } from "../model/LicenseRecords.ts"
import { refuseUnknownLicense } from "../model/UnknownLicense.ts"
import type { CommittedState } from "../state/CommittedState.ts"
import { Journal } from "./Journal.ts"
import { LicenseLookups, type Lookups } from "./LicenseLookups.ts"
import { LicenseStore } from "./LicenseStore.ts"
import { PendingChanges } from "./PendingChanges.ts"
import {
  type CommandResult,
  decide,
  giveUpLate,
  isRefused,
  type PendingCommand,
  resultOf,
  spansOf,
  storeResponses
} from "./PendingCommand.ts"
import { hasEventId, missingPrefetch, nothingPrefetched, prefetch } from "./Prefetch.ts"
import type { Verdict } from "./Verdict.ts"

/** Attempts at a batch whose license other nodes keep changing. */
const attemptsMax = 8
/**
 * Attempts without a lock. A node that has the license in memory is always faster than a node that has to load it
 * first, so later attempts lock the license. Only simulations lower this number, to reach the lock more often.
 */
export const UnlockedAttempts = Context.Reference("licensing/licenses/engine/UnlockedAttempts", {
  defaultValue: () => 5
})

/** A license and its cached state. The state is undefined when it has to be loaded, for the first time or again. */
export interface CachedLicense {
  readonly licenseId: string
  state: CommittedState | undefined
  /** The revision of the last cached state that was found outdated, until the license is loaded again. */
  outdatedRevision: number | undefined
  /** When the license was last found to have been changed by others than its actor. */
  overtakenAt: number
  /** Whether the running batch has decided changes: then it is not given up, unless the journal returns it. */
  decided: boolean
}

/** Drops the cached state. Its license may be unchanged: edits of its policy or its product's catalog make it outdated, too. */
export const dropOutdated = (license: CachedLicense): void => {
  license.outdatedRevision ??= license.state?.license.revision
  license.state = undefined
}

type CommandResults = ReadonlyArray<CommandResult>

/** A decided batch, not yet committed or confirmed. */
interface DecidedBatch {
  readonly license: CachedLicense
  readonly commands: ReadonlyArray<PendingCommand>
  readonly state: CommittedState
  readonly pending: PendingChanges
  readonly results: CommandResults
  /** Commands whose responses are stored in the same transaction as the change. */
  readonly stored: ReadonlyArray<PendingCommand>
  /** Whether the revisions were read as current after the commands arrived. */
  readonly confirmed: boolean
}

const noCommands: ReadonlyArray<PendingCommand> = []

/** `stale`: decide again on a newer state. `eventIdsNeeded`: decide again with event ids looked up. */
type Attempt = DecidedBatch | CommandResults | "stale" | "eventIdsNeeded"

/** The outcome of a batch. `stale`: decide it again. */
export type BatchOutcome = Exit.Exit<CommandResults | "stale">

export const makeCommandBatches = Effect.gen(function* () {
  const store = yield* LicenseStore
  const lookups = yield* LicenseLookups
  const journal = yield* Journal
  const clock = yield* Clock.Clock
  const unlockedAttempts = yield* UnlockedAttempts

  /** The decision is committed or confirmed: updates the cached state. */
  const applyCommitted = ({ license, state, pending, results, stored }: DecidedBatch): CommandResults => {
    state.absorb(pending)
    if (pending.movesPolicy) license.state = undefined
    for (const command of stored) command.committed?.()
    return results
  }

  /** Sends a decided batch to the database and reports the outcome to `onResult`. */
  const submit = (decided: DecidedBatch, onResult: (outcome: BatchOutcome) => void): void => {
    const { commands, confirmed, license, pending, state } = decided
    const finish = (isCurrent: boolean): void => onResult(Exit.succeed(isCurrent ? applyCommitted(decided) : "stale"))
    const refuseLocked = () => onResult(Exit.succeed(decided.results.map(() => Exit.fail(isLocked))))
    const spans = spansOf(commands)
    license.decided = pending.changed
    if (pending.changed) {
      pending.deadline = commands.find(({ givenUp }) => givenUp !== true)?.deadline ?? pending.deadline
      const onVerdict = (exit: Exit.Exit<Verdict>): void => {
        license.decided = false
        if (Exit.isSuccess(exit) && exit.value === "late") giveUpLate(commands, clock.currentTimeMillisUnsafe())
        if (Exit.isSuccess(exit)) exit.value === "locked" ? refuseLocked() : finish(exit.value === "committed")
        else onResult(Exit.failCause(exit.cause))
      }
      journal.commit(pending, onVerdict, spans)
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

  const withoutLock = { load: store.load, lookups: lookups as Lookups }
  // A transaction that holds a lock must not wait for a second connection: all connections may be held by transactions
  // that wait for its lock.
  const withLock = { load: store.loadInTransaction, lookups: lookups.inTransaction }

  /** Decides the commands on the cached state, loading it first if there is none. */
  const decideBatch = Effect.fnUntraced(function* (
    license: CachedLicense,
    commands: ReadonlyArray<PendingCommand>,
    checkEventIds: boolean,
    { load, lookups }: { readonly load: typeof store.load; readonly lookups: Lookups } = withoutLock
  ): Effect.fn.Return<Attempt> {
    const isNewlyLoaded = license.state === undefined
    license.state ??= yield* load(license.licenseId)
    const state = license.state
    if (state === undefined) return commands.map((): CommandResult => Exit.fail(noLicense(license.licenseId)))
    if (license.outdatedRevision !== undefined) {
      if (license.outdatedRevision !== state.license.revision) license.overtakenAt = clock.currentTimeMillisUnsafe()
      license.outdatedRevision = undefined
    }
    const prefetched = yield* prefetch(lookups, state, commands, clock.currentTimeMillisUnsafe(), checkEventIds)
    if (prefetched.isCurrent === false) return "stale"
    const pending = new PendingChanges(state, prefetched)
    const now = clock.currentTimeMillisUnsafe()
    if (!state.isReadyAt(now)) return "stale"
    license.decided = true
    pending.term = journal.term.current
    const decisions = decide(pending, commands, now)
    if (!checkEventIds && commands.some((command, index) => isRefused(decisions[index]!) && hasEventId(command)))
      return "eventIdsNeeded"
    const results = yield* storeResponses(pending, commands, decisions)
    // Refusals are not stored here, even if an earlier attempt had accepted the command.
    const stored = pending.changed ? commands.filter((_, index) => !isRefused(decisions[index]!)) : []
    return {
      license,
      commands,
      state,
      pending,
      results,
      stored,
      confirmed: prefetched.isCurrent ?? (isNewlyLoaded && prefetched === nothingPrefetched)
    }
  })

  const submitAndWait = (decided: DecidedBatch) =>
    Effect.callback<CommandResults | "stale">((resume) => submit(decided, resume))

  /** Decides and submits the batch once. Returns the results, or why the batch has to be decided again. */
  const attempt = Effect.fnUntraced(function* (
    license: CachedLicense,
    commands: ReadonlyArray<PendingCommand>,
    checkEventIds: boolean
  ) {
    const attempted = yield* decideBatch(license, commands, checkEventIds)
    return isDecidedBatch(attempted) ? yield* submitAndWait(attempted) : attempted
  })

  /**
   * Decides and submits the batch with the license locked, so that no other node can change the license in between.
   * Used after other nodes have overtaken this one several times.
   */
  const attemptLocked = Effect.fnUntraced(function* (license: CachedLicense, commands: ReadonlyArray<PendingCommand>) {
    let attempted: Attempt = "stale"
    const decideLocked = Effect.gen(function* () {
      license.state = undefined
      attempted = yield* decideBatch(license, commands, true, withLock)
      // The license is locked, but its policy and catalog are not.
      if (isDecidedBatch(attempted) && !attempted.pending.changed) {
        const current = yield* store.revisionsInTransaction(license.licenseId)
        attempted =
          current !== undefined && attempted.state.hasRevisions(current) ? { ...attempted, confirmed: true } : "stale"
      }
      return isDecidedBatch(attempted) && attempted.pending.changed ? attempted.pending : undefined
    })
    const verdict = yield* journal.locked(license.licenseId, decideLocked)
    if (verdict === "stale") return "stale"
    if (verdict === "locked") return commands.map((): CommandResult => Exit.fail(isLocked))
    const last = attempted as Attempt
    if (!isDecidedBatch(last)) return last
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

  /**
   * Starts a batch that needs no look-up and stores no response, without a fiber of its own. Nearly all batches are of
   * this kind; it saves a tenth of a request's CPU time. Returns false, and has no effect, for any other batch.
   */
  const startFromMemory = (
    license: CachedLicense,
    commands: ReadonlyArray<PendingCommand>,
    onResult: (outcome: BatchOutcome) => void
  ): boolean => {
    const state = license.state
    const now = clock.currentTimeMillisUnsafe()
    if (state === undefined || commands.some(({ storeResponse }) => storeResponse !== undefined)) return false
    if (missingPrefetch(lookups, state, commands, now, false) !== undefined) return false
    const pending = new PendingChanges(state, nothingPrefetched)
    pending.term = journal.term.current
    const decisions = decide(pending, commands, now)
    if (commands.some((command, index) => isRefused(decisions[index]!) && hasEventId(command))) return false
    const results = commands.map((command, index) => resultOf(command, decisions[index]!))
    submit({ license, commands, state, pending, results, stored: noCommands, confirmed: false }, onResult)
    return true
  }

  return {
    run,
    startFromMemory: (
      license: CachedLicense,
      commands: ReadonlyArray<PendingCommand>,
      onResult: (outcome: BatchOutcome) => void
    ) => Result.try({ try: () => startFromMemory(license, commands, onResult), catch: (defect) => defect })
  }
})

const isDecidedBatch = (attempt: Attempt): attempt is DecidedBatch =>
  typeof attempt === "object" && "pending" in attempt

const isLocked = refuse("NOT_READY", "The license is locked by another change: send the request again in a moment.")

const noLicense = (licenseId: string): Refusal => refuseUnknownLicense(licenseId)
