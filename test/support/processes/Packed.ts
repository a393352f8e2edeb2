/** The package, as `npm pack` makes it from the sources. */
import { renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { builtOnce, run } from "./BuiltOnce.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))

/** The folder with `package.tgz`, and the paths in it in `files.json`. */
export const packed = builtOnce("package", [".", ":!test"], (folder) =>
  Effect.gen(function* () {
    const printed = yield* run(root, "npm", ["pack", "--json", "--pack-destination", folder])
    const [{ filename, files }] = JSON.parse(printed.slice(printed.indexOf("[\n")))
    renameSync(join(folder, filename), join(folder, "package.tgz"))
    writeFileSync(join(folder, "files.json"), JSON.stringify(files.map(({ path }: { readonly path: string }) => path)))
  })
)

/** Unpacks what the package has at a path into a folder. */
export const unpack = Effect.fnUntraced(function* (path: string, folder: string) {
  const depth = path.split("/").length
  const from = join(yield* packed, "package.tgz")
  yield* run(folder, "tar", ["-xzf", from, `--strip-components=${depth}`, path])
})
