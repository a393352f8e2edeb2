/** Checks this machine: the data folder's disk space, and the port. */
import { statfs } from "node:fs"
import { dirname, resolve } from "node:path"
import { Effect, FileSystem, Schema } from "effect"
import { FetchHttpClient, HttpClient } from "effect/http"
import { Settings } from "../../platform/config/Config.ts"
import { findingsOf } from "./Check.ts"

const gigabyte = 1_000_000_000
const freeBytesMin = gigabyte / 4
const freeBytesLow = 2 * gigabyte

export const checkDataFolder = Effect.gen(function* () {
  const { databaseUrl, dataDir } = yield* Settings
  const { fail, ok, warn } = findingsOf("data folder")
  const folder = resolve(dataDir)
  if (databaseUrl !== undefined) return ok("Not used: the database is elsewhere, the master key is a setting")
  const files = yield* FileSystem.FileSystem
  const parent = yield* existing(folder)
  if (parent !== folder) {
    const isUsable = yield* Effect.isSuccess(files.access(parent, { writable: true }))
    if (!isUsable || (yield* files.stat(parent)).type !== "Directory") {
      return fail(
        `${folder} cannot be created: ${parent} is not a folder that this user can write to`,
        "Create the folder and give it to the service's user, or correct LICENSING_DATA_DIR."
      )
    }
    return warn(`${folder} does not exist yet`, "The first start creates it: see that this is the right path.")
  }
  yield* files.access(folder, { readable: true, writable: true })
  const { free, size } = yield* spaceOf(folder)
  const space = `${inGigabytes(free)} of ${inGigabytes(size)} GB free for ${folder}`
  if (free < freeBytesMin) return fail(space, "Free some space now: a full disk refuses every change with 503.")
  if (free < freeBytesLow) return warn(space, "Free some space, or move the folder to a larger disk.")
  return ok(space)
})

const existing: (path: string) => Effect.Effect<string, never, FileSystem.FileSystem> = Effect.fnUntraced(function* (
  path: string
) {
  const files = yield* FileSystem.FileSystem
  // A path below a file fails with ENOTDIR.
  const exists = yield* Effect.orElseSucceed(files.exists(path), () => false)
  return exists ? path : yield* existing(dirname(path))
})

const inGigabytes = (bytes: number) => (bytes / gigabyte).toFixed(1)

const spaceOf = (path: string) =>
  Effect.callback<{ readonly free: number; readonly size: number }, Error>((resume) =>
    statfs(path, (error, stats) =>
      resume(
        error === null
          ? Effect.succeed({ free: stats.bavail * stats.bsize, size: stats.blocks * stats.bsize })
          : Effect.fail(error)
      )
    )
  )

const decodeReadiness = Schema.decodeUnknownEffect(
  Schema.Union([
    Schema.Struct({ data: Schema.Struct({ status: Schema.Literal("ready") }) }),
    Schema.Struct({
      error: Schema.Struct({ code: Schema.Literal("NOT_READY"), detail: Schema.optional(Schema.String) })
    })
  ])
)

export const checkPort = Effect.gen(function* () {
  const { host, port } = yield* Settings
  const { fail, ok } = findingsOf("port")
  if (port === 0) return ok("Any free port: LICENSING_PORT is 0")
  const here = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host
  const at = `${here.includes(":") ? `[${here}]` : here}:${port}`
  const answer = yield* Effect.result(
    HttpClient.get(`http://${at}/readyz`).pipe(
      Effect.flatMap(({ json }) => json),
      Effect.timeout("3 seconds"),
      Effect.provide(FetchHttpClient.layer)
    )
  )
  if (answer._tag === "Failure") {
    return isRefused(answer.failure)
      ? ok(`${at} is free: no service runs here`)
      : fail(
          `The program at ${at} does not respond like this service`,
          "Stop that program, or choose another LICENSING_PORT."
        )
  }
  const readiness = yield* Effect.result(decodeReadiness(answer.success))
  if (readiness._tag === "Failure") {
    return fail(`Another program listens at ${at}`, "Stop that program, or choose another LICENSING_PORT.")
  }
  if ("data" in readiness.success) return ok(`A service is ready at ${at}`)
  return fail(
    `The service at ${at} is not ready: ${readiness.success.error.detail ?? "no reason given"}`,
    'docs/OPERATIONS.md, "First checks", says what each reason means.'
  )
})

/** An inner cause has the system's code, or on Deno the system's message. */
const isRefused = (error: unknown): boolean => {
  for (let cause = error; typeof cause === "object" && cause !== null; ) {
    const { cause: inner, code, message, reason } = cause as Readonly<Record<string, unknown>>
    if (code === "ECONNREFUSED" || /connection refused/i.test(String(message))) return true
    cause = reason ?? inner
  }
  return false
}
