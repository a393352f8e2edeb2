/** A PostgreSQL server with the settings of production, which a fault kills, freezes and starts again on the same port. */
import { readdirSync, readFileSync } from "node:fs"
import { Effect, Redacted, Schedule } from "effect"
import { openConnection } from "../../../src/platform/postgres/driver/Postgres.ts"
import type { DatabaseFolder } from "../../../src/platform/postgres/embedded/DatabaseFolder.ts"
import { launch, processEnd, sendSignal } from "../../../src/platform/postgres/embedded/ServerProcess.ts"
import { freePort } from "../../support/processes/FreePort.ts"

export interface PostgresServer {
  readonly port: number
  /** The superuser's address, without any link between. */
  readonly url: Redacted.Redacted<string>
  readonly password: string
  /** Its folder. */
  readonly cluster: string
  /** The server's process, or all its processes. */
  readonly signal: (name: NodeJS.Signals, whom: "server" | "all" | "one connection") => Effect.Effect<void>
  /** Waits until its process has ended. */
  readonly ended: Effect.Effect<void>
  /** Starts it, unless it runs, and waits until it accepts connections. */
  readonly start: Effect.Effect<void>
}

/** Executes statements, each in a transaction of its own. */
export const execute = (url: Redacted.Redacted<string>, ...statements: ReadonlyArray<string>): Effect.Effect<void> =>
  Effect.flatMap(openConnection(url), (connection) =>
    Effect.forEach(statements, (statement) => connection.queryValues(statement, [], false), { discard: true })
  ).pipe(Effect.scoped, Effect.orDie)

/** Connections for three nodes and the harness. */
const connectionsMax = 120

export const makePostgresServer = Effect.fnUntraced(function* (
  folder: DatabaseFolder,
  cluster: string,
  settings: Readonly<Record<string, string>> = {}
) {
  const port = yield* freePort
  const all = {
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    port: String(port),
    max_connections: String(connectionsMax),
    shared_buffers: "64MB",
    fsync: "on",
    wal_keep_size: "128MB",
    ...settings
  }
  const args = ["-D", cluster, ...Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`])]
  const url = Redacted.make(`postgres://postgres:${folder.password}@127.0.0.1:${port}/postgres`)
  let pid = 0
  const accepts = Effect.scoped(
    Effect.flatMap(openConnection(url), (connection) => connection.queryValues("SELECT true"))
  ).pipe(Effect.timeout("2 seconds"), Effect.isSuccess)
  // A server whose predecessor's processes still end gives up at once: it is started until one stays.
  const start = Effect.gen(function* () {
    if (pid === 0 || !(yield* sendSignal(pid, 0))) {
      const launched = yield* launch(folder.program, args, folder.log, folder.account)
      pid = launched.pid
    }
    return yield* accepts
  }).pipe(
    Effect.repeat({ until: (isRunning) => isRunning, schedule: Schedule.spaced("50 millis") }),
    Effect.asVoid,
    Effect.orDie
  )
  const signal: PostgresServer["signal"] = Effect.fnUntraced(function* (name, whom) {
    const children = childrenOf(pid)
    if (whom === "one connection") return yield* Effect.asVoid(sendSignal(children.at(-1) ?? pid, name))
    for (const one of [pid, ...(whom === "all" ? children : [])]) yield* sendSignal(one, name)
    if (name === "SIGKILL") yield* processEnd(pid)
  })
  const ended = Effect.suspend(() => Effect.asVoid(processEnd(pid)))
  yield* Effect.acquireRelease(start, () =>
    Effect.andThen(signal("SIGCONT", "all"), Effect.andThen(signal("SIGQUIT", "server"), processEnd(pid)))
  )
  return {
    port,
    url,
    password: folder.password,
    cluster,
    signal,
    ended,
    start
  } satisfies PostgresServer as PostgresServer
})

/** In the order of their start. */
const childrenOf = (parent: number): ReadonlyArray<number> =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && parentOf(name) === parent)
    .map(Number)
    .toSorted((a, b) => a - b)

const parentOf = (pid: string): number => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1])
  } catch {
    return 0
  }
}
