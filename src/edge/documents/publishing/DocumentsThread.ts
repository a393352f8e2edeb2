/**
 * Makes the documents on a separate thread, which then ends. They take seconds of computing, and runtime requests are
 * handled meanwhile.
 */
import { Worker } from "node:worker_threads"
import { Effect } from "effect"
import type { SitePage } from "../texts/Llms.ts"
import type { CompressedDocument } from "./CompressedDocument.ts"

export interface Documents {
  readonly byPath: ReadonlyMap<string, CompressedDocument>
  /** Texts that contain a placeholder for the service's address, by path. */
  readonly templates: ReadonlyMap<string, string>
}

export interface DocumentsInput {
  readonly baseUrl: string | undefined
  readonly pages: ReadonlyArray<SitePage>
}

// The package contains JavaScript.
const workerScript = new URL(`./DocumentsWorker${import.meta.url.slice(-3)}`, import.meta.url)

// The thread needs about half of this.
const resourceLimits = { maxOldGenerationSizeMb: 256 }

export const makeDocuments = (input: DocumentsInput): Effect.Effect<Documents> =>
  Effect.callback((resume) => {
    const worker = new Worker(workerScript, { name: "documents", resourceLimits, workerData: input })
    worker.once("message", (documents: Documents) => resume(Effect.succeed(documents)))
    worker.once("error", (error) => resume(Effect.die(error)))
    worker.once("exit", () => resume(Effect.die(new Error("The documents thread has ended."))))
    // A stopping service does not wait for the thread.
    worker.unref()
  })
