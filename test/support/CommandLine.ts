/** The command line, run to its end. */
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Effect, Redacted } from "effect"
import type { Account } from "../../src/postgres/ServerProcess.ts"
import { Database } from "./Database.ts"
import { masterKey } from "./TestServer.ts"

const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url))

export interface Ran {
  readonly code: number | null
  readonly out: string
  readonly error: string
}

/** Starts the program with these settings and nothing else in its environment, and keeps what it writes. */
export const spawnProgram = (settings: Record<string, string>, args: ReadonlyArray<string>, account?: Account) => {
  const child = spawn(process.execPath, [main, ...args], {
    env: { PATH: process.env["PATH"], LICENSING_PORT: "0", ...settings },
    stdio: ["ignore", "pipe", "pipe"],
    ...account
  })
  const written = { out: "", error: "" }
  child.stdout.on("data", (chunk) => {
    written.out += chunk
  })
  child.stderr.on("data", (chunk) => {
    written.error += chunk
  })
  return { child, written }
}

/** Runs a command with these settings and nothing else in its environment. */
export const run = (settings: Record<string, string>, ...args: ReadonlyArray<string>) =>
  runAs(undefined, settings, ...args)

/** The same as another user. */
export const runAs = (
  account: Account | undefined,
  settings: Record<string, string>,
  ...args: ReadonlyArray<string>
): Effect.Effect<Ran> =>
  Effect.callback((resume) => {
    const { child, written } = spawnProgram(settings, args, account)
    child.on("close", (code) => resume(Effect.succeed({ code, ...written })))
    return Effect.sync(() => child.kill("SIGKILL"))
  })

/** The settings of an operator beside a `TestServer` on the database at hand. */
export const operatorSettings = Effect.map(Database, ({ url }) => ({
  LICENSING_DATABASE_URL: Redacted.value(url),
  LICENSING_MASTER_KEY: Redacted.value(masterKey)
}))
