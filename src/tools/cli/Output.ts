/**
 * What commands print. Results go to standard output: text for people, or one JSON value with `--json`, with the names and formats
 * of the API. Hints and failures go to standard error.
 */
import { Cause, Console, Data, Effect, Exit } from "effect"
import { CliError, CliOutput, Flag } from "effect/cli"

export const flag = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false), Flag.withoutNegation)

export const jsonFlag = {
  json: flag("json", "Print JSON in place of text.")
}

export const print = (asJson: boolean, value: unknown, lines: ReadonlyArray<string>): Effect.Effect<void> => {
  if (asJson) return Console.log(JSON.stringify(value, null, 2))
  return lines.length === 0 ? Effect.void : Console.log(lines.map(withoutControls).join("\n"))
}

/** Help after a usage error is no result, so it goes to standard error. */
export const helpPresenter = CliOutput.layerPresenter({
  present: (event) =>
    event._tag === "Version" || (event._tag === "Help" && event.reason === "Requested")
      ? CliOutput.defaultPresenter.present(event)
      : Effect.updateService(CliOutput.defaultPresenter.present(event), Console.Console, (given) => ({
          ...given,
          log: given.error
        }))
})

/** Names come from customers, and must not control the terminal. */
const withoutControls = (line: string): string => line.replace(/\p{Cc}/gu, "\u{FFFD}")

/**
 * Ends a command with an exit code. 1: the command failed, or the answer is no. 2: wrong usage, or no answer is
 * possible. `message` is one line for standard error; empty if everything is printed already.
 */
export class CommandEnded extends Data.TaggedError("CommandEnded")<{
  readonly exitCode: 1 | 2
  readonly message: string
}> {}

let signalCode = 130

/** For what runs until a signal, which is then its normal end. Every other command has not done what it was called for. */
export const untilSignal = <A, E, R>(running: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    signalCode = 0
    return running
  })

/** 0: success. 2: wrong arguments. 130: a signal. 1: other failures. */
export const exitCodeOf = (exit: Exit.Exit<unknown, unknown>): number => {
  if (Exit.isSuccess(exit)) return 0
  if (Cause.hasInterruptsOnly(exit.cause)) return signalCode
  const error = Cause.squash(exit.cause)
  if (error instanceof CommandEnded) return error.exitCode
  return CliError.isCliError(error) ? 2 : 1
}

export const aligned = (rows: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  const widths = rows.reduce<ReadonlyArray<number>>(
    (widest, row) => row.map((cell, column) => Math.max(cell.length, widest[column] ?? 0)),
    []
  )
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join("  ")
      .trimEnd()
  )
}
