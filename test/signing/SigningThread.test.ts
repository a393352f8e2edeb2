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

/** A thread that answers each text with the number of texts in its batch, and the text. */
const counting = new URL(
  "data:text/javascript,import { parentPort } from 'node:worker_threads'; parentPort.on('message', ({ texts }) => " +
    "parentPort.postMessage(texts.map((text) => texts.length + ' ' + text)))"
)
/** A thread that answers nothing. */
const silent = new URL(
  "data:text/javascript,import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => {})"
)

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

  it.live("signs UTF-8, of short texts and of long ones", () =>
    Effect.gen(function* () {
      const sign = yield* makeSigningThread()
      const textOf = (index: number) => `${index}${"é€😀".repeat(index % 4 === 3 ? 100_000 : index)}`
      yield* assertSigned(begin(sign, 40, textOf))
    }).pipe(Effect.scoped)
  )

  it.live("sends the thread all texts of one turn and one key at once, and keeps their order", () =>
    Effect.gen(function* () {
      const sign = yield* makeSigningThread(counting)
      const turn = begin(sign, 5, undefined, (index) => (index < 3 ? one : other))
      const signatures = yield* Effect.forEach(turn, ({ signature }) => signature)
      assert.deepStrictEqual(signatures, ["3 text 0", "3 text 1", "3 text 2", "2 text 3", "2 text 4"])
      assert.deepStrictEqual(yield* Effect.forEach(begin(sign, 1), ({ signature }) => signature), ["1 text 0"])
    }).pipe(Effect.scoped)
  )

  it.live("has a limit of texts in flight: the thread pool signs those beyond it", () =>
    Effect.gen(function* () {
      const inFlight = yield* Effect.gen(function* () {
        const sign = yield* makeSigningThread(silent, 8)
        const begun = begin(sign, 20)
        yield* assertSigned(begun.slice(8))
        return begun.slice(0, 8)
      }).pipe(Effect.scoped)
      yield* assertSigned(inFlight)
    })
  )

  it.live("has room again once texts are signed, though nobody waits for their signatures", () =>
    Effect.gen(function* () {
      const sign = yield* makeSigningThread(counting, 2)
      for (let turn = 0; turn < 5; turn++) {
        const [, second] = begin(sign, 2)
        assert.strictEqual(yield* second!.signature, "2 text 1")
      }
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
      yield* assertSigned(begin(sign, 20, undefined, (index) => (index < 10 ? one : other)))
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
