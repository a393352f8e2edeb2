// Prepares the data folder for the embedded server: an account that may read it, the password, and an initialised cluster.
// What must stay true: a start that crashes leaves no incomplete database.
import { dirname, join, resolve } from "node:path"
import { Effect, FileSystem, type PlatformError } from "effect"
import { SecureRandom } from "effect/crypto"
import * as Hex from "effect/encoding/Hex"
import { systemReason } from "../../config/SystemErrors.ts"
import { DatabaseUnavailable, type ServerSession } from "../driver/Postgres.ts"
import { type Account, checkFolderAccess, programs, run, serverAccount } from "./ServerProcess.ts"

export interface DatabaseFolder {
  /** The cluster: `postgres/` in the data folder. */
  readonly cluster: string
  /** `postgres.log`, the server's log. */
  readonly log: string
  /** The superuser's password, from `postgres.password`. */
  readonly password: string
  /** The account that the server runs as; undefined: this process's account. */
  readonly account: Account | undefined
  /** The server program. */
  readonly program: string
}

export const prepare = (path: string) => {
  const directory = resolve(path)
  return Effect.catchTag(prepareAt(directory), "PlatformError", (error) =>
    Effect.fail(unusable(directory, systemReason(error)))
  )
}

const unusable = (directory: string, reason: string) =>
  new DatabaseUnavailable({ message: `The data folder ${directory} (LICENSING_DATA_DIR) cannot be used: ${reason}` })

const prepareAt = Effect.fnUntraced(function* (directory: string) {
  const files = yield* FileSystem.FileSystem
  const { initdb, postgres } = yield* programs
  const account = yield* serverAccount
  // The server's user may traverse the folder and owns its own folder in it. This process's user owns the rest.
  yield* makeFolder(directory, account === undefined ? 0o700 : 0o711)
  yield* files.access(directory, { readable: true, writable: true })
  if (account !== undefined) yield* checkFolderAccess([directory, postgres], account)
  const folder = {
    cluster: join(directory, "postgres"),
    log: join(directory, "postgres.log"),
    account,
    program: postgres
  }
  const initialised = yield* isInitialised(folder.cluster)
  const password = yield* readPassword(join(directory, "postgres.password"), initialised)
  if (!initialised) yield* initialise(directory, initdb, { ...folder, password })
  return { ...folder, password } satisfies DatabaseFolder
})

/** Creates a folder and its missing parents. One by one, because Node's recursive `mkdir` never ends below /proc. */
const makeFolder: (
  directory: string,
  mode: number
) => Effect.Effect<void, DatabaseUnavailable | PlatformError.PlatformError, FileSystem.FileSystem> = Effect.fnUntraced(
  function* (directory, mode) {
    const files = yield* FileSystem.FileSystem
    if (yield* files.exists(directory)) {
      const { type } = yield* files.stat(directory)
      return type === "Directory" ? undefined : yield* unusable(directory, "it is a file, not a folder.")
    }
    yield* makeFolder(dirname(directory), mode)
    // If two services start at the same time, one of them creates it.
    yield* files
      .makeDirectory(directory, { mode })
      .pipe(Effect.catchReason("PlatformError", "AlreadyExists", () => Effect.void))
  }
)

/** Whether a data folder contains a database. Creates nothing. */
export const hasDatabase = (path: string) => isInitialised(join(resolve(path), "postgres"))

const isInitialised = (cluster: string) =>
  Effect.flatMap(FileSystem.FileSystem, (files) => files.exists(join(cluster, "PG_VERSION")))

const readPassword = Effect.fnUntraced(function* (file: string, initialised: boolean) {
  const files = yield* FileSystem.FileSystem
  if (!(yield* files.exists(file))) {
    if (initialised) {
      return yield* new DatabaseUnavailable({
        message: `${file} is missing, and the database cannot be opened without it.`
      })
    }
    const secret = Hex.encode(yield* (yield* SecureRandom.SecureRandom).randomBytes(24))
    const temporary = `${file}-${secret.slice(0, 8)}`
    yield* files.writeFileString(temporary, secret, { mode: 0o600 })
    // Linking is atomic and never replaces a file, so two services that start at the same time read the same password.
    yield* Effect.ignore(files.link(temporary, file))
    yield* files.remove(temporary)
  }
  return (yield* files.readFileString(file)).trim()
})

// Creates the cluster in a temporary folder and renames it, so that it appears complete or not at all.
const initialise = Effect.fnUntraced(function* (directory: string, initdb: string, folder: DatabaseFolder) {
  const files = yield* FileSystem.FileSystem
  const temporaryFolder = yield* files.makeTempDirectoryScoped({ directory, prefix: "postgres.new-" })
  const secret = join(temporaryFolder, "password")
  yield* files.writeFileString(secret, folder.password, { mode: 0o600 })
  if (folder.account !== undefined) {
    yield* files.chown(temporaryFolder, folder.account.uid, folder.account.gid)
    yield* files.chown(secret, folder.account.uid, folder.account.gid)
  }
  const newCluster = join(temporaryFolder, "cluster")
  const identity = ["-U", "postgres", "-A", "scram-sha-256", "--pwfile", secret]
  // Sorting by bytes and case mapping by Unicode are the same on every machine and with every version of its libraries.
  const locale = ["-E", "UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
  // The process that reaches the end of a log segment fills the next one with zeros, and all commits wait for that: 50 ms for
  // the default 16 MB, repeatedly under many writes, 6 ms for 2 MB.
  const log = ["--wal-segsize", "2"]
  const args = ["-D", newCluster, ...identity, ...locale, ...log, "--no-instructions"]
  const { code, output } = yield* run(initdb, args, folder.account)
  if (code !== 0) {
    return yield* new DatabaseUnavailable({
      message: `The embedded PostgreSQL cannot be initialised: ${faultsOf(output)}`
    })
  }
  // Fails if another service that started at the same time has created the cluster; then that one is used.
  yield* files
    .rename(newCluster, folder.cluster)
    .pipe(
      Effect.catch((error) =>
        Effect.flatMap(isInitialised(folder.cluster), (done) => (done ? Effect.void : Effect.fail(error)))
      )
    )
}, Effect.scoped)

/** The lines of initdb that say what is wrong, in one; it also prints what it has done. */
export const faultsOf = (output: string): string => {
  const lines = output.trim().split("\n")
  const faults = lines.filter((line) => /FATAL|PANIC|error:/.test(line))
  return (faults.length > 0 ? faults : lines.slice(-3)).join(" ")
}

/**
 * Whether the session's server works in this folder. Only a new file can prove it: a copied folder contains the process id, port and
 * password of the original's server, and a server reports the former path of a folder that was moved.
 */
export const isServedBy = Effect.fnUntraced(function* ({ cluster }: DatabaseFolder, session: ServerSession) {
  const files = yield* FileSystem.FileSystem
  const name = `licensing.${Hex.encode(yield* (yield* SecureRandom.SecureRandom).randomBytes(16))}`
  const path = join(cluster, name)
  return yield* Effect.acquireUseRelease(
    files.writeFile(path, new Uint8Array()),
    // The server resolves the name in its own data directory.
    () => Effect.map(session.values("SELECT (pg_stat_file($1, true)).size", [name]), ([row]) => row?.[0] != null),
    () => Effect.orDie(files.remove(path))
  )
})
