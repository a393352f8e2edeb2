/** Commands in an actor's mailbox. Each is decided on the state after the earlier ones and the clock's changes. */
import { Effect, Exit, type Tracer } from "effect"
import type { Code } from "../../contract/api/ErrorCode.ts"
import { type Refusal, refuse } from "../../contract/api/Failure.ts"
import type { Traces } from "../../platform/telemetry/Traces.ts"
import type { LicenseView } from "../model/LicenseRecords.ts"
import type { Origin, Refused, Rule, StoredWithChange } from "../rules/LicenseCommand.ts"
import { settle } from "../rules/Lifecycle.ts"
import type { PendingChanges } from "./PendingChanges.ts"

export interface PendingCommand {
  readonly rule: Rule<unknown, unknown, Code>
  readonly command: unknown
  readonly origin: Origin
  /** Receives the result once; must not throw. */
  resume: (result: CommandResult) => void
  readonly begin: (reply: unknown) => unknown
  /** For requests with an Idempotency-Key or a mail: makes both before the commit, which then stores them. */
  readonly storeResponse?: (started: unknown) => Effect.Effect<RecordedResponse<unknown>>
  readonly committed?: (() => void) | undefined
  /** Set if `begin` signs the reply with this nonce. Then another node may decide the command and sign its reply. */
  readonly signs?: Signs | undefined
  /** When the command is given up unless its decision was submitted, in monotonic milliseconds; set when it enters the mailbox. */
  deadline?: number
  /** The span of a sampled request; in the mailbox, that of the command. */
  span?: Tracer.Span | undefined
  /** Whether the command was refused at its deadline, and is not decided. */
  givenUp?: boolean
}

export interface Signs {
  readonly nonce?: string
}

const tooLate = refuse("NOT_READY", "The request was not decided in time, and nothing was changed: send it again.")

export const isLate = ({ deadline = Number.POSITIVE_INFINITY }: PendingCommand, now: number): boolean => deadline <= now

/** Of a command whose commit began. */
export const unknownOutcome = refuse(
  "NOT_READY",
  "The database did not answer in time, so it is not known whether the request was carried out: send it again."
)

/** Answers the commands whose deadline has passed. */
export const giveUpLate = (commands: ReadonlyArray<PendingCommand>, now: number, refusal = tooLate): void => {
  for (const command of commands) {
    if (command.givenUp === true || !isLate(command, now)) continue
    command.givenUp = true
    command.resume(Exit.fail(refusal))
  }
}

export type CommandResult = Exit.Exit<unknown, Refusal>

interface RecordedResponse<A> {
  readonly value: A
  readonly stored: StoredWithChange
}

type Resume<A, C extends Code> = (result: Exit.Exit<A, Refusal<C> | Refusal<"NOT_FOUND" | "NOT_READY">>) => void

/** `A` is the result of `storeResponse`, or of `begin` if there is no `storeResponse`. */
type TypedCommand<Command, Reply, C extends Code, Started, A> = {
  readonly rule: Rule<Command, Reply, C>
  readonly command: Command
  readonly origin: Origin
  readonly begin: (reply: Reply) => Started
  /** The span of a sampled request. */
  readonly span: Tracer.Span | undefined
  readonly signs?: Signs | undefined
} & (
  | { readonly resume: Resume<Started, C>; readonly storeResponse?: never }
  | {
      readonly resume: Resume<A, C>
      readonly storeResponse: (started: Started) => Effect.Effect<RecordedResponse<A>>
      readonly committed?: (() => void) | undefined
    }
)

/**
 * Hides a command's types, because a mailbox contains commands of all rules. The cast is safe: the rule gets only its own command,
 * `begin` the rule's reply, `storeResponse` the result of `begin`, `resume` the last result.
 */
export const pendingCommand = <Command, Reply, C extends Code, Started, A>(
  command: TypedCommand<Command, Reply, C, Started, A>
): PendingCommand => command as unknown as PendingCommand

/** Gives a command a span from the mailbox to its result. It stays the same object, because its owner may end it. */
export const traceCommand = (traces: Traces, licenseId: string, command: PendingCommand, parent: Tracer.Span): void => {
  const span = traces.startBelow(parent, `license ${command.rule.name}`, { "licensing.license.id": licenseId })
  const { resume } = command
  command.span = span
  command.resume = (result) => {
    traces.end(span, result)
    resume(result)
  }
}

/** The spans of sampled requests; undefined if there are none. */
export const spansOf = (commands: ReadonlyArray<PendingCommand>): ReadonlyArray<Tracer.Span> | undefined =>
  commands.some(({ span }) => span !== undefined)
    ? commands.flatMap(({ span }) => (span === undefined ? [] : [span]))
    : undefined

/** Runs a batch below the span of its first sampled request, if any. */
export const inFirstSpan = <A, E>(
  commands: ReadonlyArray<PendingCommand>,
  run: Effect.Effect<A, E>
): Effect.Effect<A, E> => {
  const span = commands.find((command) => command.span !== undefined)?.span
  return span === undefined ? run : Effect.withParentSpan(run, span)
}

export type Decision = { readonly refusal: Refusal } | { readonly reply: unknown }

export const decide = (
  pending: PendingChanges,
  commands: ReadonlyArray<PendingCommand>,
  now: number
): ReadonlyArray<Decision> =>
  commands.map(({ rule, command, givenUp, origin }) => {
    if (givenUp === true) return { refusal: tooLate }
    // The previous command may have moved an expiry into the past.
    pending.settle(settle(pending, now), now)
    const outcome = rule.decide(pending, command, now)
    const changes = outcome.accepted ? outcome.changes : outcome.recorded
    if (changes !== undefined) pending.apply(changes, origin, now)
    return outcome.accepted ? { reply: outcome.reply(pending) } : { refusal: refusalOf(rule, outcome, pending, now) }
  })

const refusalOf = (
  { explain }: PendingCommand["rule"],
  { code, detail, facts, isTemporary, message, recorded }: Refused<Code>,
  view: LicenseView,
  now: number
): Refusal =>
  refuse(code, message, detail, {
    ...(explain === undefined ? undefined : { facts: { ...explain(view, now), ...facts } }),
    ...(recorded === undefined ? undefined : { isRecorded: true }),
    ...(isTemporary === undefined ? undefined : { isTemporary })
  })

export const isRefused = (decision: Decision): decision is { readonly refusal: Refusal } => "refusal" in decision

/** The result of a command whose response is not stored. */
export const resultOf = (command: PendingCommand, decision: Decision): CommandResult =>
  isRefused(decision) ? Exit.fail(decision.refusal) : Exit.succeed(command.begin(decision.reply))

/** Returns the results of all commands, and adds the responses and mails to store to `pending`. */
export const storeResponses = Effect.fnUntraced(function* (
  pending: PendingChanges,
  commands: ReadonlyArray<PendingCommand>,
  decisions: ReadonlyArray<Decision>
) {
  const results: Array<CommandResult> = []
  for (const [index, decision] of decisions.entries()) {
    const command = commands[index]!
    if (command.storeResponse === undefined || isRefused(decision)) results.push(resultOf(command, decision))
    else {
      const { value, stored } = yield* command.storeResponse(command.begin(decision.reply))
      pending.stored.push(stored)
      results.push(Exit.succeed(value))
    }
  }
  return results
})

/** Commands in one batch: limits the size of its commit. */
const batchMax = 256

/** The number of commands in the next batch: all, or those up to the first one that ends its batch. */
export const batchLengthOf = (mailbox: ReadonlyArray<PendingCommand>): number => {
  const length = Math.min(mailbox.length, batchMax)
  for (let index = 0; index < length - 1; index++) {
    const { command, rule } = mailbox[index]!
    if (rule.endsBatch?.(command) === true) return index + 1
  }
  return length
}
