/** Checks whether reports can be read from the replica, and whether it is one of this database. */
import { Effect, Result } from "effect"
import { SqlError } from "effect/sql"
import { Settings } from "../../platform/config/Config.ts"
import { encodingNeeded, versionMin } from "../../platform/postgres/driver/Postgres.ts"
import { remedyOf } from "../../platform/postgres/driver/Remedies.ts"
import { findingsOf, messageOf } from "./Check.ts"
import { type Database, nameOf, openDatabase } from "./Database.ts"

const setting = "LICENSING_REPORTS_DATABASE_URL"
const otherDatabase = `Point ${setting} at a replica of the database.`

export const checkReplica = Effect.fnUntraced(function* (database: Database) {
  const { fail, ok } = findingsOf("replica")
  const { reportsDatabaseUrl } = yield* Settings
  if (reportsDatabaseUrl === undefined) return []
  const name = nameOf(reportsDatabaseUrl)
  const opened = yield* Effect.result(openDatabase(reportsDatabaseUrl))
  if (Result.isFailure(opened)) {
    const error = opened.failure
    const remedy = SqlError.isSqlError(error) ? remedyOf(error, setting) : undefined
    return fail(`${name}: ${messageOf(error)}`, `${remedy ?? `Start the server, or correct ${setting}`}.`)
  }
  const replica = opened.success
  const { encoding, version } = yield* replica.row<{ version: number; encoding: string }>(`
    SELECT current_setting('server_version_num')::int4 / 10000 AS version, current_setting('server_encoding') AS encoding`)
  if (version < versionMin)
    return fail(`${name} has PostgreSQL ${version}`, `Version ${versionMin} or newer is needed.`)
  if (encoding !== encodingNeeded) return fail(`${name} has the encoding ${encoding}`, otherDatabase)
  const [own, its] = [yield* createdAt(database), yield* createdAt(replica)]
  if (own !== its) return fail(`${name} does not have the tables of this database`, otherDatabase)
  return ok(`Reports are read from ${name}`)
})

/** When the tables were created: equal only in copies of one database. Null without tables. */
const createdAt = Effect.fnUntraced(function* ({ row }: Database) {
  const { exists } = yield* row<{ exists: boolean }>("SELECT to_regclass('schema_migrations') IS NOT NULL AS exists")
  if (!exists) return null
  return (yield* row<{ at: string | null }>(
    "SELECT extract(epoch FROM min(applied_at))::text AS at FROM schema_migrations"
  )).at
})
