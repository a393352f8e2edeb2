/** The packages, as `npm run packages` makes them from the sources. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { builtOnce, run } from "./BuiltOnce.ts"
import { blocksOf } from "./DocumentBlocks.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))

export type PackageName = "kit" | "client" | "service"

/** Makes the packages again, into a folder. */
const pack = (folder: string, ...names: ReadonlyArray<PackageName>) =>
  run(root, process.execPath, ["infra/scripts/packages.ts", "--out", folder, ...names])

const recipe = ["infra/package", "infra/scripts", "LICENSE"]
const small = builtOnce("packages", ["src", ...recipe], (folder) => pack(folder, "kit", "client"))
const service = builtOnce("service", [".", ":!test"], (folder) => pack(folder, "service"))

/** The folder with the archive of a package. The kit and the client take seconds, the service takes a minute. */
export const packed = (name: PackageName): Effect.Effect<string> => (name === "service" ? service : small)

export const nameOf = (name: PackageName): string =>
  name === "service" ? "licensing-service" : `@licensing-service/${name}`

export const archiveName = (name: PackageName): string =>
  `${nameOf(name).replace("@", "").replace("/", "-")}-${version}.tgz`

/** Unpacks what a package has at a path into a folder. */
export const unpack = Effect.fnUntraced(function* (name: PackageName, path: string, folder: string) {
  const depth = path.split("/").length
  mkdirSync(folder, { recursive: true })
  const from = join(yield* packed(name), archiveName(name))
  yield* run(folder, "tar", ["-xzf", from, `--strip-components=${depth}`, path])
})

/** A fresh folder with these packages, and with links to all packages that the project itself has. */
export const projectWith = (...names: ReadonlyArray<PackageName>) =>
  Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-project-"))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
    )
    for (const name of names) yield* unpack(name, "package", join(folder, "node_modules", nameOf(name)))
    for (const name of readdirSync(join(root, "node_modules"))) {
      if (!name.startsWith(".")) symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name))
    }
    writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }))
    return folder
  }).pipe(Effect.orDie)

/** The blocks of a guide in a language. */
export const blocks = (name: string, language = "ts"): ReadonlyArray<string> =>
  blocksOf(`docs/guides/${name}`)
    .filter((block) => block.language === language)
    .map(({ code }) => code)

/** The project's compiler. Each further thread would check the declarations of all packages again. */
export const tsc = (folder: string, ...args: ReadonlyArray<string>) =>
  run(folder, join(root, "node_modules/.bin/tsc"), ["--checkers", "1", ...args])
