/**
 * The signing thread: takes texts by the batch and gives their signatures back in the same order. It holds the private keys
 * that it was handed and nothing else, and ends with the thread that started it.
 */
import { type KeyObject, sign } from "node:crypto"
import { parentPort } from "node:worker_threads"

/** Texts to sign with the key of that name. A key is sent along with its first batch. */
interface Batch {
  readonly kid: string
  readonly key?: KeyObject
  readonly texts: ReadonlyArray<string>
}

const keys = new Map<string, KeyObject>()

parentPort?.on("message", ({ kid, key, texts }: Batch) => {
  if (key !== undefined) keys.set(kid, key)
  const privateKey = keys.get(kid)
  const signatures = texts.map((text) => sign(null, Buffer.from(text), privateKey!).toString("base64"))
  parentPort?.postMessage(signatures)
})
