/**
 * Signs on a worker thread. The texts of one turn of the event loop are sent to the thread in one message, and their signatures
 * come back in one. If the thread ends or too many texts are in flight, Node's thread pool signs instead.
 */
import { type KeyObject, sign as nodeSign } from "node:crypto"
import { Worker } from "node:worker_threads"
import { Effect, Exit, FiberSet, type Scope } from "effect"
import type { SigningKey } from "./SigningKey.ts"

/**
 * Starts signing a text's UTF-8 and returns a function that waits for the signature: it calls back with base64 of the 64 bytes, at
 * once if the signature is complete.
 */
export type Sign = (key: SigningKey, text: string) => (onSignature: OnSignature) => void

type OnSignature = (signature: Exit.Exit<string>) => void

/** Texts to sign with one key. The thread answers each batch with its signatures as base64, in the same order. */
export interface Batch {
  readonly kid: string
  /** Only in the first batch of a key. */
  readonly privateKey: KeyObject | undefined
  readonly texts: ReadonlyArray<string>
}

// The file's own extension: the package has JavaScript.
const workerScript = new URL(`./SigningWorker${import.meta.url.slice(-3)}`, import.meta.url)

/** Far more than the texts that are signed during the commit of a batch of commands. */
const inFlightMax = 1024

export const makeSigningThread = Effect.fnUntraced(function* (
  script = workerScript,
  limit = inFlightMax
): Effect.fn.Return<Sign, never, Scope.Scope> {
  const fork = yield* FiberSet.makeRuntime<never>()
  const worker = yield* startWorker(script)
  const knownKeys = new Set<string>()
  /** Texts that are not sent yet, all of one key. */
  let unsent: Array<SigningRequest> = []
  /** Batches without an answer yet, oldest first. */
  const sent: Array<ReadonlyArray<SigningRequest>> = []
  let inFlight = 0
  let isAlive = true

  const send = (): void => {
    const key = unsent[0]?.key
    if (key === undefined) return
    const privateKey = knownKeys.has(key.kid) ? undefined : key.privateKey
    knownKeys.add(key.kid)
    worker.postMessage({ kid: key.kid, privateKey, texts: unsent.map(({ text }) => text) } satisfies Batch)
    sent.push(unsent)
    unsent = []
  }

  const enqueue = (pending: SigningRequest): void => {
    inFlight++
    if (unsent[0] !== undefined && unsent[0].key.kid !== pending.key.kid) send()
    if (unsent.push(pending) === 1) setImmediate(send)
  }

  const onSignatures = (signatures: ReadonlyArray<string>): void => {
    const batch = sent.shift()
    if (batch === undefined) return
    inFlight -= batch.length
    for (const [index, pending] of batch.entries()) pending.complete(Exit.succeed(signatures[index]!))
  }

  const signRemainingInPool = (): void => {
    isAlive = false
    for (const pending of [...sent.splice(0).flat(), ...unsent.splice(0)]) signInPool(pending)
  }
  const onEnd = (error: unknown): void => {
    if (!isAlive) return
    signRemainingInPool()
    fork(Effect.logError("The signing thread has ended; signing in the thread pool.", { error: String(error) }))
  }
  worker.on("message", onSignatures)
  worker.on("error", onEnd)
  worker.on("exit", onEnd)
  worker.unref()
  // When the scope ends, the thread's end is not a failure.
  yield* Effect.addFinalizer(() => Effect.sync(signRemainingInPool))

  return (key, text) => {
    const pending = new SigningRequest(key, text)
    if (isAlive && inFlight < limit) enqueue(pending)
    else signInPool(pending)
    return (onSignature) => pending.await(onSignature)
  }
})

const startWorker = (script: URL) =>
  Effect.acquireRelease(
    Effect.sync(() => new Worker(script, { name: "signing", resourceLimits })),
    (running) => Effect.promise(() => running.terminate())
  )

// The thread's memory contains keys and the texts in flight.
const resourceLimits = { maxOldGenerationSizeMb: 64 }

class SigningRequest {
  readonly key: SigningKey
  readonly text: string
  private signature: Exit.Exit<string> | undefined
  private resume: OnSignature | undefined

  constructor(key: SigningKey, text: string) {
    this.key = key
    this.text = text
  }

  await(onSignature: OnSignature): void {
    if (this.signature === undefined) this.resume = onSignature
    else onSignature(this.signature)
  }

  complete(signature: Exit.Exit<string>): void {
    this.signature = signature
    this.resume?.(signature)
  }
}

const signInPool = (pending: SigningRequest): void => {
  nodeSign(null, Buffer.from(pending.text), pending.key.privateKey, (error, value) =>
    pending.complete(error === null ? Exit.succeed(value.toString("base64")) : Exit.die(error))
  )
}
