/** What waits in an actor's mailbox, and deciding it: each letter in turn, on what time and the letters before it have left. */
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
  /** Hears of the answer once, and must not throw. */
  readonly resume: (answer: CommandResult) => void
  readonly begin: (reply: unknown) => unknown
  /** Of a request with an Idempotency-Key: words its answer before the commit, so that the two are written together. */
  readonly keep?: (begun: unknown) => Effect.Effect<Kept<unknown>>
  readonly committed?: () => void
}

export type CommandResult = Exit.Exit<unknown, Refusal>

interface Kept<A> {
  readonly value: A
  readonly row: StoredResponseRow
}

type Resume<A, C extends Code> = (answer: Exit.Exit<A, Refusal<C> | Refusal<"NOT_FOUND" | "NOT_READY">>) => void

/** A letter with its own types: `A` is what `keep` makes of what was begun, or just that. */
type TypedCommand<Command, Reply, C extends Code, Begun, A> = {
  readonly rule: Rule<Command, Reply, C>
  readonly command: Command
  readonly origin: Origin
  readonly begin: (reply: Reply) => Begun
} & (
  | { readonly resume: Resume<Begun, C>; readonly keep?: never }
  | {
      readonly resume: Resume<A, C>
      readonly keep: (begun: Begun) => Effect.Effect<Kept<A>>
      readonly committed: () => void
    }
)

/**
 * Hides a letter's types: a mailbox holds letters of all rules. The cast is safe because the members of a letter are only given
 * what comes from one another: the rule its command, `begin` the rule's reply, `keep` what was begun, `resume` the last of these.
 */
export const pendingCommand = <Command, Reply, C extends Code, Begun, A>(
  letter: TypedCommand<Command, Reply, C, Begun, A>
): PendingCommand => letter as unknown as PendingCommand

/** A letter's outcome: a refusal, or what the rule replies. */
export type Decision = { readonly refusal: Refusal } | { readonly reply: unknown }

export const decide = (
  draft: PendingChanges,
  letters: ReadonlyArray<PendingCommand>,
  now: number
): ReadonlyArray<Decision> =>
  letters.map(({ rule, command, origin }) => {
    // Before each letter: the one before may have moved an expiry behind the clock.
    draft.settle(settle(draft, now), now)
    const outcome = rule.decide(draft, command, now)
    draft.apply(outcome.accepted ? outcome.changes : { events: outcome.events ?? [] }, origin, now)
    return outcome.accepted
      ? { reply: outcome.reply(draft) }
      : { refusal: refuse(outcome.code, outcome.message, outcome.detail) }
  })

export const isRefused = (decided: Decision): decided is { readonly refusal: Refusal } => "refusal" in decided

/** The answer to a letter whose answer is kept by nobody. */
export const resultOf = (letter: PendingCommand, decided: Decision): CommandResult =>
  isRefused(decided) ? Exit.fail(decided.refusal) : Exit.succeed(letter.begin(decided.reply))

/** The answers, and into the draft the rows of those that are kept with the change. */
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
      const { value, row } = yield* letter.keep(letter.begin(outcome.reply))
      draft.answers.push(row)
      answers.push(Exit.succeed(value))
    }
  }
  return answers
})
