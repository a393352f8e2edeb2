// The database that comes with the service: a real PostgreSQL server in the data folder, started and stopped with it.
// What must stay true: one service per data folder, whatever died before; nothing acknowledged is lost (fsync is on);
// only this machine can connect, and only with the password that lies in the folder.
import { createServer } from "node:net"
import { basename, join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Context, Deferred, Effect, FileSystem, Layer, Option, Redacted, Ref, Schedule } from "effect"
import { SecureRandom } from "effect/crypto"
import type { SqlError } from "effect/sql"
import { type DatabaseFolder, prepare } from "./DatabaseFolder.ts"
import { DatabaseUnavailable, openSession } from "./Postgres.ts"
import { commandOf, gone, launch, signal } from "./ServerProcess.ts"

export interface Options {
  /** The service's data folder. The server gets `postgres/`, `postgres.password` and `postgres.log` in it. */
  readonly directory: string
  /** Default: one that is free at the start. A server that is taken over keeps its own. */
  readonly port?: number
  /** Server settings that replace or join the ones below. */
  readonly settings?: Readonly<Record<string, string>>
}

export class EmbeddedPostgres extends Context.Service<
  EmbeddedPostgres,
  {
    /** The superuser's address; the same for the layer's life. */
    readonly url: Redacted.Redacted<string>
  }
>()("licensing/postgres/EmbeddedPostgres") {
  static readonly layer = (options: Options): Layer.Layer<EmbeddedPostgres, DatabaseUnavailable> =>
    Layer.effect(EmbeddedPostgres, make(options)).pipe(Layer.provide(platform))

  /** The server of the service that owns the folder now; where there is none, a server of one's own for the layer's life. */
  static readonly layerShared = (options: Options): Layer.Layer<EmbeddedPostgres, DatabaseUnavailable> =>
    Layer.effect(
      EmbeddedPostgres,
      Effect.flatMap(
        running(options),
        Option.match({ onNone: () => make(options), onSome: (url) => Effect.succeed(EmbeddedPostgres.of({ url })) })
      )
    ).pipe(Layer.provide(platform))
}

const platform = Layer.merge(NodeFileSystem.layer, SecureRandom.layerWebCrypto)

const serverSettings: Readonly<Record<string, string>> = {
  listen_addresses: "127.0.0.1",
  // No socket file: its folder would need rights of its own.
  unix_socket_directories: "",
  max_connections: "100",
  shared_buffers: "128MB",
  fsync: "on",
  synchronous_commit: "on",
  wal_compression: "on",
  // Would follow the size of a log segment, which is small here: see DatabaseFolder.
  wal_buffers: "4MB",
  // Log that was needed once is kept to be written over: a new segment is made while commits wait for it.
  min_wal_size: "512MB",
  max_wal_size: "1GB",
  random_page_cost: "1.1",
  // Short statements on a small machine gain nothing from compilation or parallel workers, which also want /dev/shm.
  jit: "off",
  max_parallel_workers_per_gather: "0",
  TimeZone: "UTC",
  log_timezone: "UTC",
  // Refused statements are the service's to report; the log keeps what concerns the server itself.
  log_min_messages: "log",
  log_min_error_statement: "panic",
  log_checkpoints: "off"
}

const logBytesMax = 8n * 1024n * 1024n

// The lock that says "a service owns this folder", under any fixed number. It lives as long as its connection, so kill -9
// frees it and nothing stale can be left behind.
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
  // Holds the server until it goes away, then holds the next one: a server that crashes comes back by itself.
  const hold = Effect.fnUntraced(function* () {
    const port = Option.getOrUndefined(yield* Ref.get(owned))?.port ?? options.port
    const { lost, server } = yield* own(folder, { ...options.settings, ...(port && { port: String(port) }) })
    yield* Ref.set(owned, Option.some(server))
    yield* Deferred.succeed(ready, server)
    yield* lost
    yield* Effect.logWarning("The embedded PostgreSQL has gone away; starting it again.")
  }, Effect.scoped)
  yield* hold().pipe(
    // The first failure is the start's own, and told by whoever started us.
    Effect.tapError((error) =>
      Effect.flatMap(Deferred.fail(ready, error), (first) => (first ? Effect.void : Effect.logError(error.message)))
    ),
    Effect.retry(Schedule.spaced("2 seconds")),
    Effect.repeat(Schedule.forever),
    Effect.forkScoped
  )
  const { port } = yield* Deferred.await(ready)
  yield* Effect.forkScoped(Effect.repeat(boundLog(folder.log), Schedule.spaced("10 minutes")))
  return EmbeddedPostgres.of({ url: urlOf(folder, port) })
})

const urlOf = (folder: DatabaseFolder, port: number) =>
  Redacted.make(`postgres://postgres:${folder.password}@127.0.0.1:${port}/postgres`)

/** The address of the server that a service owns at this moment. */
const running = Effect.fnUntraced(function* (options: Options) {
  const folder = yield* prepare(options.directory)
  const server = yield* readPostmaster(join(folder.cluster, "postmaster.pid"))
  if (Option.isNone(server) || !(yield* signal(server.value.pid, 0))) return Option.none()
  const url = urlOf(folder, server.value.port)
  const session = yield* Effect.option(openSession(url))
  if (Option.isNone(session)) return Option.none()
  const rows = yield* Effect.orDie(session.value.values(`SELECT pg_try_advisory_lock(${ownerLock})`))
  return rows[0]?.[0] === true ? Option.none() : Option.some(url)
}, Effect.scoped)

/** Starts the server, or takes over the one that a dead service left, and takes the ownership of the folder. */
const own = Effect.fnUntraced(function* (folder: DatabaseFolder, settings: Readonly<Record<string, string>>) {
  const left = yield* takeOver(folder)
  const { server, session } = Option.isSome(left) ? left.value : yield* start(folder, settings)
  const locked = yield* session.values(`SELECT pg_try_advisory_lock(${ownerLock})`).pipe(
    Effect.map((rows) => rows[0]?.[0] === true),
    // The server needs a moment to see that a dead owner's connection is closed.
    Effect.repeat({ until: (locked) => locked, schedule: Schedule.spaced("100 millis"), times: 10 }),
    Effect.mapError((error) => unavailable(`The embedded PostgreSQL broke off: ${error.message}`))
  )
  if (locked) {
    if (Option.isSome(left))
      yield* Effect.logInfo(`Took over the embedded PostgreSQL that runs as process ${server.pid}.`)
    return { server, lost: session.lost }
  }
  return yield* unavailable(
    `Another service is using the database in ${folder.cluster}. Stop it, or give this one a data folder of its own.`
  )
})

/** The server that still runs on the folder, once it answers. Ours is stopped when it does not; a doubtful one never is. */
const takeOver = Effect.fnUntraced(function* (folder: DatabaseFolder) {
  const file = join(folder.cluster, "postmaster.pid")
  const left = yield* readPostmaster(file)
  if (Option.isNone(left) || !(yield* signal(left.value.pid, 0))) return Option.none()
  const server = left.value
  const command = yield* commandOf(server.pid)
  if (command.length > 0 && basename(command[0] ?? "") !== "postgres") {
    // Process numbers come again, above all in a restarted container: PostgreSQL would take the stranger for a server.
    yield* Effect.ignore((yield* FileSystem.FileSystem).remove(file))
    return Option.none()
  }
  const session = yield* answer(folder, server, gone(server.pid))
  if (Option.isSome(session)) return Option.some({ server, session: session.value })
  if (command.includes(folder.cluster)) yield* stop(server)
  // Two servers on one cluster would destroy it, so what may be one is left to a person.
  if (!(yield* signal(server.pid, 0))) return Option.none()
  return yield* unavailable(
    `Process ${server.pid} holds ${folder.cluster} according to ${file}, but does not answer. Stop it and start again.`
  )
})

/** Process and port of the server that says it runs here; it may be long dead. */
const readPostmaster = Effect.fnUntraced(function* (file: string) {
  const files = yield* FileSystem.FileSystem
  const lines = (yield* files.readFileString(file).pipe(Effect.orElseSucceed(() => ""))).split("\n")
  const [pid, port] = [Number(lines[0]), Number(lines[3])]
  return pid > 0 && port > 0 ? Option.some<Server>({ pid, port }) : Option.none()
})

const start = Effect.fnUntraced(function* (folder: DatabaseFolder, settings: Readonly<Record<string, string>>) {
  yield* boundLog(folder.log)
  const port = Number(settings["port"] ?? (yield* freePort))
  const args = Object.entries({ ...serverSettings, ...settings, port: String(port) }).flatMap(([name, value]) => [
    "-c",
    `${name}=${value}`
  ])
  const launched = yield* launch(folder.program, ["-D", folder.cluster, ...args], folder.log, folder.account)
  const server: Server = { pid: launched.pid, port }
  const session = yield* answer(folder, server, launched.exited).pipe(Effect.onError(() => stop(server)))
  if (Option.isSome(session)) return { server, session: session.value }
  yield* stop(server)
  // Two services that start at once: PostgreSQL lets one server onto the folder, and the loser finds the winner here.
  const winner = yield* takeOver(folder)
  if (Option.isSome(winner)) return winner.value
  return yield* unavailable(`The embedded PostgreSQL does not start: ${yield* lastWords(folder.log)}`)
})

/** A session with the server as soon as it lets one in; none when it ended or kept silent for two minutes. */
const answer = Effect.fnUntraced(function* (folder: DatabaseFolder, server: Server, ended: Effect.Effect<unknown>) {
  return yield* openSession(urlOf(folder, server.port)).pipe(
    Effect.retry({ while: isNotYet, schedule: Schedule.spaced("20 millis") }),
    Effect.mapError((error) => unavailable(`The embedded PostgreSQL refuses its password file: ${error.message}`)),
    Effect.timeoutOption("2 minutes"),
    Effect.raceFirst(Effect.as(ended, Option.none()))
  )
})

const isNotYet = (error: DatabaseUnavailable | SqlError.SqlError) =>
  error._tag === "SqlError" && error.reason._tag === "ConnectionError"

/** A fast shutdown (open transactions are rolled back, everything is on disk); past five seconds an immediate one. */
const stop = Effect.fnUntraced(function* ({ pid }: Server) {
  for (const name of ["SIGINT", "SIGQUIT", "SIGKILL"] as const) {
    if (!(yield* signal(pid, name))) return
    if (Option.isSome(yield* Effect.timeoutOption(gone(pid), "5 seconds"))) return
  }
})

const freePort = Effect.callback<number>((resume) => {
  const probe = createServer().listen(0, "127.0.0.1", () => {
    const address = probe.address()
    probe.close(() => resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0)))
  })
})

// The server appends, so it goes on at the start of the emptied file; one earlier stretch is kept.
const boundLog = Effect.fnUntraced(
  function* (log: string) {
    const files = yield* FileSystem.FileSystem
    const { size } = yield* files.stat(log)
    if (size < logBytesMax) return
    yield* files.copyFile(log, `${log}.1`)
    yield* files.truncate(log)
  },
  (effect) => Effect.ignore(effect)
)

const lastWords = Effect.fnUntraced(function* (log: string) {
  const files = yield* FileSystem.FileSystem
  const lines = (yield* files.readFileString(log).pipe(Effect.orElseSucceed(() => ""))).trim().split("\n")
  return `${lines.slice(-3).join(" ")} (more in ${log})`
})
