/**
 * Writes the generated files that are committed: the OpenAPI document, the texts for language models, the page of states, the test
 * vectors, the database's schema, the names of the operations, the list of files that the documentation site publishes. With `--check` it writes nothing and
 * exits with 1 if a file is out of date.
 */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Layer, References } from "effect"
import { documentFiles } from "../../src/edge/documents/publishing/Documents.ts"
import { databaseAt } from "../../src/platform/Foundation.ts"
import { EmbeddedPostgres } from "../../src/platform/postgres/embedded/EmbeddedPostgres.ts"
import { decisionFiles } from "./decisions/Decisions.ts"
import { operationNameFiles } from "./operationNames.ts"
import { publishedFiles } from "./pages/Files.ts"
import { schemaText } from "./schemaText.ts"
import { stateFiles } from "./states.ts"
import { vectorFiles } from "./vectors.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** The schema that the migrations give an empty database. */
const schemaFile = Effect.acquireUseRelease(
  Effect.sync(() => {
    const directory = mkdtempSync(join(tmpdir(), "licensing-schema-"))
    // If this process is root, the database server runs as another user, who needs access to the directory.
    chmodSync(directory, 0o711)
    return directory
  }),
  (directory) =>
    Effect.map(Effect.provide(schemaText(), migrated(directory)), (text) => ({ "schema/schema.sql": text })),
  (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
)

const migrated = (directory: string) =>
  Layer.unwrap(EmbeddedPostgres.useSync(({ url }) => databaseAt(url))).pipe(
    Layer.provide(EmbeddedPostgres.layer({ directory, settings: { fsync: "off" } }))
  )

const readIfPresent = (path: string): string | undefined => {
  try {
    return readFileSync(`${root}${path}`, "utf8")
  } catch {
    return undefined
  }
}

const files = {
  ...documentFiles(),
  ...operationNameFiles(),
  ...stateFiles(),
  ...vectorFiles(),
  ...(await decisionFiles()),
  ...publishedFiles(root),
  ...(await Effect.runPromise(Effect.provideService(schemaFile, References.MinimumLogLevel, "Warn")))
}
const stale = Object.entries(files).filter(([path, text]) => readIfPresent(path) !== text)
for (const [path, text] of stale) {
  if (process.argv.includes("--check")) console.error(`${path} is out of date: run \`npm run generate\`.`)
  else writeFileSync(`${root}${path}`, text)
}
if (process.argv.includes("--check") && stale.length > 0) process.exitCode = 1
