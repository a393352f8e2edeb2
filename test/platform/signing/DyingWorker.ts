/** A signing thread that signs one batch and fails on the next. */
import { sign } from "node:crypto"
import { parentPort } from "node:worker_threads"
import type { Batch } from "../../../src/platform/signing/SigningThread.ts"

const port = parentPort!
port.once("message", ({ privateKey, texts }: Batch) => {
  port.postMessage(texts.map((text) => sign(null, Buffer.from(text), privateKey!).toString("base64")))
  port.once("message", () => {
    throw new Error("out of luck")
  })
})
