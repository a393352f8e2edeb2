/** The service as a process of its own, which can be killed without a word. */
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Effect, Redacted } from "effect"
import { Database } from "./Database.ts"
import { send } from "./RawHttp.ts"

const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url))

/** The token of the first API key. */
const programToken = "program-token-of-more-than-32-characters"

/** Starts the service on the database at hand, and waits until it serves. */
export const startProgram = Effect.fnUntraced(function* (settings: Record<string, string> = {}) {
  const { url } = yield* Database
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, [main, "serve"], {
        env: {
          PATH: process.env["PATH"],
          LICENSING_PORT: "0",
          LICENSING_DATABASE_URL: Redacted.value(url),
          LICENSING_MASTER_KEY: Buffer.alloc(32, 9).toString("base64"),
          LICENSING_BOOTSTRAP_TOKEN: programToken,
          LICENSING_LOG_FORMAT: "json",
          LICENSING_WEBHOOK_ALLOW_LOCAL: "true",
          ...settings
        },
        stdio: ["ignore", "pipe", "inherit"]
      })
    ),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )
  const written = { out: "" }
  const port = yield* Effect.callback<number>((resume) => {
    child.stdout.on("data", (chunk) => {
      written.out += chunk
      const [, found] = /"api":"http:\/\/127\.0\.0\.1:(\d+)\//.exec(written.out) ?? []
      if (found !== undefined) resume(Effect.succeed(Number(found)))
    })
    child.on("exit", (code) => resume(Effect.die(new Error(`The service ended with ${code}: ${written.out}`))))
  })
  return {
    written,
    /** One management request. */
    manage: (method: string, path: string, body?: object) =>
      send(port, {
        method,
        path: `/api/v1${path}`,
        headers: { authorization: `Bearer ${programToken}` },
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
    /** Ends the process in the middle of whatever it does. */
    kill: Effect.callback<void>((resume) => {
      child.once("exit", () => resume(Effect.void))
      child.kill("SIGKILL")
    }),
    /** Asks the process to stop, and waits until it has. */
    stop: Effect.callback<void>((resume) => {
      child.once("exit", () => resume(Effect.void))
      child.kill("SIGTERM")
    })
  }
})
