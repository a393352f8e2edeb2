/**
 * The machine-readable contract as text. The service publishes it. The repository contains it too, so that reviews show each
 * change of the contract.
 */
import { stringify } from "yaml"
import { openApiDocument } from "../Document.ts"
import { errorsPage } from "../texts/ErrorsPage.ts"
import { eventsPage } from "../texts/EventsPage.ts"
import { baseUrlPlaceholder, llmsFull, llmsIndex, operationPath, operationTexts, type SitePage } from "../texts/Llms.ts"

type Document = ReturnType<typeof openApiDocument>

export const openApiJson = (document: Document): string => JSON.stringify(document)

export const openApiYaml = (document: Document): string =>
  stringify(document, { lineWidth: 0, aliasDuplicateObjects: false })

/** These texts have a placeholder for the service's address. */
export const llmsText = (document: Document, pages?: ReadonlyArray<SitePage>): string =>
  llmsIndex(document, baseUrlPlaceholder, pages)

export const operationFiles = (document: Document): ReadonlyMap<string, string> =>
  new Map([...operationTexts(document, baseUrlPlaceholder)].map(([id, text]) => [operationPath(id), text]))

export const llmsFullText = (document: Document): string => llmsFull(document, baseUrlPlaceholder)

/** The committed documents: path from the project's folder → content. */
export const documentFiles = (): Readonly<Record<string, string>> => {
  const document = openApiDocument()
  return {
    "schema/openapi.yaml": openApiYaml(document),
    "schema/llms.txt": llmsText(document),
    "schema/llms-full.txt": llmsFullText(document),
    "docs/ERRORS.md": errorsPage(),
    "docs/EVENTS.md": eventsPage()
  }
}
