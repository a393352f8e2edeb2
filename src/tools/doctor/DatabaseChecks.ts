/** Checks whether the service can use the PostgreSQL server, and whether acknowledged changes are durable. */
import { Clock, Effect } from "effect"
import { Settings } from "../../platform/config/Config.ts"
import { encodingNeeded, encodingRemedy, versionMin } from "../../platform/postgres/driver/Postgres.ts"
import { type Finding, findingsOf } from "./Check.ts"
import type { Database } from "./Database.ts"

/** Connections of one node (docs/OPERATIONS.md, "Stored data"). */
const connectionsOf = (cluster: boolean) => (cluster ? 28 : 25)
const walMegabytesMin = 512
/** More than a synchronized clock differs by; and the maximum between nodes. */
const clockSecondsLow = 5
const clockSecondsMax = 30

export const checkServer = Effect.fnUntraced(function* ({ row }: Database, name: string) {
  const { fail, ok } = findingsOf("database")
  const server = yield* row<{
    version: number
    text: string
    encoding: string
    standby: boolean
    read_only: boolean
  }>(`SELECT current_setting('server_version_num')::int4 / 10000 AS version, current_setting('server_version') AS text,
    current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS standby,
    current_setting('transaction_read_only')::bool AS read_only`)
  const found = `PostgreSQL ${server.text} at ${name}`
  if (server.version < versionMin) return fail(found, `Upgrade the server: version ${versionMin} or newer is needed.`)
  if (server.encoding !== encodingNeeded) return fail(`${found} has the encoding ${server.encoding}`, encodingRemedy)
  if (server.standby) {
    return fail(
      `${found} is a standby, which takes no writes`,
      "Point LICENSING_DATABASE_URL at the primary, or name all hosts with target_session_attrs=read-write."
    )
  }
  if (server.read_only) {
    return fail(`${found} is read-only`, "Set default_transaction_read_only to off for the role and the database.")
  }
  return ok(`${found} takes writes`)
})

/** A start needs these rights to migrate, and requests need them to write. */
export const checkRights = Effect.fnUntraced(function* ({ row }: Database) {
  const { fail, ok } = findingsOf("rights")
  const rights = yield* row<{ role: string; schema: string | null; creates: boolean; foreign_tables: number }>(`
    SELECT current_user AS role, current_schema() AS schema,
      coalesce(has_schema_privilege(current_schema(), 'CREATE'), FALSE) AS creates,
      (SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'p', 'S', 'v') AND relnamespace = current_schema()::regnamespace
        AND NOT pg_has_role(relowner, 'USAGE')) AS foreign_tables`)
  const advice = `Make ${rights.role} the owner of the database and of its tables.`
  if (!rights.creates)
    return fail(`${rights.role} may not create tables in the schema ${rights.schema ?? "(none)"}`, advice)
  if (rights.foreign_tables > 0)
    return fail(`${rights.foreign_tables} tables belong to another role than ${rights.role}`, advice)
  return ok(`${rights.role} owns its tables and may create others`)
})

export const checkConnections = Effect.fnUntraced(function* ({ row }: Database) {
  const { fail, ok, warn } = findingsOf("connections")
  const needed = connectionsOf((yield* Settings).cluster)
  const { limit, max, used } = yield* row<{ max: number; used: number; limit: number }>(`
    SELECT current_setting('max_connections')::int4 - current_setting('superuser_reserved_connections')::int4
        - coalesce(current_setting('reserved_connections', TRUE)::int4, 0) AS max,
      -- The kind of other roles' sessions is hidden from ordinary roles.
      (SELECT count(*) FROM pg_stat_activity WHERE coalesce(backend_type, 'client backend') = 'client backend'
        AND datname IS NOT NULL AND pid <> pg_backend_pid()) AS used,
      (SELECT min(CASE WHEN most < 0 THEN 1000000 ELSE most END) FROM (
        SELECT rolconnlimit AS most FROM pg_roles WHERE rolname = current_user
        UNION ALL SELECT datconnlimit FROM pg_database WHERE datname = current_database()) AS limits) AS limit`)
  const usable = Math.min(max, limit)
  const found = `${used} of ${usable} connections are in use`
  if (usable < needed) return fail(found, `Raise max_connections: one node needs ${needed}.`)
  if (usable - used < needed) {
    return warn(found, `Raise max_connections: a further node, as in an upgrade, needs ${needed}.`)
  }
  return ok(found)
})

export const checkDurability = Effect.fnUntraced(function* ({ row }: Database) {
  const server = yield* row<{
    fsync: boolean
    full_page_writes: boolean
    synchronous_commit: string
    synchronous: boolean
    replicas: number
    min_wal: number
    max_wal: number
  }>(`SELECT current_setting('fsync')::bool AS fsync, current_setting('full_page_writes')::bool AS full_page_writes,
    current_setting('synchronous_commit') AS synchronous_commit, current_setting('synchronous_standby_names') <> '' AS synchronous,
    (SELECT count(*) FROM pg_stat_replication) AS replicas,
    pg_size_bytes(current_setting('min_wal_size')) / 1048576 AS min_wal,
    pg_size_bytes(current_setting('max_wal_size')) / 1048576 AS max_wal`)
  return [...durability(server), ...walSize(server)]
})

const durability = (server: {
  readonly fsync: boolean
  readonly full_page_writes: boolean
  readonly synchronous_commit: string
  readonly synchronous: boolean
  readonly replicas: number
}): ReadonlyArray<Finding> => {
  const { fail, ok, warn } = findingsOf("durability")
  if (!server.fsync) return fail("fsync is off: a crash may destroy the database", "Set fsync to on in the server.")
  if (!server.full_page_writes) {
    return fail("full_page_writes is off: a crash may destroy pages", "Set full_page_writes to on in the server.")
  }
  if (server.synchronous_commit === "off") {
    return fail(
      "synchronous_commit is off: a crash loses acknowledged changes",
      "Set synchronous_commit to on for the role, the database and the server."
    )
  }
  if (server.synchronous && server.synchronous_commit === "local") {
    return warn(
      "synchronous_commit is local: a failover loses acknowledged changes",
      "Set synchronous_commit to on, so that commits wait for the synchronous standby."
    )
  }
  if (!server.synchronous && server.replicas > 0) {
    return warn(
      "Standbys are asynchronous: a failover loses the last acknowledged changes",
      "Set synchronous_standby_names, or accept what docs/OPERATIONS.md says under Failover."
    )
  }
  return ok(`fsync on, synchronous_commit ${server.synchronous_commit}, ${server.replicas} standbys`)
}

const walSize = ({ max_wal, min_wal }: { readonly min_wal: number; readonly max_wal: number }) => {
  const { ok, warn } = findingsOf("wal")
  const found = `min_wal_size ${min_wal} MB, max_wal_size ${max_wal} MB`
  return min_wal < walMegabytesMin || max_wal < 2 * walMegabytesMin
    ? warn(
        found,
        `Set min_wal_size to ${walMegabytesMin}MB and max_wal_size to 1GB or more: commits wait while a log segment is made.`
      )
    : ok(found)
}

export const checkTransport = Effect.fnUntraced(function* ({ row }: Database) {
  const { ok, warn } = findingsOf("connection")
  const { encrypted, remote } = yield* row<{ encrypted: boolean; remote: boolean }>(`
    SELECT coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), FALSE) AS encrypted,
      coalesce(inet_client_addr() <> inet_server_addr(), FALSE) AS remote`)
  if (encrypted) return ok("Encrypted with TLS, and the server's certificate is verified")
  if (!remote) return ok("Within this machine, not encrypted")
  return warn(
    "Not encrypted, over a network",
    "Add sslmode=verify-full to LICENSING_DATABASE_URL, unless the network itself is encrypted."
  )
})

/** All nodes use one server, so its clock is the reference. */
export const checkClock = Effect.fnUntraced(function* ({ row }: Database) {
  const { clockOffsetSeconds } = yield* Settings
  const now = Effect.map(Clock.currentTimeMillis, (millis) => millis - clockOffsetSeconds * 1_000)
  const sentAt = yield* now
  const { at } = yield* row<{ at: number }>("SELECT extract(epoch FROM clock_timestamp()) * 1000 AS at")
  const receivedAt = yield* now
  // The server read its clock between the two instants.
  const seconds = (Math.max(0, at - receivedAt) + Math.max(0, sentAt - at)) / 1_000
  const { fail, ok, warn } = findingsOf("clock")
  const found = `${seconds.toFixed(1)} s apart from the database server's`
  const advice = "Synchronize both machines with NTP."
  if (seconds > clockSecondsMax) return fail(found, advice)
  if (seconds > clockSecondsLow) return warn(found, advice)
  return ok(found)
})
