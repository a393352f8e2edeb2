/**
 * Signs on a thread of its own. Texts are handed over in shared memory, and a signature is looked for there when it is needed: mostly
 * after a commit, when it has long been made, so that neither thread is woken for a single one. Should the thread die or the
 * memory be full, Node's thread pool signs instead.
 */
import { sign as nodeSign } from "node:crypto"
import { Worker } from "node:worker_threads"
import { Effect, Exit, FiberSet, type Scope } from "effect"
import type { SigningKey } from "./SigningKey.ts"
import { makeRing, type RingSize, RingWriter, ringSize } from "./SigningRing.ts"

/**
 * Begins a signature over a text's UTF-8 and gives the function that waits for it: it calls back with base64 of the 64 bytes, at
 * once where they are there.
 */
export type Sign = (key: SigningKey, text: string) => (settle: Settle) => void

type Settle = (signature: Exit.Exit<string>) => void

const thread = new URL("./SigningWorker.ts", import.meta.url)

export const makeSigningThread = Effect.fnUntraced(function* (
  script = thread,
  size = ringSize
): Effect.fn.Return<Sign, never, Scope.Scope> {
  const fork = yield* FiberSet.makeRuntime<never>()
  const ring = makeRing(size)
  const worker = yield* startWorker(script, { memory: ring.memory, size })
  const writer = new RingWriter(ring)
  const numberOf = numbering(({ privateKey }) => worker.postMessage(privateKey))
  const underway = new Map<number, Pending>()
  let alive = true
  let waking = false
  let awaited: Array<Pending> = []

  /** Once for all texts of one turn of the event loop: a thread that is woken for each falls asleep after each. */
  const wakeSoon = () => {
    if (waking) return
    waking = true
    setImmediate(wake)
  }
  const wake = () => {
    waking = false
    writer.wake()
  }

  const look = () => {
    if (!alive) return
    writer.take((order, signature) => {
      underway.get(order)!.settled = Exit.succeed(signature)
      underway.delete(order)
    })
  }

  /** The thread tells once for several: when the first that somebody waits for is signed, and then the last. */
  const askToBeTold = () => {
    const newest = awaited.at(-1)?.order
    if (newest !== undefined && !writer.want(newest)) told()
  }
  const told = () => {
    look()
    const settled = awaited.filter((pending) => pending.settled !== undefined)
    awaited = awaited.filter((pending) => pending.settled === undefined)
    askToBeTold()
    for (const pending of settled) pending.resume?.(pending.settled!)
  }
  const waitFor = (pending: Pending, settle: Settle) => {
    if (pending.settled === undefined) look()
    if (pending.settled !== undefined) return settle(pending.settled)
    pending.resume = settle
    if (alive && pending.order !== undefined && awaited.push(pending) === 1) askToBeTold()
  }

  const signRestAlone = () => {
    told()
    alive = false
    awaited = []
    for (const pending of underway.values()) signAlone(pending)
    underway.clear()
  }
  const ended = (error: unknown) => {
    if (!alive) return
    signRestAlone()
    fork(Effect.logError("The signing thread has ended: the thread pool signs instead.", { error: String(error) }))
  }
  worker.on("message", told)
  worker.on("error", ended)
  worker.on("exit", ended)
  worker.unref()
  // The thread's end at the end of this scope is no failure.
  yield* Effect.addFinalizer(() => Effect.sync(signRestAlone))

  return (key, text) => {
    const order = alive ? writer.write(numberOf(key), text) : undefined
    const pending = new Pending(key, text, order)
    if (order === undefined) signAlone(pending)
    else {
      underway.set(order, pending)
      wakeSoon()
    }
    return (settle) => waitFor(pending, settle)
  }
})

const startWorker = (script: URL, workerData: { readonly memory: SharedArrayBuffer; readonly size: RingSize }) =>
  Effect.acquireRelease(
    Effect.sync(() => new Worker(script, { name: "signing", workerData, resourceLimits })),
    (running) => Effect.promise(() => running.terminate())
  )

// It holds keys, and one signature at a time.
const resourceLimits = { maxOldGenerationSizeMb: 64 }

/** Numbers keys as they come, and sends each once, before the first text that names it. */
const numbering = (send: (key: SigningKey) => void) => {
  const numbers = new Map<string, number>()
  return (key: SigningKey): number => {
    const known = numbers.get(key.kid)
    if (known !== undefined) return known
    numbers.set(key.kid, numbers.size)
    send(key)
    return numbers.size - 1
  }
}

class Pending {
  readonly key: SigningKey
  readonly text: string
  /** Its place in the order of the ring; none where it was not handed over. */
  readonly order: number | undefined
  settled: Exit.Exit<string> | undefined
  resume: Settle | undefined
  constructor(key: SigningKey, text: string, order: number | undefined) {
    this.key = key
    this.text = text
    this.order = order
  }
}

const signAlone = (pending: Pending): void => {
  nodeSign(null, Buffer.from(pending.text), pending.key.privateKey, (error, value) => {
    pending.settled = error === null ? Exit.succeed(value.toString("base64")) : Exit.die(error)
    pending.resume?.(pending.settled)
  })
}
