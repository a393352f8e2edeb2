/** The console, built from the sources into a temporary folder that the scope removes. */
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { Effect, Layer } from "effect"
import { ConsoleFolder } from "../../src/documents/publishing/ConsoleHttp.ts"

const script = fileURLToPath(new URL("../../infra/scripts/console.mjs", import.meta.url))

export const build = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-console-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  yield* Effect.callback<void>((resume) => {
    execFile(process.execPath, [script, folder], (failure, _, error) => {
      resume(failure === null ? Effect.void : Effect.die(new Error(`${failure.message}\n${error}`)))
    })
  })
  return folder
})

/** The service below serves the console as the sources are now. */
export const builtConsole = Layer.effect(
  ConsoleFolder,
  Effect.map(build, (folder) => pathToFileURL(`${folder}/`))
)
