import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { fromSeed, isSignature, type SigningKey } from "../../src/signing/SigningKey.ts"
import { makeSigningThread, type Sign } from "../../src/signing/SigningThread.ts"

const [one, other] = [fromSeed(new Uint8Array(32).fill(1)), fromSeed(new Uint8Array(32).fill(2))]

interface Begun {
  readonly key: SigningKey
  readonly text: string
  readonly signature: Effect.Effect<string>
}

/** Begins all at once. */
const begin = (sign: Sign, texts: number, textOf = (index: number) => `text ${index}`, keyOf = (_: number) => one) =>
  Array.from({ length: texts }, (_, index): Begun => {
    const [key, text] = [keyOf(index), textOf(index)]
    return { key, text, signature: Effect.callback(sign(key, text)) }
  })

const assertSigned = (begun: ReadonlyArray<Begun>) =>
  Effect.forEach(
    begun,
    ({ key, text, signature }) =>
      Effect.map(signature, (value) =>
        assert.isTrue(isSignature(key.publicKey, Buffer.from(text), Buffer.from(value, "base64")), text)
      ),
    { concurrency: "unbounded", discard: true }
  )

const small = { slots: 8, textBytes: 1024 }

describe("the signing thread", () => {
  it.live("signs each text with the key that it came with, be the key changed between any two", () =>
    Effect.gen(function* () {
      const sign = yield* makeSigningThread()
      const rotated = begin(sign, 100, undefined, (index) => (index < 50 ? one : other))
      const mixed = begin(sign, 100, undefined, (index) => (index % 3 === 0 ? other : one))
      yield* assertSigned([...rotated, ...mixed])
      yield* assertSigned(begin(sign, 1))
    }).pipe(Effect.scoped)
  )

  it.live("signs UTF-8, and texts larger than its memory as well as those that fit", () =>
    Effect.gen(function* () {
      const sign = yield* makeSigningThread(undefined, small)
      const textOf = (index: number) => `${index}${"é€😀".repeat(index % 4 === 3 ? 1000 : index)}`
      yield* assertSigned(begin(sign, 40, textOf))
    }).pipe(Effect.scoped)
  )

  it.live("signs more than its memory holds, though of the first nobody ever looks at the signatures", () =>
    Effect.gen(function* () {
      const sign = yield* makeSigningThread(undefined, small)
      begin(sign, 50)
      yield* assertSigned(begin(sign, 50))
      yield* assertSigned(begin(sign, 50).reverse())
    }).pipe(Effect.scoped)
  )

  it.live("is done without once it has died, and nothing that waited for it is lost", () =>
    Effect.gen(function* () {
      const dying = new URL("data:text/javascript,import 'node:worker_threads'; throw new Error('out of luck')")
      const sign = yield* makeSigningThread(dying)
      yield* assertSigned(begin(sign, 10))
      yield* assertSigned(begin(sign, 10))
    }).pipe(Effect.scoped)
  )

  it.live("loses nothing when it dies with some texts signed and others not", () =>
    Effect.gen(function* () {
      const sign = yield* makeSigningThread(new URL("./DyingWorker.ts", import.meta.url))
      const awaited = begin(sign, 10)
      yield* assertSigned([...awaited, ...begin(sign, 10)])
      yield* assertSigned(begin(sign, 10))
    }).pipe(Effect.scoped)
  )

  it.live("ends quietly with its scope, and leaves nobody waiting who began before that, nor who begins after it", () =>
    Effect.gen(function* () {
      const logged: Array<unknown> = []
      const logger = Logger.make(({ message }) => logged.push(message))
      const { sign, begun } = yield* Effect.gen(function* () {
        const sign = yield* makeSigningThread()
        yield* assertSigned(begin(sign, 1))
        const begun = begin(sign, 500)
        // The thread is awake now, and in the middle of these.
        yield* Effect.yieldNow
        return { sign, begun }
      }).pipe(Effect.scoped, Effect.provide(Logger.layer([logger])))
      yield* assertSigned(begun)
      yield* assertSigned(begin(sign, 10))
      assert.deepStrictEqual(logged, [])
    })
  )
})
