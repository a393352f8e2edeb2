/**
 * The master key, which encrypts signing keys, webhook secrets and stored responses at rest.
 *
 * It is never stored in the database. A sealed (encrypted) value contains the id of its master key, and is bound to its row by
 * the additional data (`aad`), so that a row's secret cannot be moved into another row. Losing the key loses every secret.
 *
 * During a rotation there are two keys, and each opens the values sealed with it. New values are sealed with the key that sealed the
 * active signing key: all nodes read that row twice a second and adopt its key.
 */
import { Context, Effect, type FileSystem, Layer, Option, type Path, Redacted, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { sha256 } from "./Digest.ts"
import { deriveSecret } from "./Hmac.ts"
import { decodeKey, type MasterKeyUnusable, readAll, readOrCreate } from "./MasterKeyFile.ts"
import * as SecretBox from "./SecretBox.ts"

/** A sealed value does not open: it was sealed with another master key, belongs to another row, or was altered. */
export class MasterKeyMismatch extends Schema.TaggedError<MasterKeyMismatch>()("MasterKeyMismatch", {
  message: Schema.String
}) {}

export interface DerivedSecret {
  readonly keyId: string
  readonly secret: Uint8Array
}

export class MasterKey extends Context.Service<
  MasterKey,
  {
    /** Encrypts bytes and binds them to `aad`. The same input gives a different value each time. */
    seal(plaintext: Uint8Array, aad: string): Effect.Effect<Uint8Array>
    /** The bytes that were sealed with the same `aad`. */
    open(sealed: Uint8Array, aad: string): Effect.Effect<Uint8Array, MasterKeyMismatch>
    /** Makes the key that sealed this value the key for new values. */
    sealUnderKeyOf(sealed: Uint8Array, aad: string): Effect.Effect<void, MasterKeyMismatch>
    /** A secret for one purpose, derived from the key that seals now, or from the key with this id if it is known. */
    derive(purpose: string, keyId?: string): DerivedSecret | undefined
    /** The secrets for one purpose, derived from each known key: during a rotation there are two. */
    deriveAll(purpose: string): ReadonlyArray<Uint8Array>
  }
>()("licensing/platform/signing/MasterKey") {
  /** From the settings: base64 of 32 bytes each. The second key is the one that a rotation changes to. */
  static readonly layerFromKey = (key: Redacted.Redacted<string>, next?: Redacted.Redacted<string>) =>
    Layer.effect(
      MasterKey,
      Effect.gen(function* () {
        const keys = [yield* decodeSetting(key, "LICENSING_MASTER_KEY"), ...(yield* decodeNext(next))]
        return yield* make(keys, Effect.succeed(keys))
      })
    )

  /**
   * From a file of the data folder, which is created with a new key if it is missing and `mayCreate` is not false. The next key of
   * a rotation is in a file beside it, or in the settings.
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
 * The id of the master key that sealed a value: the first 8 hex digits of the key's SHA-256. None if the bytes are not a sealed
 * value.
 */
export const keyIdOf = (sealed: Uint8Array): Option.Option<string> =>
  sealed[0] === version && sealed.length >= prefixLength + SecretBox.tagLength
    ? Option.some(Buffer.from(sealed.subarray(1, headerLength)).toString("hex"))
    : Option.none()

/** The id of a key. */
export const idOfKey = (key: Uint8Array): string => Buffer.from(sha256(key).subarray(0, keyIdLength)).toString("hex")

interface LoadedKey {
  readonly id: string
  readonly key: Uint8Array
  readonly header: Uint8Array
}

const loadKey = (key: Uint8Array): LoadedKey => {
  const id = idOfKey(key)
  return { id, key, header: Buffer.concat([Uint8Array.of(version), Buffer.from(id, "hex")]) }
}

/** The first of the keys seals. If a value was sealed with none of them, `reread` loads the keys again. */
const make = Effect.fnUntraced(function* (
  keys: ReadonlyArray<Uint8Array>,
  reread: Effect.Effect<ReadonlyArray<Uint8Array>>
) {
  const random = yield* SecureRandom.SecureRandom
  const keysById = new Map<string, LoadedKey>()
  const addKeys = (more: ReadonlyArray<Uint8Array>) => {
    for (const loaded of more.map(loadKey)) if (!keysById.has(loaded.id)) keysById.set(loaded.id, loaded)
  }
  addKeys(keys)
  let sealing = loadKey(keys[0]!)
  const aadWithHeader = ({ header }: LoadedKey, aad: string) => Buffer.concat([header, Buffer.from(aad)])

  // Random nonces are safe for 2^32 values under one key (NIST SP 800-38D, 8.3): a hundred a second for a year.
  const seal = Effect.fn("MasterKey.seal")(function* (plaintext: Uint8Array, aad: string) {
    const key = sealing
    const nonce = yield* random.randomBytes(SecretBox.nonceLength)
    return Buffer.concat([key.header, nonce, SecretBox.encrypt(key.key, nonce, plaintext, aadWithHeader(key, aad))])
  })

  const keyFor = Effect.fnUntraced(function* (sealed: Uint8Array) {
    const id = Option.getOrUndefined(keyIdOf(sealed))
    if (id === undefined) {
      return yield* new MasterKeyMismatch({
        message: "A stored secret has a format that this release cannot decrypt: start the release that wrote it."
      })
    }
    if (!keysById.has(id)) addKeys(yield* reread)
    const key = keysById.get(id)
    if (key !== undefined) return key
    return yield* new MasterKeyMismatch({
      message: `A stored secret is encrypted with the master key ${id}, but the configured master key is ${Array.from(keysById.keys()).join(" or ")}: start with the key that encrypted the secrets in the database.`
    })
  })

  const open = Effect.fn("MasterKey.open")(function* (sealed: Uint8Array, aad: string) {
    const key = yield* keyFor(sealed)
    const nonce = sealed.subarray(headerLength, prefixLength)
    const plaintext = SecretBox.decrypt(key.key, nonce, sealed.subarray(prefixLength), aadWithHeader(key, aad))
    if (Option.isNone(plaintext)) {
      return yield* new MasterKeyMismatch({
        message: `A stored secret of ${aad} was altered, or moved there from elsewhere: restore it from a backup.`
      })
    }
    return plaintext.value
  })

  const sealUnderKeyOf = Effect.fnUntraced(function* (sealed: Uint8Array, aad: string) {
    const key = yield* keyFor(sealed)
    if (key.id === sealing.id) return
    // The value must open first: an attacker who can write to the database cannot choose the key.
    yield* open(sealed, aad)
    sealing = key
    yield* Effect.logInfo(`New secrets are now encrypted with the master key ${key.id}.`)
  })

  const derive = (purpose: string, keyId = sealing.id): DerivedSecret | undefined => {
    const key = keysById.get(keyId)?.key
    return key === undefined ? undefined : { keyId, secret: deriveSecret(key, `licensing ${purpose}`) }
  }
  const deriveAll = (purpose: string) =>
    Array.from(keysById.values(), ({ key }) => deriveSecret(key, `licensing ${purpose}`))

  return MasterKey.of({ seal, open, sealUnderKeyOf, derive, deriveAll })
})

const decodeSetting = (key: Redacted.Redacted<string>, name: string): Effect.Effect<Uint8Array, MasterKeyUnusable> =>
  decodeKey(Redacted.value(key), name, "`openssl rand -base64 32` makes a key.")

const decodeNext = (next: Redacted.Redacted<string> | undefined) =>
  next === undefined ? Effect.succeed([]) : Effect.map(decodeSetting(next, "LICENSING_MASTER_KEY_NEXT"), (key) => [key])
