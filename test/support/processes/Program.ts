/**
 * The program as twenty files, which the first test that starts it makes of the sources: a start with the thousand modules
 * themselves takes a second more of CPU time.
 */
import { chmodSync, globSync } from "node:fs"
import { basename, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { Effect } from "effect"
import { type Plugin, rolldown } from "rolldown"
import { builtOnce } from "./BuiltOnce.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))

/** The program, and each thread that it starts: XThread.ts starts the XWorker.ts beside it. */
const entries = () => {
  const threads = globSync("src/**/*Thread.ts", { cwd: root })
  const paths = ["src/main.ts", ...threads.map((path) => path.replace(/Thread\.ts$/, "Worker.ts"))]
  return Object.fromEntries(paths.map((path) => [basename(path, ".ts"), join(root, path)]))
}

/** What the sources read by their own address is still where they are; only the threads are started from these files. */
const addresses: Plugin = {
  name: "addresses",
  transform: {
    filter: { id: { include: /\/src\//, exclude: /Thread\.ts$/ }, code: /import\.meta\.url/ },
    handler: (code, id) => code.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(id).href))
  }
}

const bundle = async (folder: string) => {
  const built = await rolldown({
    input: entries(),
    platform: "node",
    // Other packages stay modules of their own, as those that are loaded only if a setting asks for them.
    external: (name) => !/^([./]|effect(\/|$)|@effect\/)/.test(name),
    plugins: [addresses]
  })
  await built.write({ dir: folder, format: "esm", entryFileNames: "[name].js" })
  await built.close()
  // The embedded database's user starts it, too.
  chmodSync(folder, 0o755)
}

const build = builtOnce("program", ["src", "test/support/processes/Program.ts"], (folder) =>
  Effect.tryPromise({ try: () => bundle(folder), catch: (error) => error as Error })
)

let built: Promise<string> | undefined

/** The path of its main file. */
export const program = Effect.promise(() => (built ??= Effect.runPromise(build))).pipe(
  Effect.map((folder) => join(folder, "main.js"))
)
