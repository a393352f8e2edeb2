/** The documents thread: makes all documents, compresses them, sends them to the thread that started it, and ends. */
import { parentPort, workerData } from "node:worker_threads"
import { Effect } from "effect"
import { openApiDocument } from "../Document.ts"
import { referencePage } from "../reference/ReferencePages.ts"
import { compress } from "./CompressedDocument.ts"
import { openApiPaths, referencePath, textPaths } from "./DocumentPaths.ts"
import { llmsFullText, llmsText, openApiJson, openApiYaml, operationFiles } from "./Documents.ts"
import type { Documents, DocumentsInput } from "./DocumentsThread.ts"

const { baseUrl, pages } = workerData as DocumentsInput

const documents = Effect.gen(function* () {
  const document = openApiDocument(baseUrl)
  const [json, yaml] = openApiPaths
  const contents = [
    [json, "application/json", openApiJson(document)],
    [yaml, "application/yaml", openApiYaml(document)],
    [referencePath, "text/html; charset=utf-8", referencePage(document)]
  ] as const
  const byPath = yield* Effect.forEach(contents, ([path, contentType, text]) =>
    Effect.map(compress(contentType, Buffer.from(text)), (compressed) => [path, compressed] as const)
  )
  const [summary, full] = textPaths
  const templates = { [summary]: llmsText(document, pages), [full]: llmsFullText(document) }
  return {
    byPath: new Map(byPath),
    templates: new Map([...Object.entries(templates), ...operationFiles(document)])
  } satisfies Documents
})

Effect.runPromise(Effect.map(documents, (made) => parentPort!.postMessage(made)))
