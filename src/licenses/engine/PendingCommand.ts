/**
 * Commands waiting in an actor's mailbox, and how they are decided: one after another, each on the state that the clock
 * and the commands before it have left.
 */
import { Effect, Exit } from "effect"
import type { Code } from "../../api/ErrorCode.ts"
import { type Refusal, refuse } from "../../api/Failure.ts"
import type { StoredResponseRow } from "../../api/StoredResponse.ts"
import type { Origin, Rule } from "../rules/LicenseCommand.ts"
import { settle } from "../rules/Lifecycle.ts"
import type { PendingChanges } from "./PendingChanges.ts"

export interface PendingCommand {
  readonly rule: Rule<unknown, unknown, Code>
  readonly command: unknown
  readonly origin: Origin
  /** Receives the result once; must not throw. */
  readonly resume: (answer: CommandResult) => void
  readonly begin: (reply: unknown) => unknown
  /**
   * For a request with an Idempotency-Key: produces the response before the commit, so that it is stored in the same
   * transaction.
   */
  readonly keep?: (reply: unknown) => Effect.Effect<{ readonly value: unknown; readonly row: StoredResponseRow }>
  readonly committed?: () => void
}

export type CommandResult = Exit.Exit<unknown, Refusal>

/** The decision on a command: a refusal, or the rule's reply. */
export type Decision = { readonly refusal: Refusal } | { readonly reply: unknown }

export const decide = (
  draft: PendingChanges,
  letters: ReadonlyArray<PendingCommand>,
  now: number
): ReadonlyArray<Decision> =>
  letters.map(({ rule, command, origin }) => {
    // Before each command, because the previous one may have moved an expiry into the past.
    draft.settle(settle(draft, now), now)
    const outcome = rule.decide(draft, command, now)
    draft.apply(outcome.accepted ? outcome.changes : { events: outcome.events ?? [] }, origin, now)
    return outcome.accepted
      ? { reply: outcome.reply(draft) }
      : { refusal: refuse(outcome.code, outcome.message, outcome.detail) }
  })

export const isRefused = (decided: Decision): decided is { readonly refusal: Refusal } => "refusal" in decided

/** The result of a command whose response is not stored. */
export const resultOf = (letter: PendingCommand, decided: Decision): CommandResult =>
  isRefused(decided) ? Exit.fail(decided.refusal) : Exit.succeed(letter.begin(decided.reply))

/** The results of all commands. Adds the responses that are stored with the change to `pending`. */
export const storeResponses = Effect.fnUntraced(function* (
  draft: PendingChanges,
  letters: ReadonlyArray<PendingCommand>,
  decided: ReadonlyArray<Decision>
) {
  const answers: Array<CommandResult> = []
  for (const [index, outcome] of decided.entries()) {
    const letter = letters[index]!
    if (letter.keep === undefined || isRefused(outcome)) answers.push(resultOf(letter, outcome))
    else {
      const { value, row } = yield* letter.keep(outcome.reply)
      draft.answers.push(row)
      answers.push(Exit.succeed(value))
    }
  }
  return answers
})
