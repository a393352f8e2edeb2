/**
 * A round: all letters that waited for a license, decided on one draft and committed as one. A round that changes nothing asks
 * the database whether the revisions it decided on still hold, unless what it had to look up has told so. Either way an answer
 * rests on the database, never on this process being the only one.
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

/** How often a round is decided after others changed the license meanwhile. */
const attemptsMax = 8
/**
 * Of these, how often with nothing locked. Who holds a license in memory is faster than who has to load it first, every time. Simulations
 * alone lower it, to get there more often.
 */
export const UnlockedAttempts = Context.Reference("licensing/licenses/engine/UnlockedAttempts", {
  defaultValue: () => 5
})

/** A license and what is known of it; undefined where it has to be loaded, again or for the first time. */
export interface CachedLicense {
  readonly licenseId: string
  state: CommittedState | undefined
}

type CommandResults = ReadonlyArray<CommandResult>

/** What a round comes to, once its draft is committed or its state confirmed. */
interface Decided {
  readonly state: CommittedState
  readonly draft: PendingChanges
  readonly answers: CommandResults
  /** Those whose answers are kept with the change. */
  readonly kept: ReadonlyArray<PendingCommand>
  /** Whether the state was seen to hold since the letters came. */
  readonly confirmed: boolean
}

const noCommands: ReadonlyArray<PendingCommand> = []

/** `stale`: to be decided on a newer state; `uncertain`: with event ids looked up. */
type Attempt = Decided | CommandResults | "stale" | "uncertain"

/** What came of a round that was begun: `stale` where it has to be decided again. */
export type BatchOutcome = Exit.Exit<CommandResults | "stale">

export const makeCommandBatches = Effect.gen(function* () {
  const store = yield* LicenseStore
  const lookups = yield* LicenseLookups
  const journal = yield* Journal
  const clock = yield* Clock.Clock
  const attemptsFree = yield* UnlockedAttempts

  /** What was decided has come to hold. */
  const concluded = ({ state, draft, answers, kept }: Decided): CommandResults => {
    state.absorb(draft)
    for (const letter of kept) letter.committed?.()
    return answers
  }

  /** Sends what was decided to the database; `settle` hears what came of it. */
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
  // Whoever holds a lock and waits for a connection may wait for those who have the connections and wait for the lock.
  const within = { load: store.loadWithin, look: lookups.within }

  /** Decides the letters on the state as it is held, or just loaded. */
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
    // A refusal is kept by nobody here, whatever an attempt before this one had drafted.
    const kept = draft.changed ? letters.filter((_, index) => !isRefused(decided[index]!)) : []
    return { state, draft, answers, kept, confirmed: knowledge.holds ?? (isFresh && knowledge === nothingPrefetched) }
  })

  const submitted = (decided: Decided) => Effect.callback<CommandResults | "stale">((resume) => submit(decided, resume))

  /** Decides the letters once: their answers, or why they have to be decided again, and for certain. */
  const attempt = Effect.fnUntraced(function* (
    held: CachedLicense,
    letters: ReadonlyArray<PendingCommand>,
    certain: boolean
  ) {
    const made = yield* decideOn(held, letters, certain)
    return isDecided(made) ? yield* submitted(made) : made
  })

  /** The same where others were faster again and again: nobody can change the license between what is decided and its commit. */
  const insist = Effect.fnUntraced(function* (held: CachedLicense, letters: ReadonlyArray<PendingCommand>) {
    let made: Attempt = "stale"
    const draft = Effect.gen(function* () {
      held.state = undefined
      made = yield* decideOn(held, letters, true, within)
      // The license is locked, its policy and catalog are not.
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
   * Begins a round for which memory is enough, which nearly all are, without a fiber of its own: that took a tenth off the CPU
   * of a request. Gives false, and has done nothing, where there is something to look up or to keep.
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
