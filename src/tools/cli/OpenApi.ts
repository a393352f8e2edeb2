/** Prints the contract as the service publishes it. It needs no settings. */
import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { jsonFlag } from "./Output.ts"

// Imported on demand, because no other command needs these modules.
const documents = Effect.promise(() =>
  Promise.all([import("../../edge/documents/Document.ts"), import("../../edge/documents/publishing/Documents.ts")])
)

const printOpenApi = Effect.fnUntraced(function* ({ json }: { readonly json: boolean }) {
  const [{ openApiDocument }, { openApiJson, openApiYaml }] = yield* documents
  const document = openApiDocument()
  yield* Console.log(json ? openApiJson(document) : openApiYaml(document).trimEnd())
})

export const contract = Command.make("openapi", jsonFlag, printOpenApi).pipe(
  Command.withDescription("Print the OpenAPI document of this version as YAML."),
  Command.withExamples([{ command: "licensing openapi --json > openapi.json", description: "As JSON" }])
)
