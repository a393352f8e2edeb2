/** Prints the contract as the service publishes it. It needs no settings. */
import { Console, Effect } from "effect"

// Imported on demand, because no other command needs these modules.
const documents = Effect.promise(() =>
  Promise.all([import("../../edge/documents/Document.ts"), import("../../edge/documents/publishing/Documents.ts")])
)

export const printOpenApi = Effect.fnUntraced(function* ({ json }: { readonly json: boolean }) {
  const [{ openApiDocument }, { openApiJson, openApiYaml }] = yield* documents
  const document = openApiDocument()
  yield* Console.log(json ? openApiJson(document) : openApiYaml(document).trimEnd())
})
