/**
 * The machine-readable contract as text. The service publishes it. The repository contains it too, so that reviews show each
 * change of the contract.
 */
import { stringify } from "yaml"
import { openApiDocument } from "./Document.ts"
import { baseUrlPlaceholder, llmsFull, llmsIndex } from "./Llms.ts"

/** The OpenAPI document as JSON. */
export const openApiJson = (baseUrl?: string): string => JSON.stringify(openApiDocument(baseUrl))

/** The OpenAPI document as YAML. */
export const openApiYaml = (baseUrl?: string): string =>
  stringify(openApiDocument(baseUrl), { lineWidth: 0, aliasDuplicateObjects: false })

/** The index for language models; without an address it contains a placeholder. */
export const llmsText = (baseUrl = baseUrlPlaceholder): string => llmsIndex(openApiDocument(), baseUrl)

/** The full text for language models; without an address it contains a placeholder. */
export const llmsFullText = (baseUrl = baseUrlPlaceholder): string => llmsFull(openApiDocument(), baseUrl)

/** The committed documents: path from the project's folder → content. */
export const documentFiles = (): Readonly<Record<string, string>> => ({
  "schema/openapi.yaml": openApiYaml(),
  "schema/llms.txt": llmsText(),
  "schema/llms-full.txt": llmsFullText()
})
