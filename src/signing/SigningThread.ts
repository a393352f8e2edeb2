/**
 * Signs on a thread of its own, by the batch. Node's own thread pool takes one signature at a time, and handing them over one by
 * one was a tenth of the main thread's work under load. Should the thread die, the pool signs instead.
 */
import { sign as nodeSign } from "node:crypto"
import { Worker } from "node:worker_threads"
import { Effect, Exit, FiberSet, type Scope } from "effect"
import type { SigningKey } from "./SigningKey.ts"

/**
 * Begins a signature over a text's UTF-8 and gives the function that waits for it: it calls back with base64 of the 64 bytes, at
 * once where they are there.
 */
export type Sign = (key: SigningKey, text: string) => (settle: (signature: Exit.Exit<string>) => void) => void

const thread = new URL("./SigningWorker.ts", import.meta.url)

export const makeSigningThread = Effect.fnUntraced(function* (
  script = thread
): Effect.fn.Return<Sign, never, Scope.Scope> {
  const fork = yield* FiberSet.makeRuntime<never>()
  const worker = yield* Effect.acquireRelease(
    Effect.sync(() => new Worker(script, { resourceLimits })),
    (running) => Effect.promise(() => running.terminate())
  )
  let alive = true
  const gathering: Array<Pending> = []
  let underway: ReadonlyArray<Pending> = []
  const known = new Set<string>()

  /** While one batch is being signed the next one gathers. */
  const send = () => {
    if (underway.length > 0 || gathering.length === 0) return
    const { key } = gathering[0]!
    const other = gathering.findIndex((one) => one.key !== key)
    underway = gathering.splice(0, other === -1 ? gathering.length : other)
    const texts = underway.map(({ text }) => text)
    worker.postMessage(known.has(key.kid) ? { kid: key.kid, texts } : { kid: key.kid, key: key.privateKey, texts })
    known.add(key.kid)
  }
  const ended = (error: unknown) => {
    if (!alive) return
    alive = false
    for (const pending of [...underway, ...gathering.splice(0)]) signAlone(pending)
    fork(Effect.logError("The signing thread has ended: the thread pool signs instead.", { error: String(error) }))
  }
  worker.on("message", (signatures: ReadonlyArray<string>) => {
    const signed = underway
    underway = []
    send()
    for (const [index, pending] of signed.entries()) pending.settle(Exit.succeed(signatures[index]!))
  })
  worker.on("error", ended)
  worker.on("exit", ended)
  worker.unref()
  // The thread's end at the end of this scope is no failure.
  const leave = Effect.sync(() => {
    alive = false
  })
  yield* Effect.addFinalizer(() => leave)

  return (key, text) => {
    const pending = new Pending(key, text)
    if (!alive) signAlone(pending)
    else if (gathering.push(pending) === 1 && underway.length === 0) queueMicrotask(send)
    return pending.wait
  }
})

// It holds a key and the texts of a batch.
const resourceLimits = { maxOldGenerationSizeMb: 64 }

class Pending {
  readonly key: SigningKey
  readonly text: string
  private settled: Exit.Exit<string> | undefined
  private resume: ((signature: Exit.Exit<string>) => void) | undefined
  constructor(key: SigningKey, text: string) {
    this.key = key
    this.text = text
  }
  settle(signature: Exit.Exit<string>): void {
    this.settled = signature
    this.resume?.(signature)
  }
  readonly wait = (resume: (signature: Exit.Exit<string>) => void): void => {
    if (this.settled === undefined) this.resume = resume
    else resume(this.settled)
  }
}

const signAlone = (pending: Pending): void => {
  nodeSign(null, Buffer.from(pending.text), pending.key.privateKey, (error, value) =>
    pending.settle(error === null ? Exit.succeed(value.toString("base64")) : Exit.die(error))
  )
}
