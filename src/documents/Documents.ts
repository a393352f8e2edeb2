/**
 * The machine-readable contract as text. The service publishes it. The repository contains it too, so that reviews show each
 * change of the contract.
 */
import { stringify } from "yaml"
import { openApiDocument } from "./Document.ts"
import { baseUrlPlaceholder, llmsFull, llmsIndex } from "./Llms.ts"

type Document = ReturnType<typeof openApiDocument>

/** The OpenAPI document as JSON. */
export const openApiJson = (document: Document): string => JSON.stringify(document)

/** The OpenAPI document as YAML. */
export const openApiYaml = (document: Document): string =>
  stringify(document, { lineWidth: 0, aliasDuplicateObjects: false })

/** The index for language models, with a placeholder for the service's address. */
export const llmsText = (document: Document): string => llmsIndex(document, baseUrlPlaceholder)

/** The full text for language models, with a placeholder for the service's address. */
export const llmsFullText = (document: Document): string => llmsFull(document, baseUrlPlaceholder)

/** The committed documents: path from the project's folder → content. */
export const documentFiles = (): Readonly<Record<string, string>> => {
  const document = openApiDocument()
  return {
    "schema/openapi.yaml": openApiYaml(document),
    "schema/llms.txt": llmsText(document),
    "schema/llms-full.txt": llmsFullText(document)
  }
}
