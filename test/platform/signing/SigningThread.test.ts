import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { fromSeed, isSignature, type SigningKey } from "../../../src/platform/signing/SigningKey.ts"
import { makeSigningThread, type Sign } from "../../../src/platform/signing/SigningThread.ts"

const [firstKey, secondKey] = [fromSeed(new Uint8Array(32).fill(1)), fromSeed(new Uint8Array(32).fill(2))]

interface PendingSignature {
  readonly key: SigningKey
  readonly text: string
  readonly signature: Effect.Effect<string>
}

/** Starts all of them synchronously. */
const startSigning = (
  sign: Sign,
  texts: number,
  textOf = (index: number) => `text ${index}`,
  keyOf = (_: number) => firstKey
) =>
  Array.from({ length: texts }, (_, index): PendingSignature => {
    const [key, text] = [keyOf(index), textOf(index)]
    return { key, text, signature: Effect.callback(sign(key, text)) }
  })

const assertSigned = (pending: ReadonlyArray<PendingSignature>) =>
  Effect.forEach(
    pending,
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
/** A thread that never answers. */
const silent = new URL(
  "data:text/javascript,import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => {})"
)

describe("the signing thread", () => {
  it.live("signs each text with the key that was passed with it, even if the key changes between two texts", () =>
    Effect.gen(function* () {
      const sign = yield* makeSigningThread()
      const rotated = startSigning(sign, 100, undefined, (index) => (index < 50 ? firstKey : secondKey))
      const alternating = startSigning(sign, 100, undefined, (index) => (index % 3 === 0 ? secondKey : firstKey))
      yield* assertSigned([...rotated, ...alternating])
      yield* assertSigned(startSigning(sign, 1))
    }).pipe(Effect.scoped)
  )

  it.live("signs short and long texts as UTF-8", () =>
    Effect.gen(function* () {
      const sign = yield* makeSigningThread()
      const textOf = (index: number) => `${index}${"é€😀".repeat(index % 4 === 3 ? 100_000 : index)}`
      yield* assertSigned(startSigning(sign, 40, textOf))
    }).pipe(Effect.scoped)
  )

  it.live("sends all texts of one tick and one key in a single batch, in order", () =>
    Effect.gen(function* () {
      const sign = yield* makeSigningThread(counting)
      const batch = startSigning(sign, 5, undefined, (index) => (index < 3 ? firstKey : secondKey))
      const signatures = yield* Effect.forEach(batch, ({ signature }) => signature)
      assert.deepStrictEqual(signatures, ["3 text 0", "3 text 1", "3 text 2", "2 text 3", "2 text 4"])
      assert.deepStrictEqual(yield* Effect.forEach(startSigning(sign, 1), ({ signature }) => signature), ["1 text 0"])
    }).pipe(Effect.scoped)
  )

  it.live("limits texts in flight: the thread pool signs texts above the limit", () =>
    Effect.gen(function* () {
      const inFlight = yield* Effect.gen(function* () {
        const sign = yield* makeSigningThread(silent, 8)
        const pending = startSigning(sign, 20)
        yield* assertSigned(pending.slice(8))
        return pending.slice(0, 8)
      }).pipe(Effect.scoped)
      yield* assertSigned(inFlight)
    })
  )

  it.live("frees capacity once texts are signed, even if no caller awaits their signatures", () =>
    Effect.gen(function* () {
      const sign = yield* makeSigningThread(counting, 2)
      for (let batch = 0; batch < 5; batch++) {
        const [, second] = startSigning(sign, 2)
        assert.strictEqual(yield* second!.signature, "2 text 1")
      }
    }).pipe(Effect.scoped)
  )

  it.live("is replaced by the thread pool after it dies, and every pending text is signed", () =>
    Effect.gen(function* () {
      const dyingThread = new URL("data:text/javascript,import 'node:worker_threads'; throw new Error('out of luck')")
      const sign = yield* makeSigningThread(dyingThread)
      yield* assertSigned(startSigning(sign, 10))
      yield* assertSigned(startSigning(sign, 10))
    }).pipe(Effect.scoped)
  )

  it.live("loses no text when it dies after signing only some", () =>
    Effect.gen(function* () {
      const sign = yield* makeSigningThread(new URL("./DyingWorker.ts", import.meta.url))
      yield* assertSigned(startSigning(sign, 20, undefined, (index) => (index < 10 ? firstKey : secondKey)))
      yield* assertSigned(startSigning(sign, 10))
    }).pipe(Effect.scoped)
  )

  it.live(
    "stops without an error when its scope closes, and callers that began before or begin after it do not wait",
    () =>
      Effect.gen(function* () {
        const logged: Array<unknown> = []
        const logger = Logger.make(({ message }) => logged.push(message))
        const { sign, begun: pending } = yield* Effect.gen(function* () {
          const sign = yield* makeSigningThread()
          yield* assertSigned(startSigning(sign, 1))
          const pending = startSigning(sign, 500)
          // The thread is now awake and processes these texts.
          yield* Effect.yieldNow
          return { sign, begun: pending }
        }).pipe(Effect.scoped, Effect.provide(Logger.layer([logger])))
        yield* assertSigned(pending)
        yield* assertSigned(startSigning(sign, 10))
        assert.deepStrictEqual(logged, [])
      })
  )
})
