/**
 * A batch: all commands that wait for one license, decided together and committed as one. A batch that changes nothing
 * checks that the revisions it was decided on are still current in the database, unless a prefetch has already checked
 * them. So every result rests on the database, never on the assumption that this process is the only one.
 */
import { Clock, Context, Effect, Exit, Result } from "effect"
import { type Refusal, refuse } from "../../api/Failure.ts"
import type { CommittedState } from "./CommittedState.ts"
import { Journal } from "./Journal.ts"
import { LicenseLookups, type Lookups } from "./LicenseLookups.ts"
import { LicenseStore } from "./LicenseStore.ts"
import { PendingChanges } from "./PendingChanges.ts"
import {
  type CommandResult,
  decide,
  isRefused,
  type PendingCommand,
  resultOf,
  storeResponses
} from "./PendingCommand.ts"
import { hasEventId, missingPrefetch, nothingPrefetched, prefetch } from "./Prefetch.ts"

/** Attempts at a batch whose license other nodes keep changing. */
const attemptsMax = 8
/**
 * Attempts without a lock. A node that has the license in memory is always faster than a node that has to load it
 * first, so later attempts lock the license. Only simulations lower this number, to reach the lock more often.
 */
export const UnlockedAttempts = Context.Reference("licensing/licenses/engine/UnlockedAttempts", { defaultValue: () => 5 })

/** A license and its cached state. The state is undefined when it has to be loaded, for the first time or again. */
export interface CachedLicense {
  readonly licenseId: string
  state: CommittedState | undefined
}

type CommandResults = ReadonlyArray<CommandResult>

/** A decided batch, not yet committed or confirmed. */
interface Decided {
  readonly state: CommittedState
  readonly draft: PendingChanges
  readonly answers: CommandResults
  /** Commands whose responses are stored in the same transaction as the change. */
  readonly kept: ReadonlyArray<PendingCommand>
  /** Whether the revisions were read as current after the commands arrived. */
  readonly confirmed: boolean
}

const noCommands: ReadonlyArray<PendingCommand> = []

/** `stale`: decide again on a newer state. `eventIdsNeeded`: decide again with event ids looked up. */
type Attempt = Decided | CommandResults | "stale" | "uncertain"

/** The outcome of a batch. `stale`: decide it again. */
export type BatchOutcome = Exit.Exit<CommandResults | "stale">

export const makeCommandBatches = Effect.gen(function* () {
  const store = yield* LicenseStore
  const lookups = yield* LicenseLookups
  const journal = yield* Journal
  const clock = yield* Clock.Clock
  const attemptsFree = yield* UnlockedAttempts

  /** The decision is committed or confirmed: updates the cached state. */
  const concluded = ({ state, draft, answers, kept }: Decided): CommandResults => {
    state.absorb(draft)
    for (const letter of kept) letter.committed?.()
    return answers
  }

  /** Sends a decided batch to the database and reports the outcome to `onResult`. */
  const submit = (decided: Decided, settle: (outcome: BatchOutcome) => void): void => {
    const { confirmed, draft, state } = decided
    const settleIf = (holds: boolean): void => settle(Exit.succeed(holds ? concluded(decided) : "stale"))
    if (draft.changed) {
      journal.commit(draft, (exit) => {
        if (Exit.isSuccess(exit)) settleIf(exit.value === "committed")
        else settle(Exit.failCause(exit.cause))
      })
      return
    }
    let holds = true
    let failure: Exit.Exit<never> | undefined
    let awaited = (confirmed ? 0 : 1) + (draft.seen.size > 0 ? 1 : 0)
    if (awaited === 0) {
      settleIf(true)
      return
    }
    const one = (exit: Exit.Exit<unknown>): void => {
      if (Exit.isFailure(exit)) failure = Exit.failCause(exit.cause)
      if (--awaited > 0) return
      if (failure === undefined) settleIf(holds)
      else settle(failure)
    }
    if (!confirmed) {
      store.revisions(state.license.id, (exit) => {
        if (Exit.isSuccess(exit)) holds = exit.value !== undefined && state.isAsOf(exit.value)
        one(exit)
      })
    }
    if (draft.seen.size > 0) journal.note(Array.from(draft.seen.values()), one)
  }

  const outside = { load: store.load, look: lookups as Lookups }
  // A transaction that holds a lock must not wait for a second connection: all connections may be held by transactions
  // that wait for its lock.
  const within = { load: store.loadWithin, look: lookups.within }

  /** Decides the commands on the cached state, loading it first if there is none. */
  const decideOn = Effect.fnUntraced(function* (
    held: CachedLicense,
    letters: ReadonlyArray<PendingCommand>,
    certain: boolean,
    { load, look }: { readonly load: typeof store.load; readonly look: Lookups } = outside
  ): Effect.fn.Return<Attempt> {
    const isFresh = held.state === undefined
    held.state ??= yield* load(held.licenseId)
    const state = held.state
    if (state === undefined) return letters.map((): CommandResult => Exit.fail(noLicense(held.licenseId)))
    const knowledge = yield* prefetch(look, state, letters, clock.currentTimeMillisUnsafe(), certain)
    if (knowledge.holds === false) return "stale"
    const draft = new PendingChanges(state, knowledge)
    const now = clock.currentTimeMillisUnsafe()
    if (!state.isReadyAt(now)) return "stale"
    const decided = decide(draft, letters, now)
    if (!certain && letters.some((letter, index) => isRefused(decided[index]!) && hasEventId(letter)))
      return "uncertain"
    const answers = yield* storeResponses(draft, letters, decided)
    // Refusals are not stored here, even if an earlier attempt had accepted the command.
    const kept = draft.changed ? letters.filter((_, index) => !isRefused(decided[index]!)) : []
    return { state, draft, answers, kept, confirmed: knowledge.holds ?? (isFresh && knowledge === nothingPrefetched) }
  })

  const submitted = (decided: Decided) => Effect.callback<CommandResults | "stale">((resume) => submit(decided, resume))

  /** Decides and submits the batch once. Returns the results, or why the batch has to be decided again. */
  const attempt = Effect.fnUntraced(function* (
    held: CachedLicense,
    letters: ReadonlyArray<PendingCommand>,
    certain: boolean
  ) {
    const made = yield* decideOn(held, letters, certain)
    return isDecided(made) ? yield* submitted(made) : made
  })

  /**
   * Decides and submits the batch with the license locked, so that no other node can change the license in between.
   * Used after other nodes have overtaken this one several times.
   */
  const insist = Effect.fnUntraced(function* (held: CachedLicense, letters: ReadonlyArray<PendingCommand>) {
    let made: Attempt = "stale"
    const draft = Effect.gen(function* () {
      held.state = undefined
      made = yield* decideOn(held, letters, true, within)
      // The license is locked, but its policy and catalog are not.
      if (isDecided(made) && !made.draft.changed) {
        const current = yield* store.revisionsWithin(held.licenseId)
        made = current !== undefined && made.state.isAsOf(current) ? { ...made, confirmed: true } : "stale"
      }
      return isDecided(made) && made.draft.changed ? made.draft : undefined
    })
    const verdict = yield* journal.locked(held.licenseId, draft)
    if (verdict === "stale") return "stale"
    const last = made as Attempt
    if (!isDecided(last)) return last
    return last.draft.changed ? concluded(last) : yield* submitted(last)
  })

  const round = Effect.fnUntraced(function* (
    held: CachedLicense,
    letters: ReadonlyArray<PendingCommand>,
    triedBefore: number
  ) {
    for (let tried = triedBefore; tried < attemptsMax; tried++) {
      const answers = yield* tried < attemptsFree ? attempt(held, letters, tried > 0) : insist(held, letters)
      if (answers === "stale") held.state = undefined
      else if (answers !== "uncertain") return answers
    }
    return letters.map(
      (): CommandResult => Exit.fail(refuse("NOT_READY", "The license is being changed from many sides: try again."))
    )
  })

  /**
   * Starts a batch that needs no look-up and stores no response, without a fiber of its own. Nearly all batches are of
   * this kind; it saves a tenth of a request's CPU time. Returns false, and has no effect, for any other batch.
   */
  const begin = (
    held: CachedLicense,
    letters: ReadonlyArray<PendingCommand>,
    settle: (outcome: BatchOutcome) => void
  ): boolean => {
    const state = held.state
    const now = clock.currentTimeMillisUnsafe()
    if (state === undefined || letters.some(({ keep }) => keep !== undefined)) return false
    if (missingPrefetch(lookups, state, letters, now, false) !== undefined) return false
    const draft = new PendingChanges(state, nothingPrefetched)
    const decided = decide(draft, letters, now)
    if (letters.some((letter, index) => isRefused(decided[index]!) && hasEventId(letter))) return false
    const answers = letters.map((letter, index) => resultOf(letter, decided[index]!))
    submit({ state, draft, answers, kept: noCommands, confirmed: false }, settle)
    return true
  }

  return {
    round,
    begin: (held: CachedLicense, letters: ReadonlyArray<PendingCommand>, settle: (outcome: BatchOutcome) => void) =>
      Result.try({ try: () => begin(held, letters, settle), catch: (defect) => defect })
  }
})

const isDecided = (made: Attempt): made is Decided => typeof made === "object" && "draft" in made

const noLicense = (licenseId: string): Refusal => refuse("NOT_FOUND", `No license has the id ${licenseId}.`, "id")
