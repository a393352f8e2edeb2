/** The program in a process of its own: commands run to their end, and services that a test stops or kills. */
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Effect, Redacted } from "effect"
import type { Account } from "../../../src/platform/postgres/embedded/ServerProcess.ts"
import { Database } from "../database/Database.ts"
import { send } from "../http/Http.ts"
import { program } from "./Program.ts"

/** What every process of a test gets. As with `npm start`, Node keeps compiled modules: without it each start took a third more CPU time. */
export const processEnvironment = {
  PATH: process.env["PATH"] ?? "",
  NODE_COMPILE_CACHE: fileURLToPath(new URL("../../../node_modules/.cache/compiled", import.meta.url))
}

export interface CommandResult {
  readonly code: number | null
  readonly out: string
  readonly error: string
}

/** Starts the program, from its sources only if `main` names them. Its environment holds no other settings; `written` is its output. */
export const spawnProgram = Effect.fnUntraced(function* (
  settings: Record<string, string>,
  args: ReadonlyArray<string>,
  { account, main }: { readonly account?: Account | undefined; readonly main?: string | undefined } = {}
) {
  const child = spawn(process.execPath, [main ?? (yield* program), ...args], {
    env: { ...processEnvironment, LICENSING_PORT: "0", ...settings },
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
})

/** Runs a command to its end. */
export const runCommand = (settings: Record<string, string>, ...args: ReadonlyArray<string>) =>
  runCommandAs(undefined, settings, ...args)

/** Runs a command to its end as another user. */
export const runCommandAs = (
  account: Account | undefined,
  settings: Record<string, string>,
  ...args: ReadonlyArray<string>
): Effect.Effect<CommandResult> =>
  Effect.flatMap(spawnProgram(settings, args, { account }), ({ child, written }) =>
    Effect.callback((resume) => {
      child.on("close", (code) => resume(Effect.succeed({ code, ...written })))
      return Effect.sync(() => child.kill("SIGKILL"))
    })
  )

/** The token of the first API key. */
export const serviceToken = "service-token-of-more-than-32-characters"

/** Starts the service on the test's database, without waiting for it. The scope kills it. */
export const spawnService = Effect.fnUntraced(function* (settings: Record<string, string>, main?: string) {
  const { url } = yield* Database
  const environment = {
    LICENSING_DATABASE_URL: Redacted.value(url),
    LICENSING_MASTER_KEY: Buffer.alloc(32, 9).toString("base64"),
    LICENSING_BOOTSTRAP_TOKEN: serviceToken,
    LICENSING_LOG_FORMAT: "json",
    ...settings
  }
  return yield* Effect.acquireRelease(spawnProgram(environment, ["serve"], { main }), ({ child }) =>
    Effect.sync(() => child.kill("SIGKILL"))
  )
})

/** Starts the service on the test's database and waits until it listens. The scope kills it. */
export const startService = Effect.fnUntraced(function* (settings: Record<string, string> = {}, main?: string) {
  // Idle connections of the test's own clients would be waited for.
  const forTests = { LICENSING_WEBHOOK_ALLOW_LOCAL: "true", LICENSING_DRAIN_SECONDS: "1" }
  const { child, written } = yield* spawnService({ ...forTests, ...settings }, main)
  const port = yield* Effect.callback<number>((resume) => {
    child.stdout.on("data", () => {
      const [, found] = /"api":"http:\/\/127\.0\.0\.1:(\d+)\//.exec(written.out) ?? []
      if (found !== undefined) resume(Effect.succeed(Number(found)))
    })
    child.on("exit", (code) =>
      resume(Effect.die(new Error(`The service ended with ${code}: ${written.out}${written.error}`)))
    )
  })
  return {
    written,
    port,
    pid: child.pid ?? 0,
    /** One management request. */
    manage: (method: string, path: string, body?: object) =>
      send(port, {
        method,
        path: `/api/v1${path}`,
        headers: { authorization: `Bearer ${serviceToken}` },
        ...(body === undefined ? undefined : { body })
      }),
    /** One call with a license key. */
    call: (licenseKey: string, operation: string, body: object) =>
      send(port, {
        method: "POST",
        path: `/api/v1/license/${operation}`,
        headers: { authorization: `License ${licenseKey}` },
        body
      }),
    signal: (name: NodeJS.Signals) => Effect.sync(() => void child.kill(name)),
    /** Kills the process without warning. */
    kill: Effect.callback<void>((resume) => {
      child.once("exit", () => resume(Effect.void))
      child.kill("SIGKILL")
    }),
    /** Stops the process and waits until it has ended. */
    stop: Effect.callback<void>((resume) => {
      child.once("exit", () => resume(Effect.void))
      child.kill("SIGTERM")
    })
  }
})
