/**
 * Migrates the database to the schema of this version before an upgrade, so that a failed migration
 * stops the upgrade while the previous version serves. Every start of a node does the same.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import { Settings } from "../../platform/config/Config.ts"
import { databaseUrl } from "../../platform/Foundation.ts"
import { Postgres } from "../../platform/postgres/driver/Postgres.ts"
import { hasDatabase } from "../../platform/postgres/embedded/DatabaseFolder.ts"
import { inspect, run } from "../../platform/postgres/migrations/Migrations.ts"
import { settingsWithWarnings } from "./Operator.ts"
import { CommandEnded, flag, jsonFlag, print } from "./Output.ts"

export const migrateFlags = {
  check: flag(
    "check",
    "Apply nothing. Exit code 1: migrations or parts of the schema are missing, 2: the check is not possible."
  ),
  ...jsonFlag
}

interface Flags {
  readonly check: boolean
  readonly json: boolean
}

export const migrate = Effect.fnUntraced(function* ({ check, json }: Flags) {
  return yield* check ? orUnknown(checkPending(json)) : applyMissing(json)
})

/** Waits up to half a minute for the server, and fails if the service cannot use it. */
const usableDatabase = Effect.gen(function* () {
  const url = yield* databaseUrl
  yield* Layer.build(Postgres.layer({ url, maxConnections: 1 }))
  return url
})

const applyMissing = Effect.fnUntraced(
  function* (json: boolean) {
    const applied = yield* run({ url: yield* usableDatabase })
    const lines = applied.map((name) => `applied ${name}`)
    yield* print(json, { applied }, applied.length === 0 ? ["The database has all migrations of this version."] : lines)
  },
  Effect.scoped,
  Effect.provide([settingsWithWarnings, NodeServices.layer])
)

const checkPending = Effect.fnUntraced(
  function* (json: boolean) {
    const { databaseUrl, dataDir } = yield* Settings
    // A check must not create the embedded server.
    const exists = databaseUrl !== undefined || (yield* hasDatabase(dataDir))
    const found = exists ? yield* inspect({ url: yield* usableDatabase }) : undefined
    const lines =
      found === undefined
        ? ["There is no database yet: `serve` creates it."]
        : [...found.pending.map((name) => `pending ${name}`), ...found.missing.map((name) => `missing ${name}`)]
    const isWhole = lines.length === 0
    yield* print(
      json,
      { pending: found?.pending ?? null, missing: found?.missing ?? [] },
      isWhole ? ["The database has all migrations of this version."] : lines
    )
    if (!isWhole) return yield* new CommandEnded({ exitCode: 1, message: "" })
  },
  Effect.scoped,
  Effect.provide([settingsWithWarnings, NodeServices.layer])
)

const orUnknown = <A, R>(answer: Effect.Effect<A, { readonly message: string }, R>) =>
  Effect.mapError(answer, (error) =>
    error instanceof CommandEnded ? error : new CommandEnded({ exitCode: 2, message: error.message })
  )
