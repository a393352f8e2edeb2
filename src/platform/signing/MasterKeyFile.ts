/**
 * The master key as a file of the data folder: 32 bytes in base64, readable only by its owner. What must stay true: an existing file
 * is never overwritten, a crash leaves no half-written file, and processes that start at the same time read the same key. During a
 * rotation the next key is in a file beside it.
 */
import { Effect, FileSystem, Option, Path, type PlatformError, Result, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import * as Base64 from "effect/encoding/Base64"
import { systemReason } from "../config/SystemErrors.ts"
import { shownOnScreen } from "../telemetry/ShownOnScreen.ts"
import * as SecretBox from "./SecretBox.ts"

/** The configured master key or its file cannot be used; the message says what to do. */
export class MasterKeyUnusable extends Schema.TaggedError<MasterKeyUnusable>()("MasterKeyUnusable", {
  message: Schema.String
}) {}

/** The 32 bytes of a key. The error message describes the fault, but never contains the key's text. */
export const decodeKey = (
  text: string,
  source: string,
  advice: string
): Effect.Effect<Uint8Array, MasterKeyUnusable> => {
  const bytes = Base64.decode(text.trim())
  if (Result.isSuccess(bytes) && bytes.success.length === SecretBox.keyLength) return Effect.succeed(bytes.success)
  const actual = Result.isSuccess(bytes) ? `${bytes.success.length} bytes` : "no base64"
  return Effect.fail(
    new MasterKeyUnusable({
      message: `${source} must be base64 of exactly ${SecretBox.keyLength} bytes, but holds ${actual}. ${advice}`
    })
  )
}

/** The path of the next key during a rotation. */
export const nextPath = (path: string): string => `${path}.next`

const orUnreachable = <A, R>(
  effect: Effect.Effect<A, MasterKeyUnusable | PlatformError.PlatformError, R>,
  path: string
): Effect.Effect<A, MasterKeyUnusable, R> =>
  Effect.catchTag(effect, "PlatformError", (error) =>
    Effect.fail(
      new MasterKeyUnusable({
        message: `The master key file ${path} cannot be read or created: ${systemReason(error)}`
      })
    )
  )

/** The file's key. Creates one if there is no file, unless `mayCreate` is false because existing secrets need the missing key. */
export const readOrCreate = Effect.fnUntraced(function* (path: string, mayCreate: boolean) {
  const files = yield* FileSystem.FileSystem
  if (!(yield* files.exists(path))) {
    if (!mayCreate) {
      return yield* new MasterKeyUnusable({
        message: `The master key file ${path} is missing, but the database contains secrets that only this key decrypts: restore your copy of the file.`
      })
    }
    yield* create(path)
  }
  return yield* read(path)
}, orUnreachable)

/** The file's key, and the next key if its file exists. */
export const readAll = Effect.fnUntraced(function* (path: string) {
  const files = yield* FileSystem.FileSystem
  const keys = [yield* read(path)]
  if (yield* files.exists(nextPath(path))) keys.push(yield* read(nextPath(path)))
  return keys
}, orUnreachable)

/** Replaces the key with the next one. The old key stays in a file named after its id, because older backups need it. */
export const promote = Effect.fnUntraced(function* (path: string, oldId: string) {
  const files = yield* FileSystem.FileSystem
  const retired = `${path}.${oldId}`
  // On a second attempt the link exists already.
  yield* files.link(path, retired).pipe(Effect.catchReason("PlatformError", "AlreadyExists", () => Effect.void))
  yield* files.rename(nextPath(path), path)
  // What a rotation that was killed while it created the next key has left.
  const { basename, dirname, join } = yield* Path.Path
  const unfinished = `${basename(nextPath(path))}.`
  for (const name of yield* files.readDirectory(dirname(path))) {
    if (name.startsWith(unfinished)) yield* files.remove(join(dirname(path), name), { force: true })
  }
  yield* syncFolder(path)
  return retired
}, orUnreachable)

// Only the owner may read or write the file: a writer could choose the key.
const othersMask = 0o077
const contentMax = 4_096

const read = Effect.fnUntraced(function* (path: string) {
  const files = yield* FileSystem.FileSystem
  const { sep } = yield* Path.Path
  // One handle for the check and the content, so that the file cannot be replaced in between.
  const file = yield* files.open(path)
  const { mode } = yield* file.stat
  // Windows has no permission bits: it reports every file as readable by all.
  if (sep === "/" && (mode & othersMask) !== 0) {
    return yield* new MasterKeyUnusable({
      message: `The master key file ${path} is open to other users (mode ${(mode & 0o777).toString(8)}). Close it with \`chmod 600 ${path}\`.`
    })
  }
  const content = Option.getOrElse(yield* file.readAlloc(contentMax), () => new Uint8Array())
  return yield* decodeKey(
    new TextDecoder().decode(content),
    `The master key file ${path}`,
    "Restore your copy of the file: no other key decrypts the secrets in the database."
  )
}, Effect.scoped)

// Writes and flushes the key under a temporary name, then links it to its path. A link never replaces a file, so if several
// processes start at the same time, one creates the key and all read it. A crash leaves no half-written key file.
const create = Effect.fnUntraced(function* (path: string) {
  const files = yield* FileSystem.FileSystem
  const random = yield* SecureRandom.SecureRandom
  // Other users may traverse the folder but not list it: an embedded database server runs as another user in a subfolder.
  yield* files.makeDirectory((yield* Path.Path).dirname(path), { recursive: true, mode: 0o711 })
  const temporary = `${path}.${yield* random.uuidV4()}`
  yield* Effect.addFinalizer(() => Effect.orDie(files.remove(temporary, { force: true })))
  const file = yield* files.open(temporary, { flag: "wx", mode: 0o600 })
  yield* file.writeAll(new TextEncoder().encode(`${Base64.encode(yield* random.randomBytes(SecretBox.keyLength))}\n`))
  yield* file.sync
  const isCreated = yield* files.link(temporary, path).pipe(
    Effect.as(true),
    Effect.catchReason("PlatformError", "AlreadyExists", () => Effect.succeed(false))
  )
  yield* syncFolder(path)
  if (isCreated) {
    yield* shownOnScreen(Effect.logWarning(`Created a new master key in ${path}: keep a copy of it in a safe place.`))
  }
}, Effect.scoped)

// The directory entry must survive a power failure too, or the next start would find no key. Windows cannot do this.
const syncFolder = Effect.fnUntraced(function* (path: string) {
  const files = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  if (paths.sep === "/") yield* Effect.flatMap(files.open(paths.dirname(path)), (opened) => opened.sync)
}, Effect.scoped)
