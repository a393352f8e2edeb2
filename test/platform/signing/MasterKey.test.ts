import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, FileSystem, Layer, Option, Path, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import { keyIdOf, MasterKey } from "../../../src/platform/signing/MasterKey.ts"
import { type MasterKeyUnusable, nextPath, promote } from "../../../src/platform/signing/MasterKeyFile.ts"

const secret = (byte: number) => Buffer.alloc(32, byte).toString("base64")
const fromKey = (text: string, next?: string) =>
  MasterKey.layerFromKey(Redacted.make(text), next === undefined ? undefined : Redacted.make(next)).pipe(
    Layer.provide(SecureRandom.layerWebCrypto)
  )
const bytes = (text: string) => new TextEncoder().encode(text)

/** The service that a layer provides, or the error that it fails with. */
const build = <E, R>(from: Layer.Layer<MasterKey, E, R>) => Effect.provide(MasterKey, from)

describe("MasterKey", () => {
  it.effect("opens what it sealed, only for the same column and row", () =>
    Effect.gen(function* () {
      const masterKey = yield* build(fromKey(secret(1)))
      const sealed = yield* masterKey.seal(bytes("secret"), "webhooks/wh_1")
      assert.deepStrictEqual(Uint8Array.from(yield* masterKey.open(sealed, "webhooks/wh_1")), bytes("secret"))
      const mismatchError = yield* Effect.flip(masterKey.open(sealed, "webhooks/wh_2"))
      assert.strictEqual(mismatchError._tag, "MasterKeyMismatch")
    })
  )

  it.effect("never returns the same sealed value twice, and reveals nothing of the secret", () =>
    Effect.gen(function* () {
      const masterKey = yield* build(fromKey(secret(1)))
      const first = yield* masterKey.seal(bytes("secret"), "a")
      const second = yield* masterKey.seal(bytes("secret"), "a")
      assert.notDeepEqual(first, second)
      assert.isFalse(Buffer.from(first).includes("secret"))
    })
  )

  it.effect("writes version, key id, nonce, ciphertext and tag, in this order", () =>
    Effect.gen(function* () {
      const random = SecureRandom.make((size) => new Uint8Array(size).fill(0xaa))
      const masterKey = yield* build(
        MasterKey.layerFromKey(Redacted.make(secret(0))).pipe(
          Layer.provide(Layer.succeed(SecureRandom.SecureRandom, random))
        )
      )
      const sealed = Buffer.from(yield* masterKey.seal(new Uint8Array(3), "a"))
      // 66687aad is the start of SHA-256 over 32 zero bytes.
      assert.strictEqual(sealed.toString("hex", 0, 17), `0166687aad${"aa".repeat(12)}`)
      assert.strictEqual(sealed.length, 1 + 4 + 12 + 3 + 16)
      assert.deepStrictEqual(keyIdOf(sealed), Option.some("66687aad"))
    })
  )

  it.effect("opens values sealed under either of two keys, and seals under the first until it adopts the second", () =>
    Effect.gen(function* () {
      const [first, second] = [yield* build(fromKey(secret(1))), yield* build(fromKey(secret(2)))]
      const both = yield* build(fromKey(secret(1), secret(2)))
      const sealed = yield* second.seal(bytes("secret"), "a")
      assert.deepStrictEqual(Uint8Array.from(yield* both.open(sealed, "a")), bytes("secret"))
      const under = Effect.map(both.seal(bytes("secret"), "a"), keyIdOf)
      assert.deepStrictEqual(yield* under, keyIdOf(yield* first.seal(bytes(""), "a")))
      // It adopts a key only if the value opens.
      const altered = sealed.with(-1, sealed.at(-1)! ^ 1)
      assert.strictEqual((yield* Effect.flip(both.sealUnderKeyOf(altered, "a")))._tag, "MasterKeyMismatch")
      assert.strictEqual((yield* Effect.flip(both.sealUnderKeyOf(sealed, "b")))._tag, "MasterKeyMismatch")
      assert.deepStrictEqual(yield* under, keyIdOf(yield* first.seal(bytes(""), "a")))
      yield* both.sealUnderKeyOf(sealed, "a")
      assert.deepStrictEqual(yield* under, keyIdOf(sealed))
      assert.strictEqual((yield* Effect.flip(first.sealUnderKeyOf(sealed, "a")))._tag, "MasterKeyMismatch")
    })
  )

  it.effect("names both keys when a secret is sealed under another one", () =>
    Effect.gen(function* () {
      const first = yield* build(fromKey(secret(1)))
      const second = yield* build(fromKey(secret(2)))
      const sealed = yield* first.seal(bytes("secret"), "a")
      const mismatch = yield* Effect.flip(second.open(sealed, "a"))
      const [oneId, otherId] = [keyIdOf(sealed), keyIdOf(yield* second.seal(bytes("secret"), "a"))].map(
        Option.getOrThrow
      )
      assert.include(
        mismatch.message,
        `encrypted with the master key ${oneId}, but the configured master key is ${otherId}`
      )
    })
  )

  it.effect("refuses altered and foreign bytes", () =>
    Effect.gen(function* () {
      const masterKey = yield* build(fromKey(secret(1)))
      const sealed = yield* masterKey.seal(bytes("secret"), "a")
      for (let index = 0; index < sealed.length; index++) {
        const altered = sealed.map((byte, position) => (position === index ? byte ^ 1 : byte))
        assert.strictEqual((yield* Effect.flip(masterKey.open(altered, "a")))._tag, "MasterKeyMismatch")
      }
      for (const foreign of [new Uint8Array(), sealed.subarray(0, 32), bytes("secret")]) {
        assert.deepStrictEqual(keyIdOf(foreign), Option.none())
        assert.strictEqual((yield* Effect.flip(masterKey.open(foreign, "a")))._tag, "MasterKeyMismatch")
      }
    })
  )

  it.effect.each([
    ["31 bytes", Buffer.alloc(31).toString("base64"), "31 bytes"],
    ["33 bytes", Buffer.alloc(33).toString("base64"), "33 bytes"],
    ["nothing", "", "0 bytes"],
    ["hex", Buffer.alloc(32).toString("hex"), "48 bytes"],
    ["no base64", "correct horse battery staple", "no base64"]
  ] as const)("refuses a key of %s and reports the kind of value, never the key", ([, text, found]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(build(fromKey(text)))
      assert.strictEqual(error._tag, "MasterKeyUnusable")
      assert.include(error.message, "LICENSING_MASTER_KEY must be base64 of exactly 32 bytes")
      assert.include(error.message, `holds ${found}`)
      if (text !== "") assert.notInclude(error.message, text)
    })
  )
})

const Platform = Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, SecureRandom.layerWebCrypto)

layer(Platform)("MasterKey in a file", (it) => {
  const inFolder = <A, E, R>(use: (path: string) => Effect.Effect<A, E, R>) =>
    Effect.scoped(
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const paths = yield* Path.Path
        return yield* use(paths.join(yield* files.makeTempDirectoryScoped(), "data", "master.key"))
      })
    )
  const refusal = (path: string) =>
    Effect.flip(build(MasterKey.layerFromFile(path))) as Effect.Effect<
      MasterKeyUnusable,
      never,
      FileSystem.FileSystem | Path.Path | SecureRandom.SecureRandom
    >

  it.effect("is created once, readable only by its owner, and loaded again", () =>
    inFolder((path) =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const first = yield* build(MasterKey.layerFromFile(path))
        const content = yield* files.readFileString(path)
        assert.strictEqual((yield* files.stat(path)).mode & 0o777, 0o600)
        assert.strictEqual(Buffer.from(content, "base64").length, 32)
        assert.deepStrictEqual(yield* files.readDirectory(path.slice(0, -"/master.key".length)), ["master.key"])

        const second = yield* build(MasterKey.layerFromFile(path))
        assert.strictEqual(yield* files.readFileString(path), content)
        const opened = yield* second.open(yield* first.seal(bytes("secret"), "a"), "a")
        assert.deepStrictEqual(Uint8Array.from(opened), bytes("secret"))
      })
    )
  )

  it.effect("is the same for several processes that start together", () =>
    inFolder((path) =>
      Effect.gen(function* () {
        const keys = yield* Effect.all(
          Array.from({ length: 8 }, () => build(Layer.fresh(MasterKey.layerFromFile(path)))),
          {
            concurrency: "unbounded"
          }
        )
        const ids = yield* Effect.forEach(keys, (key) => Effect.map(key.seal(bytes("a"), "a"), keyIdOf))
        assert.strictEqual(new Set(ids.map(Option.getOrThrow)).size, 1)
      })
    )
  )

  it.effect("is not overwritten by a process that found no file a moment before", () =>
    inFolder((path) =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const winner = yield* build(MasterKey.layerFromFile(path))
        const content = yield* files.readFileString(path)
        const missesFile = FileSystem.FileSystem.of({ ...files, exists: () => Effect.succeed(false) })
        const loser = yield* build(Layer.fresh(MasterKey.layerFromFile(path))).pipe(
          Effect.provideService(FileSystem.FileSystem, missesFile)
        )
        assert.strictEqual(yield* files.readFileString(path), content)
        const opened = yield* loser.open(yield* winner.seal(bytes("secret"), "a"), "a")
        assert.deepStrictEqual(Uint8Array.from(opened), bytes("secret"))
      })
    )
  )

  it.effect.each([0o640, 0o604, 0o660, 0o644])("is refused with the mode %o", (mode) =>
    inFolder((path) =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        yield* build(MasterKey.layerFromFile(path))
        yield* files.chmod(path, mode)
        const error = yield* refusal(path)
        assert.include(error.message, `mode ${mode.toString(8)}`)
        assert.include(error.message, `chmod 600 ${path}`)
      })
    )
  )

  it.effect("is refused and not changed when the file contains no key", () =>
    inFolder((path) =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        yield* build(MasterKey.layerFromFile(path))
        for (const content of ["", "too short\n", `${secret(1)}${secret(2)}`]) {
          yield* files.writeFileString(path, content)
          const error = yield* refusal(path)
          assert.include(error.message, path)
          assert.include(error.message, "exactly 32 bytes")
          assert.strictEqual(yield* files.readFileString(path), content)
        }
      })
    )
  )

  it.effect("is not created when secrets are sealed under a missing key", () =>
    inFolder((path) =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const error = yield* Effect.flip(build(MasterKey.layerFromFile(path, { mayCreate: false })))
        assert.include(error.message, `${path} is missing`)
        assert.isFalse(yield* files.exists(path))
      })
    )
  )

  it.effect("is accepted beside the next key once a secret is sealed under that key, and is then replaced", () =>
    inFolder((path) =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const running = yield* build(MasterKey.layerFromFile(path))
        const before = yield* files.readFileString(path)
        const ownId = Option.getOrThrow(keyIdOf(yield* running.seal(bytes(""), "a")))
        const next = yield* build(Layer.fresh(MasterKey.layerFromFile(nextPath(path))))
        const sealed = yield* next.seal(bytes("secret"), "a")
        assert.deepStrictEqual(Uint8Array.from(yield* running.open(sealed, "a")), bytes("secret"))

        const retired = yield* promote(path, ownId)
        assert.strictEqual(retired, `${path}.${ownId}`)
        assert.strictEqual(yield* files.readFileString(retired), before)
        assert.isFalse(yield* files.exists(nextPath(path)))
        const started = yield* build(Layer.fresh(MasterKey.layerFromFile(path)))
        assert.deepStrictEqual(keyIdOf(yield* started.seal(bytes(""), "a")), keyIdOf(sealed))
      })
    )
  )

  it.effect("is refused when the path cannot be created", () =>
    inFolder((path) =>
      Effect.gen(function* () {
        yield* build(MasterKey.layerFromFile(path))
        const error = yield* refusal(`${path}/below-a-file`)
        assert.strictEqual(error._tag, "MasterKeyUnusable")
        assert.include(error.message, `${path}/below-a-file`)
      })
    )
  )
})
