/**
 * A round: all letters that waited for a license, decided on one draft and committed as one. A round that changes nothing asks
 * the database whether the revisions it decided on still hold, unless what it had to look up has told so. Either way an answer
 * rests on the database, never on this process being the only one.
 */
import { Clock, Effect, Exit, Result } from "effect"
import { type Refusal, refuse } from "../api/Failure.ts"
import type { LicenseState } from "./CommittedState.ts"
import { Draft } from "./Draft.ts"
import { Journal } from "./Journal.ts"
import { gatherKnowledge, missingKnowledge, namesEvent, nothing } from "./Knowledge.ts"
import { type Answer, answerOf, decide, isRefused, keepAnswers, type Letter } from "./Letter.ts"
import { LicenseLookups } from "./LicenseLookups.ts"
import { LicenseStore } from "./LicenseStore.ts"

/** How often a round is decided again after others changed the license meanwhile. */
const attemptsMax = 8

/** A license and what is known of it; undefined where it has to be loaded, again or for the first time. */
export interface Held {
  readonly licenseId: string
  state: LicenseState | undefined
}

type Answers = ReadonlyArray<Answer>

/** What came of a round that was begun: `stale` where it has to be decided again. */
export type Outcome = Exit.Exit<Answers | "stale">

export const makeRounds = Effect.gen(function* () {
  const store = yield* LicenseStore
  const lookups = yield* LicenseLookups
  const journal = yield* Journal
  const clock = yield* Clock.Clock

  /** Sends what was decided to the database; `settle` hears what came of it. `confirmed`: the revisions were seen to hold. */
  const submit = (
    state: LicenseState,
    draft: Draft,
    answers: Answers,
    confirmed: boolean,
    settle: (outcome: Outcome) => void
  ): void => {
    const settleIf = (holds: boolean): void => {
      if (holds) state.absorb(draft)
      settle(Exit.succeed(holds ? answers : "stale"))
    }
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

  /** Decides the letters once: their answers, or why they have to be decided again, and for certain. */
  const attempt = Effect.fnUntraced(function* (held: Held, letters: ReadonlyArray<Letter>, certain: boolean) {
    held.state ??= yield* store.load(held.licenseId)
    const state = held.state
    if (state === undefined) return letters.map((): Answer => Exit.fail(noLicense(held.licenseId)))
    const knowledge = yield* gatherKnowledge(lookups, state, letters, clock.currentTimeMillisUnsafe(), certain)
    if (knowledge.holds === false) return "stale"
    const draft = new Draft(state, knowledge)
    const now = clock.currentTimeMillisUnsafe()
    if (!state.isReadyAt(now)) return "stale"
    const decided = decide(draft, letters, now)
    if (!certain && letters.some((letter, index) => isRefused(decided[index]!) && namesEvent(letter)))
      return "uncertain"
    const answers = yield* keepAnswers(draft, letters, decided)
    const outcome = yield* Effect.callback<Answers | "stale">((resume) =>
      submit(state, draft, answers, knowledge.holds === true, resume)
    )
    // A refusal is kept by nobody here, whatever an attempt before this one had drafted.
    if (outcome !== "stale" && draft.changed)
      for (const [index, letter] of letters.entries()) if (!isRefused(decided[index]!)) letter.committed?.()
    return outcome
  })

  const round = Effect.fnUntraced(function* (held: Held, letters: ReadonlyArray<Letter>, triedBefore: number) {
    for (let tried = triedBefore; tried < attemptsMax; tried++) {
      const answers = yield* attempt(held, letters, tried > 0)
      if (answers === "stale") held.state = undefined
      else if (answers !== "uncertain") return answers
    }
    return letters.map(
      (): Answer => Exit.fail(refuse("NOT_READY", "The license is being changed from many sides: try again."))
    )
  })

  /**
   * Begins a round for which memory is enough, which nearly all are, without a fiber of its own: that took a tenth off the CPU
   * of a request. Gives false, and has done nothing, where there is something to look up or to keep.
   */
  const begin = (held: Held, letters: ReadonlyArray<Letter>, settle: (outcome: Outcome) => void): boolean => {
    const state = held.state
    const now = clock.currentTimeMillisUnsafe()
    if (state === undefined || letters.some(({ keep }) => keep !== undefined)) return false
    if (missingKnowledge(lookups, state, letters, now, false) !== undefined) return false
    const draft = new Draft(state, nothing)
    const decided = decide(draft, letters, now)
    if (letters.some((letter, index) => isRefused(decided[index]!) && namesEvent(letter))) return false
    submit(
      state,
      draft,
      letters.map((letter, index) => answerOf(letter, decided[index]!)),
      false,
      settle
    )
    return true
  }

  return {
    round,
    begin: (held: Held, letters: ReadonlyArray<Letter>, settle: (outcome: Outcome) => void) =>
      Result.try({ try: () => begin(held, letters, settle), catch: (defect) => defect })
  }
})

const noLicense = (licenseId: string): Refusal => refuse("NOT_FOUND", `No license has the id ${licenseId}.`, "id")
