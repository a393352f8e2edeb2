/**
 * The master key: what signing keys, webhook secrets and stored secret answers are encrypted under at rest.
 *
 * It never enters the database. A sealed value names the key that it lies under, and is bound to its place by the
 * additional data (`aad`), so that a row's secret cannot be moved into another row. Losing the key loses every secret.
 */
import { Context, Effect, FileSystem, Layer, Option, Path, type PlatformError, Redacted, Result, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { Base64 } from "effect/encoding"
import { sha256 } from "./Digest.ts"
import * as SecretBox from "./SecretBox.ts"

/** The configured master key, or the file that holds it, cannot be used; the message says what to do. */
export class MasterKeyUnusable extends Schema.TaggedError<MasterKeyUnusable>()("MasterKeyUnusable", {
  message: Schema.String
}) {}

/** A sealed value does not open: it lies under another master key, belongs elsewhere, or was altered. */
export class MasterKeyMismatch extends Schema.TaggedError<MasterKeyMismatch>()("MasterKeyMismatch", {
  message: Schema.String
}) {}

export class MasterKey extends Context.Service<
  MasterKey,
  {
    /** Encrypts bytes for the place that `aad` names. The same input gives another value each time. */
    seal(plaintext: Uint8Array, aad: string): Effect.Effect<Uint8Array>
    /** The bytes that were sealed with the same `aad`. */
    open(sealed: Uint8Array, aad: string): Effect.Effect<Uint8Array, MasterKeyMismatch>
  }
>()("licensing/signing/MasterKey") {
  /** From the setting: base64 of 32 bytes. */
  static readonly layerFromKey = (key: Redacted.Redacted<string>) =>
    Layer.effect(
      MasterKey,
      Effect.flatMap(
        decode(Redacted.value(key), "LICENSING_MASTER_KEY", "`openssl rand -base64 32` makes a key."),
        make
      )
    )

  /** From a file of the data folder, which is made with a new key where there is none. */
  static readonly layerFromFile = (path: string) => Layer.effect(MasterKey, Effect.flatMap(readOrCreate(path), make))
}

// A sealed value: version (1 byte), key id (4), nonce (12), ciphertext, tag (16). Version and key id are authenticated too.
const version = 1
const keyIdLength = 4
const headerLength = 1 + keyIdLength
const prefixLength = headerLength + SecretBox.nonceLength

/**
 * The id of the master key that a sealed value lies under: the first 8 hex digits of the key's SHA-256. None where the
 * bytes are no sealed value.
 */
export const keyIdOf = (sealed: Uint8Array): Option.Option<string> =>
  sealed[0] === version && sealed.length >= prefixLength + SecretBox.tagLength
    ? Option.some(Buffer.from(sealed.subarray(1, headerLength)).toString("hex"))
    : Option.none()

const make = Effect.fnUntraced(function* (key: Uint8Array) {
  const random = yield* SecureRandom.SecureRandom
  const header = Buffer.concat([Uint8Array.of(version), sha256(key).subarray(0, keyIdLength)])
  const ownId = header.toString("hex", 1)
  const bind = (aad: string) => Buffer.concat([header, Buffer.from(aad)])

  // Random nonces are safe for 2^32 values under one key (NIST SP 800-38D, 8.3): a hundred a second for a year.
  const seal = Effect.fn("MasterKey.seal")(function* (plaintext: Uint8Array, aad: string) {
    const nonce = yield* random.randomBytes(SecretBox.nonceLength)
    return Buffer.concat([header, nonce, SecretBox.encrypt(key, nonce, plaintext, bind(aad))])
  })

  const open = Effect.fn("MasterKey.open")(function* (sealed: Uint8Array, aad: string) {
    const keyId = keyIdOf(sealed)
    if (Option.isNone(keyId)) {
      return yield* new MasterKeyMismatch({ message: "A stored secret is no value that this release has sealed." })
    }
    if (keyId.value !== ownId) {
      return yield* new MasterKeyMismatch({
        message: `A stored secret lies under the master key ${keyId.value}, but the configured master key is ${ownId}: start with the key that the database was written under.`
      })
    }
    const nonce = sealed.subarray(headerLength, prefixLength)
    const plaintext = SecretBox.decrypt(key, nonce, sealed.subarray(prefixLength), bind(aad))
    if (Option.isNone(plaintext)) {
      return yield* new MasterKeyMismatch({
        message: `A stored secret of ${aad} was altered, or moved there from elsewhere.`
      })
    }
    return plaintext.value
  })

  return MasterKey.of({ seal, open })
})

const decode = (text: string, source: string, advice: string): Effect.Effect<Uint8Array, MasterKeyUnusable> => {
  const bytes = Base64.decode(text.trim())
  if (Result.isSuccess(bytes) && bytes.success.length === SecretBox.keyLength) return Effect.succeed(bytes.success)
  const found = Result.isSuccess(bytes) ? `${bytes.success.length} bytes` : "no base64"
  return Effect.fail(
    new MasterKeyUnusable({
      message: `${source} must be base64 of exactly ${SecretBox.keyLength} bytes, but holds ${found}. ${advice}`
    })
  )
}

const readOrCreate = Effect.fnUntraced(
  function* (path: string) {
    const files = yield* FileSystem.FileSystem
    if (!(yield* files.exists(path))) yield* create(path)
    return yield* read(path)
  },
  (effect, path) => Effect.catchTag(effect, "PlatformError", (error) => Effect.fail(unreachable(path, error)))
)

const unreachable = (path: string, error: PlatformError.PlatformError) =>
  new MasterKeyUnusable({ message: `The master key file ${path} cannot be read or made: ${error.message}` })

// Others than the owner may neither read nor write the file: whoever writes it chooses the key.
const othersMask = 0o077

const read = Effect.fnUntraced(function* (path: string) {
  const files = yield* FileSystem.FileSystem
  const { sep } = yield* Path.Path
  // One handle for the check and the content, so that no other file can take the path between the two.
  const file = yield* files.open(path)
  const { mode } = yield* file.stat
  // Windows has no such bits: it reports every file as readable by all.
  if (sep === "/" && (mode & othersMask) !== 0) {
    return yield* new MasterKeyUnusable({
      message: `The master key file ${path} is open to other users (mode ${(mode & 0o777).toString(8)}). Close it with \`chmod 600 ${path}\`.`
    })
  }
  const content = Option.getOrElse(yield* file.readAlloc(contentMax), () => new Uint8Array())
  return yield* decode(
    new TextDecoder().decode(content),
    `The master key file ${path}`,
    "Put your copy of it back: what the database holds opens with no other key."
  )
}, Effect.scoped)

const contentMax = 4_096

// The key is written whole and flushed under another name, then linked into place: a link never replaces a file, so of
// several processes that start at once one wins and all read its key, and a crash leaves no half-written file behind.
const create = Effect.fnUntraced(function* (path: string) {
  const files = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const random = yield* SecureRandom.SecureRandom
  const folder = paths.dirname(path)
  // Passable, not listable: an embedded database server runs as another user in a folder below.
  yield* files.makeDirectory(folder, { recursive: true, mode: 0o711 })
  const temporary = `${path}.${yield* random.uuidV4()}`
  yield* Effect.addFinalizer(() => Effect.orDie(files.remove(temporary, { force: true })))
  const file = yield* files.open(temporary, { flag: "wx", mode: 0o600 })
  yield* file.writeAll(new TextEncoder().encode(`${Base64.encode(yield* random.randomBytes(SecretBox.keyLength))}\n`))
  yield* file.sync
  const won = yield* files.link(temporary, path).pipe(
    Effect.as(true),
    Effect.catchReason("PlatformError", "AlreadyExists", () => Effect.succeed(false))
  )
  // The name too must outlast a power cut, or the next start would make another key and open nothing. Windows cannot do this.
  if (paths.sep === "/") yield* Effect.flatMap(files.open(folder), (opened) => opened.sync)
  if (won) yield* Effect.logWarning(`Made a new master key in ${path}: keep a copy of it in a safe place.`)
}, Effect.scoped)
