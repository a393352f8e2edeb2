/**
 * The master key: what signing keys, webhook secrets and stored secret answers are encrypted under at rest.
 *
 * It never enters the database. A sealed value names the key that it lies under, and is bound to its place by the
 * additional data (`aad`), so that a row's secret cannot be moved into another row. Losing the key loses every secret.
 *
 * While the key is rotated there are two. Both open what lies under them; which of the two seals, the active signing key
 * tells: all nodes read that row twice a second, and seal under the key that it lies under.
 */
import { Context, Effect, type FileSystem, Layer, Option, type Path, Redacted, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { sha256 } from "./Digest.ts"
import { decodeKey, type MasterKeyUnusable, readAll, readOrCreate } from "./MasterKeyFile.ts"
import * as SecretBox from "./SecretBox.ts"

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
    /** Seals from now on under the key that this value lies under. */
    follow(sealed: Uint8Array, aad: string): Effect.Effect<void, MasterKeyMismatch>
  }
>()("licensing/signing/MasterKey") {
  /** From the settings: base64 of 32 bytes each, the second the key that is to take the first one's place. */
  static readonly layerFromKey = (key: Redacted.Redacted<string>, next?: Redacted.Redacted<string>) =>
    Layer.effect(
      MasterKey,
      Effect.gen(function* () {
        const keys = [yield* decodeSetting(key, "LICENSING_MASTER_KEY"), ...(yield* decodeNext(next))]
        return yield* make(keys, Effect.succeed(keys))
      })
    )

  /**
   * From a file of the data folder, which is made with a new key where there is none and `mayCreate` is not false. A key that is
   * to take its place lies beside it, or is set.
   */
  static readonly layerFromFile = (
    path: string,
    options: { readonly mayCreate?: boolean; readonly next?: Redacted.Redacted<string> | undefined } = {}
  ) =>
    Layer.effect(
      MasterKey,
      Effect.gen(function* () {
        yield* readOrCreate(path, options.mayCreate ?? true)
        const next = yield* decodeNext(options.next)
        const platform = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
        const reread = Effect.provideContext(
          Effect.map(readAll(path), (keys) => [...keys, ...next]),
          platform
        )
        return yield* make(
          yield* reread,
          Effect.orElseSucceed(reread, () => [])
        )
      })
    )
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

/** The id of a key. */
export const idOfKey = (key: Uint8Array): string => Buffer.from(sha256(key).subarray(0, keyIdLength)).toString("hex")

interface Held {
  readonly id: string
  readonly key: Uint8Array
  readonly header: Uint8Array
}

const holding = (key: Uint8Array): Held => {
  const id = idOfKey(key)
  return { id, key, header: Buffer.concat([Uint8Array.of(version), Buffer.from(id, "hex")]) }
}

/** Over these keys, the first of which seals. Where a value lies under none of them, `reread` is asked once more. */
const make = Effect.fnUntraced(function* (
  keys: ReadonlyArray<Uint8Array>,
  reread: Effect.Effect<ReadonlyArray<Uint8Array>>
) {
  const random = yield* SecureRandom.SecureRandom
  const held = new Map<string, Held>()
  const hold = (more: ReadonlyArray<Uint8Array>) => {
    for (const one of more.map(holding)) if (!held.has(one.id)) held.set(one.id, one)
  }
  hold(keys)
  let sealing = holding(keys[0]!)
  const bind = ({ header }: Held, aad: string) => Buffer.concat([header, Buffer.from(aad)])

  // Random nonces are safe for 2^32 values under one key (NIST SP 800-38D, 8.3): a hundred a second for a year.
  const seal = Effect.fn("MasterKey.seal")(function* (plaintext: Uint8Array, aad: string) {
    const by = sealing
    const nonce = yield* random.randomBytes(SecretBox.nonceLength)
    return Buffer.concat([by.header, nonce, SecretBox.encrypt(by.key, nonce, plaintext, bind(by, aad))])
  })

  const keyFor = Effect.fnUntraced(function* (sealed: Uint8Array) {
    const id = Option.getOrUndefined(keyIdOf(sealed))
    if (id === undefined) {
      return yield* new MasterKeyMismatch({ message: "A stored secret is no value that this release has sealed." })
    }
    if (!held.has(id)) hold(yield* reread)
    const by = held.get(id)
    if (by !== undefined) return by
    return yield* new MasterKeyMismatch({
      message: `A stored secret lies under the master key ${id}, but the configured master key is ${Array.from(held.keys()).join(" or ")}: start with the key that the database was written under.`
    })
  })

  const open = Effect.fn("MasterKey.open")(function* (sealed: Uint8Array, aad: string) {
    const by = yield* keyFor(sealed)
    const nonce = sealed.subarray(headerLength, prefixLength)
    const plaintext = SecretBox.decrypt(by.key, nonce, sealed.subarray(prefixLength), bind(by, aad))
    if (Option.isNone(plaintext)) {
      return yield* new MasterKeyMismatch({
        message: `A stored secret of ${aad} was altered, or moved there from elsewhere.`
      })
    }
    return plaintext.value
  })

  const follow = Effect.fnUntraced(function* (sealed: Uint8Array, aad: string) {
    const by = yield* keyFor(sealed)
    if (by.id === sealing.id) return
    // Only a value that opens is believed: whoever can write to the database cannot choose the key.
    yield* open(sealed, aad)
    sealing = by
    yield* Effect.logInfo(`Secrets are sealed under the master key ${by.id} from now on.`)
  })

  return MasterKey.of({ seal, open, follow })
})

const decodeSetting = (key: Redacted.Redacted<string>, name: string): Effect.Effect<Uint8Array, MasterKeyUnusable> =>
  decodeKey(Redacted.value(key), name, "`openssl rand -base64 32` makes a key.")

const decodeNext = (next: Redacted.Redacted<string> | undefined) =>
  next === undefined ? Effect.succeed([]) : Effect.map(decodeSetting(next, "LICENSING_MASTER_KEY_NEXT"), (key) => [key])
