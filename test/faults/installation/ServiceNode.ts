/** A node: the real program in a process of its own, on one port for all its lives, behind links to the database and from other nodes. */
import { type ChildProcess, spawn } from "node:child_process"
import { closeSync, openSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { Pool } from "undici"
import { freePort } from "../../support/processes/FreePort.ts"
import { program } from "../../support/processes/Program.ts"
import { poll } from "../../support/rules/Poll.ts"
import { type Link, makeLink } from "./Link.ts"

export interface ServiceNode {
  readonly name: string
  readonly pool: Pool
  /** Between the node and the database. */
  readonly database: Link
  /** Between the other nodes and this one. */
  readonly peers: Link
  /** Starts it, unless it runs. `further` settings hold for this life only. */
  readonly start: (further?: Readonly<Record<string, string>>) => Effect.Effect<void>
  /** Changes settings for the next start, and all after it. */
  readonly configure: (changed: Readonly<Record<string, string>>) => Effect.Effect<void>
  /** From its next start on it runs this version. */
  readonly upgrade: Effect.Effect<void>
  /** Runs a command of the program with the node's settings; returns its exit code. An interruption kills it. */
  readonly command: (args: ReadonlyArray<string>) => Effect.Effect<number | null>
  readonly signal: (name: NodeJS.Signals) => Effect.Effect<void>
  /** Of its present life. */
  readonly pid: () => number
  /** Waits until the process has ended. */
  readonly ended: Effect.Effect<void>
  readonly isReady: Effect.Effect<boolean>
  readonly untilReady: Effect.Effect<void>
}

/** A client gives up an answer after this time; the service decides or refuses within its own limit of ten seconds. */
const answerMillisMax = 12_000

const environment = {
  PATH: process.env["PATH"] ?? "",
  NODE_COMPILE_CACHE: fileURLToPath(new URL("../../../node_modules/.cache/compiled", import.meta.url))
}

export const makeServiceNode = Effect.fnUntraced(function* (
  name: string,
  log: string,
  database: Link,
  settings: Readonly<Record<string, string>>,
  previous: string | undefined
) {
  const next = yield* program
  let main = previous === undefined ? next : join(previous, "src/main.ts")
  const [port, listen] = [yield* freePort, yield* freePort]
  const peers = yield* makeLink(listen)
  let own: Readonly<Record<string, string>> = {
    ...settings,
    LICENSING_PORT: String(port),
    ...("LICENSING_CLUSTER" in settings && {
      LICENSING_CLUSTER_LISTEN: `127.0.0.1:${listen}`,
      LICENSING_CLUSTER_ADDRESS: `127.0.0.1:${peers.port}`
    })
  }
  const base = `http://127.0.0.1:${port}`
  const pool = yield* Effect.acquireRelease(
    Effect.sync(() => new Pool(base, { headersTimeout: answerMillisMax, bodyTimeout: answerMillisMax })),
    (pool) => Effect.promise(() => pool.destroy())
  )
  let child: ChildProcess | undefined
  const hasEnded = () => child === undefined || child.exitCode !== null || child.signalCode !== null
  const run = (args: ReadonlyArray<string>, further: Readonly<Record<string, string>>) => {
    const output = openSync(log, "a")
    const started = spawn(process.execPath, [main, ...args], {
      env: { ...environment, ...own, ...further },
      stdio: ["ignore", output, output]
    })
    closeSync(output)
    return started
  }
  let settingsOfLife: Readonly<Record<string, string>> = {}
  const start: ServiceNode["start"] = (further = {}) =>
    Effect.sync(() => {
      if (!hasEnded()) return
      settingsOfLife = further
      child = run(["serve"], further)
    })
  const configure: ServiceNode["configure"] = (changed) =>
    Effect.sync(() => {
      own = { ...own, ...changed }
    })
  const command: ServiceNode["command"] = (args) =>
    Effect.callback((resume) => {
      const started = run(args, {})
      started.on("exit", (code) => resume(Effect.succeed(code)))
      return Effect.sync(() => started.kill("SIGKILL"))
    })
  const ended = Effect.callback<void>((resume) => {
    if (hasEnded()) return resume(Effect.void)
    child?.once("exit", () => resume(Effect.void))
  })
  const signal = (name: NodeJS.Signals) => Effect.sync(() => void child?.kill(name))
  const isReady = Effect.tryPromise(() => pool.request({ path: "/readyz", method: "GET" })).pipe(
    Effect.tap(({ body }) => Effect.tryPromise(() => body.dump())),
    Effect.map(({ statusCode }) => statusCode === 200),
    Effect.orElseSucceed(() => false)
  )
  yield* Effect.acquireRelease(start(), () => Effect.andThen(signal("SIGKILL"), ended))
  return {
    ...{ name, pool, database, peers },
    start,
    configure,
    upgrade: Effect.sync(() => {
      main = next
    }),
    command,
    signal,
    pid: () => child?.pid ?? 0,
    ended,
    isReady,
    // A node that gives up its start is started again, as a supervisor does: another program may hold its port for a while.
    untilReady: Effect.asVoid(
      poll(
        Effect.suspend(() => Effect.andThen(start(settingsOfLife), isReady)),
        (ready) => ready
      )
    )
  } satisfies ServiceNode as ServiceNode
})
