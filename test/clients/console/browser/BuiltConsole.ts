/** The console, built from the sources as they are now. */
import { fileURLToPath, pathToFileURL } from "node:url"
import { Effect, Layer } from "effect"
import { ConsoleFolder } from "../../../../src/edge/documents/publishing/ConsoleHttp.ts"
import { builtOnce, run } from "../../../support/processes/BuiltOnce.ts"

const root = fileURLToPath(new URL("../../../..", import.meta.url))

/** The folder of both web pages. */
const pages = builtOnce("pages", ["src", "infra/scripts/console.mjs"], (folder) =>
  run(root, process.execPath, ["infra/scripts/console.mjs", folder])
)

/** The folder of its files, which other test files read, too. */
export const build = Effect.map(pages, (folder) => `${folder}/console`)

/** The folder of the customer's page. */
export const portalBuild = Effect.map(pages, (folder) => `${folder}/portal`)

/** The service below serves it. */
export const builtConsole = Layer.effect(
  ConsoleFolder,
  Effect.map(build, (folder) => pathToFileURL(`${folder}/`))
)
