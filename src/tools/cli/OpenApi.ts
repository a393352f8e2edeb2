/** The command that prints the contract, as the service publishes it at /openapi.yaml and /openapi.json. It needs no settings. */
import { Console, Effect } from "effect"

// Loaded here, and not with the program: no other command needs these modules, and the service loads them on a thread.
const documents = Effect.promise(() =>
  Promise.all([import("../../edge/documents/Document.ts"), import("../../edge/documents/publishing/Documents.ts")])
)

export const printOpenApi = Effect.fnUntraced(function* ({ json }: { readonly json: boolean }) {
  const [{ openApiDocument }, { openApiJson, openApiYaml }] = yield* documents
  const document = openApiDocument()
  yield* Console.log(json ? openApiJson(document) : openApiYaml(document).trimEnd())
})
