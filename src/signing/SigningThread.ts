/**
 * Signs on a thread of its own. The texts of one turn of the event loop go to the thread in one message, and their signatures
 * come back in one. If the thread ends or too many texts are in flight, Node's thread pool signs instead.
 */
import { type KeyObject, sign as nodeSign } from "node:crypto"
import { Worker } from "node:worker_threads"
import { Effect, Exit, FiberSet, type Scope } from "effect"
import type { SigningKey } from "./SigningKey.ts"

/**
 * Begins a signature over a text's UTF-8 and gives the function that waits for it: it calls back with base64 of the 64 bytes,
 * at once if the signature has been made.
 */
export type Sign = (key: SigningKey, text: string) => (settle: Settle) => void

type Settle = (signature: Exit.Exit<string>) => void

/** Texts to sign with one key. The thread answers each batch with its signatures as base64, in the same order. */
export interface Batch {
  readonly kid: string
  /** Only in the first batch of a key. */
  readonly privateKey: KeyObject | undefined
  readonly texts: ReadonlyArray<string>
}

const workerScript = new URL("./SigningWorker.ts", import.meta.url)

/** Far more texts than are signed while a batch of commands is committed. */
const inFlightMax = 1024

export const makeSigningThread = Effect.fnUntraced(function* (
  script = workerScript,
  limit = inFlightMax
): Effect.fn.Return<Sign, never, Scope.Scope> {
  const fork = yield* FiberSet.makeRuntime<never>()
  const worker = yield* startWorker(script)
  const knownKeys = new Set<string>()
  /** Texts that are not sent yet, all of one key. */
  let gathered: Array<Pending> = []
  /** Batches without an answer yet, oldest first. */
  const sent: Array<ReadonlyArray<Pending>> = []
  let inFlight = 0
  let isAlive = true

  const send = (): void => {
    const key = gathered[0]?.key
    if (key === undefined) return
    const privateKey = knownKeys.has(key.kid) ? undefined : key.privateKey
    knownKeys.add(key.kid)
    worker.postMessage({ kid: key.kid, privateKey, texts: gathered.map(({ text }) => text) } satisfies Batch)
    sent.push(gathered)
    gathered = []
  }

  const gather = (pending: Pending): void => {
    inFlight++
    if (gathered[0] !== undefined && gathered[0].key.kid !== pending.key.kid) send()
    if (gathered.push(pending) === 1) setImmediate(send)
  }

  const answered = (signatures: ReadonlyArray<string>): void => {
    const batch = sent.shift()
    if (batch === undefined) return
    inFlight -= batch.length
    for (const [index, pending] of batch.entries()) pending.settle(Exit.succeed(signatures[index]!))
  }

  const signRestInPool = (): void => {
    isAlive = false
    for (const pending of [...sent.splice(0).flat(), ...gathered.splice(0)]) signInPool(pending)
  }
  const ended = (error: unknown): void => {
    if (!isAlive) return
    signRestInPool()
    fork(Effect.logError("The signing thread has ended: the thread pool signs instead.", { error: String(error) }))
  }
  worker.on("message", answered)
  worker.on("error", ended)
  worker.on("exit", ended)
  worker.unref()
  // The thread's end at the end of this scope is no failure.
  yield* Effect.addFinalizer(() => Effect.sync(signRestInPool))

  return (key, text) => {
    const pending = new Pending(key, text)
    if (isAlive && inFlight < limit) gather(pending)
    else signInPool(pending)
    return (settle) => pending.await(settle)
  }
})

const startWorker = (script: URL) =>
  Effect.acquireRelease(
    Effect.sync(() => new Worker(script, { name: "signing", resourceLimits })),
    (running) => Effect.promise(() => running.terminate())
  )

// It holds keys, and the texts in flight.
const resourceLimits = { maxOldGenerationSizeMb: 64 }

class Pending {
  readonly key: SigningKey
  readonly text: string
  private signature: Exit.Exit<string> | undefined
  private resume: Settle | undefined

  constructor(key: SigningKey, text: string) {
    this.key = key
    this.text = text
  }

  await(settle: Settle): void {
    if (this.signature === undefined) this.resume = settle
    else settle(this.signature)
  }

  settle(signature: Exit.Exit<string>): void {
    this.signature = signature
    this.resume?.(signature)
  }
}

const signInPool = (pending: Pending): void => {
  nodeSign(null, Buffer.from(pending.text), pending.key.privateKey, (error, value) =>
    pending.settle(error === null ? Exit.succeed(value.toString("base64")) : Exit.die(error))
  )
}
