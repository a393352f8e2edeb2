/** One file of each entry: JavaScript by Rolldown, declarations by the compiler and Rolldown. */
import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { rolldown } from "rolldown"
import { installTools } from "../tools.ts"
import { root } from "./Contents.ts"

interface Bundle {
  /** A file of the project. */
  readonly entry: string
  /** Where it goes. */
  readonly file: string
  readonly format: "esm" | "cjs"
  readonly minify?: boolean
  readonly external?: RegExp
  /** Where the package has the sources of a folder, for its source map. */
  readonly sources?: { readonly from: string; readonly to: string }
}

/** The files of the project that it contains. */
export const bundle = async (given: Bundle): Promise<ReadonlyArray<string>> => {
  const { entry, external, file, format, minify = false, sources } = given
  const built = await rolldown({
    input: join(root, entry),
    platform: "neutral",
    transform: { target: "es2022" },
    ...(external && { external })
  })
  try {
    const options = { format, codeSplitting: false, comments: !minify, minify } as const
    const { output } = await built.generate({ ...options, sourcemap: sources !== undefined })
    const [{ code, map, moduleIds }] = output
    const modules = moduleIds.filter((id) => id.startsWith(root)).map((id) => relative(root, id))
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, code)
    if (map === null || sources === undefined) return modules
    const places = map.sources.map((path) =>
      relative(dirname(file), join(sources.to, path.slice(path.indexOf(sources.from) + sources.from.length)))
    )
    // The sources are files of the package.
    writeFileSync(`${file}.map`, JSON.stringify({ ...map, sources: places, sourcesContent: undefined }))
    return modules
  } finally {
    await built.close()
  }
}

/** Makes one declaration of each, as its target: the declarations that it imports become part of it. */
export const bundleDeclarations = (files: Readonly<Record<string, string>>): void => {
  installTools("package")
  execFileSync(process.execPath, ["infra/package/declarations.mjs", JSON.stringify(files)], {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"]
  })
}
