/**
 * Keeps the contract of a release in schema/released/openapi.json, with which `npm test` compares later ones: without the words and
 * examples, which break no client.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { openApiDocument } from "../../src/edge/documents/Document.ts"

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

/** An object with a line for each member. */
const inLines = (members: Readonly<Record<string, string>>): string =>
  `{\n${Object.entries(members)
    .map(([name, text]) => `${JSON.stringify(name)}: ${text}`)
    .join(",\n")}\n}`

const eachInLine = (members: unknown): string =>
  inLines(Object.fromEntries(Object.entries(members as object).map(([name, value]) => [name, JSON.stringify(value)])))

const { components, info, paths, webhooks } = withoutWords(openApiDocument()) as Record<string, Record<string, unknown>>
const { schemas, parameters, securitySchemes } = components!
const text = inLines({
  info: JSON.stringify({ version: info!["version"] }),
  paths: eachInLine(paths),
  webhooks: eachInLine(webhooks),
  components: inLines({
    schemas: eachInLine(schemas),
    parameters: eachInLine(parameters),
    securitySchemes: eachInLine(securitySchemes)
  })
})
const folder = fileURLToPath(new URL("../../schema/released/", import.meta.url))
mkdirSync(folder, { recursive: true })
writeFileSync(`${folder}openapi.json`, `${text}\n`)
