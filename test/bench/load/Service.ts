/** A service for a benchmark, on the embedded server, without the limits that a single client would reach. */
import { randomBytes } from "node:crypto"
import { join } from "node:path"
import { Effect, Redacted } from "effect"
import { startService } from "../../../infra/scripts/service.ts"

/** One key for all services of a run: they may use one database one after another. */
const masterKey = randomBytes(32).toString("base64")

export const startOn = Effect.fnUntraced(function* (
  url: Redacted.Redacted<string>,
  directory: string,
  settings: Record<string, string> = {},
  folder?: string
) {
  const token = `bench_${randomBytes(32).toString("base64url")}`
  const running = yield* Effect.acquireRelease(
    Effect.promise(() =>
      startService({
        ...(folder && { folder }),
        log: join(directory, "service.log"),
        settings: {
          LICENSING_DATABASE_URL: Redacted.value(url),
          LICENSING_MASTER_KEY: masterKey,
          LICENSING_BOOTSTRAP_TOKEN: token,
          LICENSING_LOG_LEVEL: "error",
          LICENSING_RATE_RUNTIME: "0",
          LICENSING_RATE_ACTIVATION: "0",
          LICENSING_RATE_MANAGEMENT: "0",
          LICENSING_RATE_FAILURES: "0",
          ...settings
        }
      })
    ),
    (running) => Effect.promise(() => running.stop())
  )
  return { ...running, token }
})

/** Progress goes to standard error: standard output contains only the result. */
export const say = (line: string) => Effect.sync(() => process.stderr.write(`${line}\n`))
