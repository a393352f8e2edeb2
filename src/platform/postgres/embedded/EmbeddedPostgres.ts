// The embedded database: a real PostgreSQL server in the data folder, started and stopped with the service. What must stay
// true: one service per data folder, also after crashes; nothing acknowledged is lost (fsync is on); only this machine can
// connect, and only with the password in the folder.
import { createServer } from "node:net"
import { basename, join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Context, Deferred, Effect, FileSystem, Layer, Option, Redacted, Ref, Schedule } from "effect"
import { SecureRandom } from "effect/crypto"
import type { SqlError } from "effect/sql"
import { reasonOf } from "../driver/Hosts.ts"
import { DatabaseUnavailable, openSession } from "../driver/Postgres.ts"
import { type DatabaseFolder, isServedBy, prepare } from "./DatabaseFolder.ts"
import { commandLineOf, launch, processEnd, sendSignal, worksIn } from "./ServerProcess.ts"

export interface Options {
  /** The service's data folder. The server gets `postgres/`, `postgres.password` and `postgres.log` in it. */
  readonly directory: string
  /** Default: a free port. A server that is taken over keeps its port. */
  readonly port?: number
  /** Server settings that replace or extend the ones below. */
  readonly settings?: Readonly<Record<string, string>>
}

export class EmbeddedPostgres extends Context.Service<
  EmbeddedPostgres,
  {
    /** The superuser's address; constant while the layer exists. */
    readonly url: Redacted.Redacted<string>
  }
>()("licensing/platform/postgres/embedded/EmbeddedPostgres") {
  static readonly layer = (options: Options): Layer.Layer<EmbeddedPostgres, DatabaseUnavailable> =>
    Layer.effect(EmbeddedPostgres, make(options)).pipe(Layer.provide(platform))

  /** The server of the service that owns the folder. If no service does, starts a server while the layer exists. */
  static readonly layerShared = (options: Options): Layer.Layer<EmbeddedPostgres, DatabaseUnavailable> =>
    Layer.effect(
      EmbeddedPostgres,
      Effect.flatMap(
        findRunningServer(options),
        Option.match({ onNone: () => make(options), onSome: (url) => Effect.succeed(EmbeddedPostgres.of({ url })) })
      )
    ).pipe(Layer.provide(platform))
}

const platform = Layer.merge(NodeFileSystem.layer, SecureRandom.layerWebCrypto)

const serverSettings: Readonly<Record<string, string>> = {
  listen_addresses: "127.0.0.1",
  // No socket file: its folder would need permissions of its own.
  unix_socket_directories: "",
  max_connections: "100",
  shared_buffers: "128MB",
  fsync: "on",
  synchronous_commit: "on",
  wal_compression: "on",
  // The default depends on the size of a log segment, which is small here: see DatabaseFolder.
  wal_buffers: "4MB",
  // Keeps log segments for reuse: commits wait while a new segment is created.
  min_wal_size: "512MB",
  max_wal_size: "1GB",
  random_page_cost: "1.1",
  // Short statements on a small machine gain nothing from compilation or parallel workers, which also want /dev/shm.
  jit: "off",
  max_parallel_workers_per_gather: "0",
  TimeZone: "UTC",
  log_timezone: "UTC",
  // The service logs refused statements. The server's log contains only events of the server itself.
  log_min_messages: "log",
  log_min_error_statement: "panic",
  log_checkpoints: "off"
}

const logBytesMax = 8n * 1024n * 1024n

// The lock of the service that owns the folder; the number is arbitrary. It lasts as long as its connection, so that kill -9
// releases it and no stale lock can remain.
const ownerLock = 7_210_665_120

interface Server {
  readonly pid: number
  readonly port: number
}

const unavailable = (message: string) => new DatabaseUnavailable({ message })

const make = Effect.fnUntraced(function* (options: Options) {
  const folder = yield* prepare(options.directory)
  const owned = yield* Ref.make(Option.none<Server>())
  yield* Effect.addFinalizer(() =>
    Effect.flatMap(Ref.get(owned), (server) => (Option.isSome(server) ? stop(server.value) : Effect.void))
  )
  const ready = yield* Deferred.make<Server, DatabaseUnavailable>()
  // A server that crashes is restarted.
  const supervise = Effect.fnUntraced(function* () {
    const port = Option.getOrUndefined(yield* Ref.get(owned))?.port ?? options.port
    const { lost, server } = yield* acquireServer(folder, { ...options.settings, ...(port && { port: String(port) }) })
    yield* Ref.set(owned, Option.some(server))
    yield* Deferred.succeed(ready, server)
    yield* lost
    yield* Effect.logWarning("The embedded PostgreSQL has ended; restarting.")
  }, Effect.scoped)
  yield* supervise().pipe(
    // The layer fails with the first failure, so the caller reports that one.
    Effect.tapError((error) =>
      Effect.flatMap(Deferred.fail(ready, error), (first) => (first ? Effect.void : Effect.logError(error.message)))
    ),
    Effect.retry(Schedule.spaced("2 seconds")),
    Effect.repeat(Schedule.forever),
    Effect.forkScoped
  )
  const { port } = yield* Deferred.await(ready)
  yield* Effect.forkScoped(Effect.repeat(limitLogSize(folder.log), Schedule.spaced("10 minutes")))
  return EmbeddedPostgres.of({ url: urlOf(folder, port) })
})

const urlOf = (folder: DatabaseFolder, port: number) =>
  Redacted.make(`postgres://postgres:${folder.password}@127.0.0.1:${port}/postgres`)

/** The address of the server, if a service owns it now. */
const findRunningServer = Effect.fnUntraced(function* (options: Options) {
  const folder = yield* prepare(options.directory)
  const server = yield* readPostmaster(join(folder.cluster, "postmaster.pid"))
  if (Option.isNone(server) || !(yield* sendSignal(server.value.pid, 0))) return Option.none()
  const url = urlOf(folder, server.value.port)
  const session = yield* Effect.option(openSession(url))
  if (Option.isNone(session) || !(yield* Effect.orDie(isServedBy(folder, session.value)))) return Option.none()
  const rows = yield* Effect.orDie(session.value.values(`SELECT pg_try_advisory_lock(${ownerLock})`))
  return rows[0]?.[0] === true ? Option.none() : Option.some(url)
}, Effect.scoped)

/** Starts the server, or takes over one that a crashed service left running, and locks the folder. */
const acquireServer = Effect.fnUntraced(function* (folder: DatabaseFolder, settings: Readonly<Record<string, string>>) {
  const existing = yield* takeOver(folder)
  const { server, session } = Option.isSome(existing) ? existing.value : yield* start(folder, settings)
  const locked = yield* session.values(`SELECT pg_try_advisory_lock(${ownerLock})`).pipe(
    Effect.map((rows) => rows[0]?.[0] === true),
    // The server needs a moment to notice that a crashed owner's connection is closed.
    Effect.repeat({ until: (locked) => locked, schedule: Schedule.spaced("100 millis"), times: 10 }),
    Effect.mapError((error) => unavailable(`The connection to the embedded PostgreSQL was lost: ${error.message}`))
  )
  if (locked) {
    if (Option.isSome(existing))
      yield* Effect.logInfo(`Took over the embedded PostgreSQL that runs as process ${server.pid}.`)
    return { server, lost: session.lost }
  }
  return yield* unavailable(
    `Another service is using the database in ${folder.cluster}. Stop it, or give this one a data folder of its own.`
  )
})

/**
 * Takes over the server that still runs on the folder, as soon as it accepts connections. If it accepts none, it is stopped, but only
 * if its command line or working directory shows that it is this folder's server. Servers of other folders are never touched, even
 * if this folder is a copy of theirs.
 */
const takeOver = Effect.fnUntraced(function* (folder: DatabaseFolder) {
  const file = join(folder.cluster, "postmaster.pid")
  const existing = yield* readPostmaster(file)
  if (Option.isNone(existing) || !(yield* sendSignal(existing.value.pid, 0))) return Option.none()
  const server = existing.value
  // PostgreSQL would otherwise treat the process as a server of this folder.
  const ignoreProcess = Effect.as(Effect.ignore((yield* FileSystem.FileSystem).remove(file)), Option.none())
  const command = yield* commandLineOf(server.pid)
  // Process ids are reused, especially in a restarted container.
  if (command.length > 0 && basename(command[0] ?? "") !== "postgres") return yield* ignoreProcess
  const isHere = yield* worksIn(server.pid, folder.cluster)
  if (isHere === false) return yield* ignoreProcess
  const session = yield* connect(folder, server, processEnd(server.pid))
  if (Option.isSome(session)) {
    if (yield* Effect.orDie(isServedBy(folder, session.value))) return Option.some({ server, session: session.value })
    if (isHere === undefined) return yield* ignoreProcess
  } else if (isHere !== undefined || command.includes(folder.cluster)) yield* stop(server)
  // Two servers on one cluster would destroy it, so the operator must decide.
  if (!(yield* sendSignal(server.pid, 0))) return Option.none()
  return yield* unavailable(
    `Process ${server.pid} holds ${folder.cluster} according to ${file}, but does not answer. Stop it and start again.`
  )
})

/** Process id and port from the pid file; the process may have ended. */
const readPostmaster = Effect.fnUntraced(function* (file: string) {
  const files = yield* FileSystem.FileSystem
  const lines = (yield* files.readFileString(file).pipe(Effect.orElseSucceed(() => ""))).split("\n")
  const [pid, port] = [Number(lines[0]), Number(lines[3])]
  return pid > 0 && port > 0 ? Option.some<Server>({ pid, port }) : Option.none()
})

const start = Effect.fnUntraced(function* (folder: DatabaseFolder, settings: Readonly<Record<string, string>>) {
  yield* limitLogSize(folder.log)
  const port = Number(settings["port"] ?? (yield* freePort))
  const args = Object.entries({ ...serverSettings, ...settings, port: String(port) }).flatMap(([name, value]) => [
    "-c",
    `${name}=${value}`
  ])
  const launched = yield* launch(folder.program, ["-D", folder.cluster, ...args], folder.log, folder.account)
  const server: Server = { pid: launched.pid, port }
  const session = yield* connect(folder, server, launched.exited).pipe(Effect.onError(() => stop(server)))
  if (Option.isSome(session)) return { server, session: session.value }
  yield* stop(server)
  // If two services start at once, PostgreSQL lets one server use the folder. The other service finds that server here.
  const winner = yield* takeOver(folder)
  if (Option.isSome(winner)) return winner.value
  return yield* unavailable(`The embedded PostgreSQL does not start: ${yield* lastLogLines(folder.log)}`)
})

/** Opens a session as soon as the server accepts it; none if the server ended or did not answer for two minutes. */
const connect = Effect.fnUntraced(function* (folder: DatabaseFolder, server: Server, ended: Effect.Effect<unknown>) {
  return yield* openSession(urlOf(folder, server.port)).pipe(
    Effect.retry({ while: isNotReady, schedule: Schedule.spaced("20 millis") }),
    Effect.mapError((error) => unavailable(`The embedded PostgreSQL accepts no session: ${refusalOf(error)}`)),
    Effect.timeoutOption("2 minutes"),
    Effect.raceFirst(Effect.as(ended, Option.none()))
  )
})

const isNotReady = (error: DatabaseUnavailable | SqlError.SqlError) =>
  error._tag === "SqlError" && error.reason._tag === "ConnectionError"

const refusalOf = (error: DatabaseUnavailable | SqlError.SqlError) => {
  if (error._tag !== "SqlError") return error.message
  const isPassword = error.reason._tag === "AuthenticationError"
  return `${reasonOf(error)}.${isPassword ? " Restore the file postgres.password." : ""}`
}

/** A fast shutdown (open transactions are rolled back, everything is on disk); an immediate one after five seconds. */
const stop = Effect.fnUntraced(function* ({ pid }: Server) {
  for (const name of ["SIGINT", "SIGQUIT", "SIGKILL"] as const) {
    if (!(yield* sendSignal(pid, name))) return
    if (Option.isSome(yield* Effect.timeoutOption(processEnd(pid), "5 seconds"))) return
  }
})

const freePort = Effect.callback<number>((resume) => {
  const probe = createServer().listen(0, "127.0.0.1", () => {
    const address = probe.address()
    probe.close(() => resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0)))
  })
})

// The server appends to the file, so it continues after the truncation. One earlier log file is kept.
const limitLogSize = Effect.fnUntraced(
  function* (log: string) {
    const files = yield* FileSystem.FileSystem
    const { size } = yield* files.stat(log)
    if (size < logBytesMax) return
    yield* files.copyFile(log, `${log}.1`)
    yield* files.truncate(log)
  },
  (effect) => Effect.ignore(effect)
)

const lastLogLines = Effect.fnUntraced(function* (log: string) {
  const files = yield* FileSystem.FileSystem
  const lines = (yield* files.readFileString(log).pipe(Effect.orElseSucceed(() => ""))).trim().split("\n")
  return `${lines.slice(-3).join(" ")} (more in ${log})`
})
