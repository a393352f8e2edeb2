// What the embedded server finds in the data folder before it starts: an account that may read it, the password, and an
// initialised cluster. A start that dies half-way must leave nothing that looks like a database.
import { dirname, join, resolve } from "node:path"
import { Effect, FileSystem, type PlatformError, Predicate } from "effect"
import { SecureRandom } from "effect/crypto"
import { Hex } from "effect/encoding"
import { DatabaseUnavailable } from "./Postgres.ts"
import { type Account, checkPassage, programs, run, serverAccount } from "./ServerProcess.ts"

export interface DatabaseFolder {
  /** The cluster: `postgres/` in the data folder. */
  readonly cluster: string
  /** `postgres.log`, what the server says. */
  readonly log: string
  /** The superuser's, from `postgres.password`. */
  readonly password: string
  /** Who the server runs as; undefined: as ourselves. */
  readonly account: Account | undefined
  /** The server program. */
  readonly program: string
}

export const prepare = (path: string) => {
  const directory = resolve(path)
  return Effect.catchTag(prepareAt(directory), "PlatformError", (error) =>
    Effect.fail(unusable(directory, reasonOf(error)))
  )
}

const unusable = (directory: string, reason: string) =>
  new DatabaseUnavailable({ message: `The data folder ${directory} (LICENSING_DATA_DIR) cannot be used: ${reason}` })

/** The system's own words, as "EACCES: permission denied, mkdir '/data'". */
const reasonOf = ({ message, reason: { cause } }: PlatformError.PlatformError): string =>
  Predicate.isError(cause) ? cause.message : message

const prepareAt = Effect.fnUntraced(function* (directory: string) {
  const files = yield* FileSystem.FileSystem
  const { initdb, postgres } = yield* programs
  const account = yield* serverAccount
  // Passable for the server's user, who owns only his own folder in it; the rest stays ours.
  yield* makeFolder(directory, account === undefined ? 0o700 : 0o711)
  yield* files.access(directory, { readable: true, writable: true })
  if (account !== undefined) yield* checkPassage([directory, postgres], account)
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

/** Makes a folder and those above it that are missing. One by one: Node's recursive `mkdir` never ends below /proc. */
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
    // Of two services that start together one makes it.
    yield* files
      .makeDirectory(directory, { mode })
      .pipe(Effect.catchReason("PlatformError", "AlreadyExists", () => Effect.void))
  }
)

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
    const draft = `${file}-${secret.slice(0, 8)}`
    yield* files.writeFileString(draft, secret, { mode: 0o600 })
    // Linking is whole or not at all and never replaces: of two services that start together both read the same one.
    yield* Effect.ignore(files.link(draft, file))
    yield* files.remove(draft)
  }
  return (yield* files.readFileString(file)).trim()
})

// Made beside its place and moved there whole.
const initialise = Effect.fnUntraced(function* (directory: string, initdb: string, folder: DatabaseFolder) {
  const files = yield* FileSystem.FileSystem
  const workshop = yield* files.makeTempDirectoryScoped({ directory, prefix: "postgres.new-" })
  const secret = join(workshop, "password")
  yield* files.writeFileString(secret, folder.password, { mode: 0o600 })
  if (folder.account !== undefined) {
    yield* files.chown(workshop, folder.account.uid, folder.account.gid)
    yield* files.chown(secret, folder.account.uid, folder.account.gid)
  }
  const made = join(workshop, "cluster")
  const identity = ["-U", "postgres", "-A", "scram-sha-256", "--pwfile", secret]
  // Byte order for sorting, Unicode for case: the same on every machine and with every version of its libraries.
  const locale = ["-E", "UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
  // Whoever comes to the end of a log segment fills the next one with zeros, and all who commit wait for that: 50 ms for the
  // usual 16 MB, again and again while much is written, 6 ms for 2 MB.
  const log = ["--wal-segsize", "2"]
  const args = ["-D", made, ...identity, ...locale, ...log, "--no-instructions"]
  const { code, output } = yield* run(initdb, args, folder.account)
  if (code !== 0) {
    return yield* new DatabaseUnavailable({ message: `The embedded PostgreSQL cannot be initialised: ${output}` })
  }
  // Refused when another service that started together with us was faster; its cluster is as good.
  yield* files
    .rename(made, folder.cluster)
    .pipe(
      Effect.catch((error) =>
        Effect.flatMap(isInitialised(folder.cluster), (done) => (done ? Effect.void : Effect.fail(error)))
      )
    )
}, Effect.scoped)
