/**
 * Makes the documents on a thread of their own, which ends with it: they take seconds of computing, and runtime requests are
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
  /** The service's public address, if configured. */
  readonly baseUrl: string | undefined
  /** The pages of the documentation site. */
  readonly pages: ReadonlyArray<SitePage>
}

// The file's own extension: the package has JavaScript.
const workerScript = new URL(`./DocumentsWorker${import.meta.url.slice(-3)}`, import.meta.url)

// It needs about half.
const resourceLimits = { maxOldGenerationSizeMb: 256 }

/** Makes the documents of a service. */
export const makeDocuments = (input: DocumentsInput): Effect.Effect<Documents> =>
  Effect.callback((resume) => {
    const worker = new Worker(workerScript, { name: "documents", resourceLimits, workerData: input })
    worker.once("message", (documents: Documents) => resume(Effect.succeed(documents)))
    worker.once("error", (error) => resume(Effect.die(error)))
    worker.once("exit", () => resume(Effect.die(new Error("The documents thread has ended."))))
    // A service that stops does not wait for it.
    worker.unref()
  })
