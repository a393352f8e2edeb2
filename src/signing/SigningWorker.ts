/**
 * The signing thread: signs what is handed over in the ring, in order, and sleeps when there is nothing. It holds the private keys
 * that it was handed and nothing else, and ends with the thread that started it.
 */
import { type KeyObject, sign } from "node:crypto"
import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads"
import { awaitHandedOver, type RingSize, ringOver, signHandedOver } from "./SigningRing.ts"

const { memory, size } = workerData as { readonly memory: SharedArrayBuffer; readonly size: RingSize }
const ring = ringOver(memory, size)
const port = parentPort!
const keys: Array<KeyObject> = []

/** A key is sent before the first text that names it. */
const keyOf = (number: number): KeyObject => {
  while (keys.length <= number) keys.push(receiveMessageOnPort(port)!.message)
  return keys[number]!
}

const signWith = (key: number, text: Buffer) => sign(null, text, keyOf(key))
const tell = () => port.postMessage(undefined)

for (;;) {
  signHandedOver(ring, signWith, tell)
  awaitHandedOver(ring)
}
