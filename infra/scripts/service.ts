/**
 * Starts the service as a process of its own, on a free port, and stops it again: for the tour and the benchmark. It knows the
 * service only by its command line, its settings and its probe.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { closeSync, openSync, readFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

export const root = fileURLToPath(new URL("../..", import.meta.url))

export interface Running {
  /** `http://127.0.0.1:<port>` */
  readonly base: string
  readonly pid: number
  /** Asks it to end, and ends it where it does not within ten seconds. */
  stop(): Promise<void>
}

export interface Start {
  /** The checkout that is run, with its packages installed. Default: this one. */
  readonly folder?: string
  /** What comes after the program's name. */
  readonly args: ReadonlyArray<string>
  readonly runtime?: Runtime
  /** Settings; the environment's own LICENSING_ ones are left out. */
  readonly settings: (port: number) => Record<string, string>
  /** The file that takes what the process prints. */
  readonly log: string
}

export type Runtime = "node" | "deno"

/** As `npm start` does: what was compiled once is not compiled, nor are its types taken away, at the next start. */
const compiledIn = (folder: string) => ({ NODE_COMPILE_CACHE: join(folder, "node_modules/.cache/compiled") })
/** What `npm start` tells Node, so that what is toured and measured is what is run. */
const nodeOptions = (folder: string): ReadonlyArray<string> => {
  const { scripts } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { scripts: { start: string } }
  return scripts.start.split(" ").filter((word) => word.startsWith("--"))
}
const leading = { node: [], deno: ["run", "--allow-all"] }

/** The service itself. */
export const startService = (options: Omit<Start, "args" | "settings"> & { settings: Record<string, string> }) =>
  start({
    ...options,
    args: [...(options.runtime === "deno" ? [] : nodeOptions(options.folder ?? root)), "src/main.ts", "serve"],
    settings: (port) => ({ LICENSING_HOST: "127.0.0.1", LICENSING_PORT: String(port), ...options.settings })
  })

/** Any HTTP server with a /readyz. Settles when that answers 200. */
export const start = async ({ args, folder = root, log, runtime = "node", settings }: Start): Promise<Running> => {
  const port = await freePort()
  const output = openSync(log, "a")
  const child = spawn(join(folder, "node_modules/.bin", runtime), [...leading[runtime], ...args], {
    cwd: folder,
    env: { ...compiledIn(folder), ...inherited(), ...settings(port) },
    stdio: ["ignore", output, output]
  })
  closeSync(output)
  const base = `http://127.0.0.1:${port}`
  await ready(base, child, log)
  return { base, pid: child.pid ?? 0, stop: () => stop(child) }
}

const inherited = () =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("LICENSING_")))

const freePort = async (): Promise<number> => {
  const probe = createServer().listen(0, "127.0.0.1")
  await once(probe, "listening")
  const address = probe.address()
  probe.close()
  await once(probe, "close")
  return typeof address === "object" && address !== null ? address.port : 0
}

/** The first start initialises a database and may find a slow disk. */
const readyMillisMax = 120_000

const ready = async (base: string, child: ChildProcess, log: string) => {
  const until = performance.now() + readyMillisMax
  const ended = once(child, "exit").then(() => "ended")
  while (performance.now() < until && child.exitCode === null && child.signalCode === null) {
    const answered = await fetch(`${base}/readyz`).then(
      (response) => response.status,
      () => 0
    )
    if (answered === 200) return
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 50))])
  }
  await stop(child)
  throw new Error(`the process did not become ready; it said:\n${readFileSync(log, "utf8").slice(-4000)}`)
}

const stop = async (child: ChildProcess) => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, "exit")
  child.kill("SIGTERM")
  const patience = setTimeout(() => child.kill("SIGKILL"), 10_000)
  await ended
  clearTimeout(patience)
}
