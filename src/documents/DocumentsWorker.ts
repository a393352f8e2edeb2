/** The documents thread: makes all documents, compresses them, sends them to the thread that started it, and ends. */
import { parentPort, workerData } from "node:worker_threads"
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { HttpApiScalar } from "effect/http-api"
import { compress } from "./CompressedDocument.ts"
import { openApiDocument, publishedApi } from "./Document.ts"
import { llmsFullText, llmsText, openApiJson, openApiYaml } from "./Documents.ts"
import type { Documents } from "./DocumentsThread.ts"

const baseUrl = workerData as string | undefined

/** The API reference page. Its script is inline and loads nothing from other servers. */
const reference = Effect.gen(function* () {
  const path = "/docs"
  const scalar = { withDefaultFonts: false, showOperationId: true }
  const page = yield* HttpRouter.toHttpEffect(HttpApiScalar.layer(publishedApi(baseUrl), { path, scalar }))
  const request = HttpServerRequest.fromWeb(new Request(`http://localhost${path}`))
  const { body } = yield* Effect.provideService(page, HttpServerRequest.HttpServerRequest, request)
  return body._tag === "Uint8Array" ? body.body : yield* Effect.die(new Error("The reference page has no bytes."))
})

const documents = Effect.gen(function* () {
  const document = openApiDocument(baseUrl)
  const contents = [
    ["/openapi.json", "application/json", Buffer.from(openApiJson(document))],
    ["/openapi.yaml", "application/yaml", Buffer.from(openApiYaml(document))],
    ["/docs", "text/html; charset=utf-8", yield* reference]
  ] as const
  const byPath = yield* Effect.forEach(contents, ([path, contentType, bytes]) =>
    Effect.map(compress(contentType, bytes), (compressed) => [path, compressed] as const)
  )
  const templates = { "/llms.txt": llmsText(document), "/llms-full.txt": llmsFullText(document) }
  return { byPath: new Map(byPath), templates: new Map(Object.entries(templates)) } satisfies Documents
})

Effect.runPromise(Effect.map(Effect.scoped(documents), (made) => parentPort!.postMessage(made)))
