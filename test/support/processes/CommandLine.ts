/** Commands in this process: parsed and run as by the program, without its start. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, ConfigProvider, Console, Effect, Exit, Redacted } from "effect"
import { Command } from "effect/cli"
import { commands } from "../../../src/tools/cli/Commands.ts"
import { exitCodeOf, helpPresenter } from "../../../src/tools/cli/Output.ts"
import { Database } from "../database/Database.ts"
import { masterKey } from "../http/TestServer.ts"

export type LineResult = Effect.Success<ReturnType<typeof runLine>>

const licensing = Command.make("licensing").pipe(Command.withSubcommands(commands))
const run = Command.runWith(licensing, { version: "0.0.0" })

/** The settings for commands on the database and the secrets of a `TestServer`. */
export const operatorSettings = Effect.map(Database, ({ url }) => ({
  LICENSING_DATABASE_URL: Redacted.value(url),
  LICENSING_MASTER_KEY: Redacted.value(masterKey)
}))

/** What a command prints, its exit code, and why it failed, which the program prints. The environment holds these variables only. */
export const runLine = Effect.fnUntraced(function* (
  environment: Record<string, string>,
  ...args: ReadonlyArray<string>
) {
  const [out, error]: [Array<string>, Array<string>] = [[], []]
  const console: Console.Console = {
    ...globalThis.console,
    log: (...parts) => void out.push(parts.join(" ")),
    error: (...parts) => void error.push(parts.join(" "))
  }
  const exit = yield* Effect.exit(run(args)).pipe(
    Effect.provideService(Console.Console, console),
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnvRecord(environment)),
    Effect.provide([NodeServices.layer, helpPresenter])
  )
  const failure = Exit.isFailure(exit) ? Cause.pretty(exit.cause) : ""
  return { code: exitCodeOf(exit), out: out.join("\n"), error: error.join("\n"), failure }
})
