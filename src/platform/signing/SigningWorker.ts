/**
 * The signing thread: signs each batch that it receives and answers with the signatures. Its only state is the private keys that it
 * received. It ends with the thread that started it.
 */
import { type KeyObject, sign } from "node:crypto"
import { parentPort } from "node:worker_threads"
import type { Batch } from "./SigningThread.ts"

const port = parentPort!
const keys = new Map<string, KeyObject>()

port.on("message", ({ kid, privateKey, texts }: Batch) => {
  if (privateKey !== undefined) keys.set(kid, privateKey)
  const key = keys.get(kid)!
  port.postMessage(texts.map((text) => sign(null, Buffer.from(text), key).toString("base64")))
})
