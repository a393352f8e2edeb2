/** The processes of a benchmark: one PostgreSQL server, and for each side a measured server with its own driver. */
import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { Context, Effect, Layer, Redacted } from "effect"
import { type Running, root, start, startService } from "../../../infra/scripts/service.ts"
import { openSession } from "../../../src/platform/postgres/driver/Postgres.ts"
import { EmbeddedPostgres } from "../../../src/platform/postgres/embedded/EmbeddedPostgres.ts"
import type { Order, Reply } from "./drive.ts"

/**
 * `other`: the service of another checkout; `monthly`: the service, with a monthly quota; `bare`: a server that only reads, signs and
 * answers.
 */
export type SideName = "service" | "other" | "monthly" | "baseline" | "bare"

export interface Side {
  readonly name: SideName
  readonly pid: number
  readonly driverPid: number
  readonly order: <D extends Reply["did"]>(order: Order, did: D) => Promise<Extract<Reply, { did: D }>>
}

/** A folder that is deleted at the end. PostgreSQL's own user must be able to enter it. */
export const folder = Effect.acquireRelease(
  Effect.sync(() => {
    const path = mkdtempSync(join(tmpdir(), "licensing-bench-"))
    chmodSync(path, 0o711)
    return path
  }),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** The embedded server with the service's own configuration: fsync is on. */
export const startPostgres = Effect.fnUntraced(function* (directory: string) {
  const server = Context.get(yield* Layer.build(EmbeddedPostgres.layer({ directory })), EmbeddedPostgres)
  const pid = Number(readFileSync(join(directory, "postgres", "postmaster.pid"), "utf8").split("\n")[0])
  return { url: server.url, pid }
})

/** Creates a database for the side and starts the side on it. */
export const startSide = Effect.fnUntraced(function* (
  name: SideName,
  server: Redacted.Redacted<string>,
  options: { readonly directory: string; readonly connections: number; readonly against?: string | undefined }
) {
  const token = `bench_${randomBytes(32).toString("base64url")}`
  const database = yield* createDatabase(name, server)
  const log = join(options.directory, `${name}.log`)
  const running = yield* Effect.acquireRelease(
    Effect.promise(() => servers[name]({ database, token, log, against: options.against })),
    (running) => Effect.promise(() => running.stop())
  )
  const period = name === "monthly" ? ["month"] : []
  const driver = yield* startDriver([running.base, token, String(options.connections), ...period])
  return { name, pid: running.pid, ...driver } satisfies Side
})

const createDatabase = Effect.fnUntraced(function* (name: SideName, server: Redacted.Redacted<string>) {
  const session = yield* openSession(server)
  yield* session.values(`CREATE DATABASE bench_${name}`)
  const url = new URL(Redacted.value(server))
  url.pathname = `bench_${name}`
  return url.href
}, Effect.scoped)

interface Starting {
  readonly database: string
  readonly token: string
  readonly log: string
  readonly against: string | undefined
}

const serviceOf =
  (folderOf: (starting: Starting) => string) =>
  (starting: Starting): Promise<Running> =>
    startService({
      folder: folderOf(starting),
      log: starting.log,
      settings: {
        LICENSING_DATABASE_URL: starting.database,
        LICENSING_MASTER_KEY: randomBytes(32).toString("base64"),
        LICENSING_BOOTSTRAP_TOKEN: starting.token,
        LICENSING_LOG_LEVEL: "warning",
        // The driver is a single client that exceeds every limit.
        LICENSING_RATE_RUNTIME: "0",
        LICENSING_RATE_ACTIVATION: "0",
        LICENSING_RATE_MANAGEMENT: "0",
        LICENSING_RATE_FAILURES: "0"
      }
    })

const servers: Record<SideName, (starting: Starting) => Promise<Running>> = {
  service: serviceOf(() => root),
  other: serviceOf(({ against }) => resolve(against ?? root)),
  monthly: serviceOf(() => root),
  baseline: ({ database, log, token }) =>
    start({
      log,
      args: ["test/bench/baseline/baseline.ts"],
      settings: (port) => ({ DATABASE_URL: database, PORT: String(port), TOKEN: token })
    }),
  bare: ({ log }) => start({ log, args: ["test/bench/baseline/bare.ts"], settings: (port) => ({ PORT: String(port) }) })
}

export const startDriver = (args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(process.execPath, ["test/bench/load/drive.ts", ...args], {
        cwd: root,
        stdio: ["ignore", "ignore", "inherit", "ipc"]
      })
      const order: Side["order"] = async (order, did) => {
        const answered = new AbortController()
        const { signal } = answered
        child.send(order)
        const ended = once(child, "exit", { signal }).then((): [Reply] => [
          { did: "failed", reason: "the driver ended" }
        ])
        const [reply] = (await Promise.race([once(child, "message", { signal }), ended])) as [Reply]
        // The other wait is abandoned; its rejection has no handler.
        ended.catch(() => {})
        answered.abort()
        if (reply.did === did) return reply as never
        throw new Error(reply.did === "failed" ? reply.reason : `the driver answered ${reply.did}, not ${did}`)
      }
      return { child, driverPid: child.pid ?? 0, order }
    }),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  )
