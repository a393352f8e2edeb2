/**
 * Starts the service as a separate process on a free port, and stops it: for the tour and the benchmarks. It uses only the
 * service's command line, settings and readiness probe.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { closeSync, openSync, readFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { installTools } from "./tools.ts"

export const root = fileURLToPath(new URL("../..", import.meta.url))

export interface Running {
  /** `http://127.0.0.1:<port>` */
  readonly base: string
  readonly pid: number
  /** Sends SIGTERM, and SIGKILL if the process does not exit within ten seconds. */
  stop(): Promise<void>
}

export interface Start {
  /** The checkout to run, with installed packages. Default: this one. */
  readonly folder?: string
  /** The arguments after the program's name. */
  readonly args: ReadonlyArray<string>
  readonly runtime?: Runtime
  /** The settings. LICENSING_ and OTEL_ variables of this process's environment are not inherited. */
  readonly settings: (port: number) => Record<string, string>
  /** The file for the process's output. */
  readonly log: string
}

export type Runtime = "node" | "deno"

/** Caches compiled modules as `npm start` does, so that the next start neither compiles them nor strips their types. */
const compileCache = (folder: string) => ({ NODE_COMPILE_CACHE: join(folder, "node_modules/.cache/compiled") })
/** The Node options of `npm start`, so that the tour and the benchmarks run the service as users do. */
const nodeOptions = (folder: string): ReadonlyArray<string> => {
  const { scripts } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { scripts: { start: string } }
  return scripts.start.split(" ").filter((word) => word.startsWith("--"))
}
const leadingArgs = { node: [], deno: ["run", "--allow-all"] }

/** The service itself. */
export const startService = (options: Omit<Start, "args" | "settings"> & { settings: Record<string, string> }) =>
  start({
    ...options,
    args: [...(options.runtime === "deno" ? [] : nodeOptions(options.folder ?? root)), "src/main.ts", "serve"],
    settings: (port) => ({ LICENSING_HOST: "127.0.0.1", LICENSING_PORT: String(port), ...options.settings })
  })

/** Starts any HTTP server with a /readyz. Resolves when that responds 200. */
export const start = async ({ args, folder = root, log, runtime = "node", settings }: Start): Promise<Running> => {
  const port = await freePort()
  const output = openSync(log, "a")
  const programs = runtime === "deno" ? installTools("deno") : join(folder, "node_modules/.bin")
  const child = spawn(join(programs, runtime), [...leadingArgs[runtime], ...args], {
    cwd: folder,
    env: { ...compileCache(folder), ...inherited(), ...settings(port) },
    stdio: ["ignore", output, output]
  })
  closeSync(output)
  const base = `http://127.0.0.1:${port}`
  await ready(base, child, log)
  return { base, pid: child.pid ?? 0, stop: () => stop(child) }
}

const inherited = () =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(LICENSING|OTEL)_/.test(name)))

const freePort = async (): Promise<number> => {
  const probe = createServer().listen(0, "127.0.0.1")
  await once(probe, "listening")
  const address = probe.address()
  probe.close()
  await once(probe, "close")
  return typeof address === "object" && address !== null ? address.port : 0
}

/** The first start initialises a database, perhaps on a slow disk. */
const readyMillisMax = 120_000

const ready = async (base: string, child: ChildProcess, log: string) => {
  const until = performance.now() + readyMillisMax
  const ended = once(child, "exit").then(() => "ended")
  while (performance.now() < until && child.exitCode === null && child.signalCode === null) {
    const status = await fetch(`${base}/readyz`).then(
      (response) => response.status,
      () => 0
    )
    if (status === 200) return
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 50))])
  }
  await stop(child)
  throw new Error(`the process did not become ready; its output:\n${readFileSync(log, "utf8").slice(-4000)}`)
}

const stop = async (child: ChildProcess) => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, "exit")
  child.kill("SIGTERM")
  const timeout = setTimeout(() => child.kill("SIGKILL"), 10_000)
  await ended
  clearTimeout(timeout)
}
