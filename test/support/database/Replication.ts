/** A primary and a synchronous standby on the same machine, from the embedded server's programs. */
import { join } from "node:path"
import { Effect, FileSystem, Redacted, Schedule } from "effect"
import { openConnection } from "../../../src/platform/postgres/driver/Postgres.ts"
import { type DatabaseFolder, prepare } from "../../../src/platform/postgres/embedded/DatabaseFolder.ts"
import { launch, processEnd, run, sendSignal } from "../../../src/platform/postgres/embedded/ServerProcess.ts"
import { freePort } from "../processes/FreePort.ts"
import { serverFolder } from "./DatabaseServer.ts"

const urlOf = ({ password }: DatabaseFolder, at: string) =>
  Redacted.make(`postgres://postgres:${password}@${at}/postgres`)

/** Polls until a query's first value is true. */
export const until = (url: Redacted.Redacted<string>, query: string) =>
  Effect.scoped(Effect.flatMap(openConnection(url), (connection) => connection.queryValues(query))).pipe(
    Effect.flatMap(([row]) => (row?.[0] === true ? Effect.void : Effect.fail("not yet"))),
    Effect.retry(Schedule.spaced("50 millis")),
    Effect.orDie
  )

/** Starts a server on a folder; the scope kills it. */
const startServer = Effect.fnUntraced(function* (
  folder: DatabaseFolder,
  cluster: string,
  settings: Readonly<Record<string, string>>
) {
  const port = yield* freePort
  const all = {
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    port: String(port),
    max_connections: "200",
    shared_buffers: "32MB",
    wal_keep_size: "256MB",
    // Both survive the death of a process; the machine stays up.
    fsync: "off",
    ...settings
  }
  const args = ["-D", cluster, ...Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`])]
  const { pid } = yield* Effect.acquireRelease(launch(folder.program, args, folder.log, folder.account), ({ pid }) =>
    Effect.andThen(sendSignal(pid, "SIGQUIT"), processEnd(pid))
  )
  const url = urlOf(folder, `127.0.0.1:${port}`)
  yield* until(url, "SELECT true")
  /** As a crash: open transactions are lost, and no connection is answered any more. */
  const kill = Effect.andThen(sendSignal(pid, "SIGQUIT"), processEnd(pid))
  return { port, url, kill, pid }
})

/** A copy of the primary's files while it runs. */
export const copyCluster = Effect.fnUntraced(function* (
  folder: DatabaseFolder,
  { cluster: original, url }: { readonly cluster: string; readonly url: Redacted.Redacted<string> }
) {
  const files = yield* FileSystem.FileSystem
  const cluster = `${original}-standby`
  const primary = yield* openConnection(url)
  yield* primary.queryValues("SELECT pg_backup_start('standby', true)::text")
  const copied = yield* run("/bin/cp", ["-a", original, cluster])
  if (copied.code !== 0) return yield* Effect.die(new Error(copied.output))
  const [[label]] = (yield* primary.queryValues("SELECT labelfile FROM pg_backup_stop(false)")) as [[string]]
  for (const name of ["postmaster.pid", "postmaster.opts"]) yield* files.remove(join(cluster, name), { force: true })
  for (const [name, text] of Object.entries({ backup_label: label, "standby.signal": "" })) {
    yield* files.writeFileString(join(cluster, name), text, { mode: 0o600 })
    if (folder.account !== undefined) yield* files.chown(join(cluster, name), folder.account.uid, folder.account.gid)
  }
  return cluster
}, Effect.scoped)

/**
 * Both servers, once commits wait for the standby. `url` names both, the primary first. The standby connects to the port that
 * `through` returns for the primary's.
 */
export const replicateThrough = Effect.fnUntraced(function* <E, R>(
  through: (port: number) => Effect.Effect<number, E, R>
) {
  const folder = yield* prepare(yield* serverFolder)
  const primary = yield* startServer(folder, folder.cluster, {})
  const standby = yield* startServer(
    folder,
    yield* copyCluster(folder, { cluster: folder.cluster, url: primary.url }),
    {
      primary_conninfo: `host=127.0.0.1 port=${yield* through(primary.port)} user=postgres password=${folder.password} application_name=standby`
    }
  )
  yield* until(primary.url, "SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'")
  const connection = yield* openConnection(primary.url)
  yield* connection.queryValues("ALTER SYSTEM SET synchronous_standby_names = 'standby'", [], false)
  yield* connection.queryValues("SELECT pg_reload_conf()")
  yield* until(primary.url, "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
  const promote = Effect.scoped(
    Effect.flatMap(openConnection(standby.url), (session) => session.queryValues("SELECT pg_promote(true, 60)"))
  )
  const both = urlOf(folder, `127.0.0.1:${primary.port},127.0.0.1:${standby.port}`)
  const url = Redacted.make(`${Redacted.value(both)}?target_session_attrs=read-write`)
  return { primary, standby: { ...standby, promote }, url }
})

export const replicatedDatabase = replicateThrough(Effect.succeed)
