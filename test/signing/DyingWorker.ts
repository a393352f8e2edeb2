/** A signing thread that signs five texts with the key it was handed, and dies of the sixth. */
import { sign } from "node:crypto"
import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads"
import { awaitHandedOver, ringOver, signHandedOver } from "../../src/signing/SigningRing.ts"

const ring = ringOver(workerData.memory, workerData.size)
let left = 5
awaitHandedOver(ring)
const key = receiveMessageOnPort(parentPort!)!.message
const signOrDie = (_: number, text: Buffer) => {
  if (left-- === 0) throw new Error("out of luck")
  return sign(null, text, key)
}
for (;;) {
  signHandedOver(ring, signOrDie, () => parentPort!.postMessage(undefined))
  awaitHandedOver(ring)
}
