/**
 * Keeps the contract of a release in schema/released/openapi.json, with which `npm test` compares later ones: without the words and
 * examples, which break no client.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { openApiDocument } from "../../src/documents/Document.ts"

const words = ["summary", "description", "example", "examples", "links", "x-error-codes"]

/** `isNames`: the members are names of fields, parameters or schemas, and no keywords. */
const withoutWords = (value: unknown, isNames = false): unknown => {
  if (Array.isArray(value)) return value.map((item) => withoutWords(item))
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => isNames || !words.includes(key))
      .map(([key, inner]) => [key, withoutWords(inner, !isNames && ["properties", "schemas", "paths"].includes(key))])
  )
}

const folder = fileURLToPath(new URL("../../schema/released/", import.meta.url))
const { components, info, paths, webhooks } = openApiDocument() as unknown as Record<string, Record<string, unknown>>
const { examples: _, ...rest } = components!
mkdirSync(folder, { recursive: true })
const released = { info: { version: info!["version"] }, paths, webhooks, components: rest }
writeFileSync(`${folder}openapi.json`, `${JSON.stringify(withoutWords(released), null, 1)}\n`)
