/** The application kit: each entry minified for `import` and `require`, with its declaration, beside the sources. */
import { execFileSync } from "node:child_process"
import { copyFileSync, cpSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { bundle, bundleDeclarations } from "./Bundles.ts"
import { root } from "./Contents.ts"

const home = "src/clients/kit"

/** The name of each entry in the package, and its file. */
const entries = {
  kit: "LicenseKit",
  "machine-id": "machine/MachineId",
  "machine-id.browser": "machine/BrowserMachineId",
  testing: "testing/Testing"
}

export const stageKit = async (folder: string): Promise<ReadonlyArray<string>> => {
  cpSync(join(root, home), join(folder, "src"), { recursive: true })
  const sources = { from: home, to: join(folder, "src") }
  const declared = join(folder, "declared")
  const config = join(folder, "tsconfig.json")
  writeFileSync(config, JSON.stringify(configOf(declared)))
  execFileSync(join(root, "node_modules/.bin/tsc"), ["-p", config], { stdio: "inherit" })
  const declarations: Record<string, string> = {}
  for (const [name, file] of Object.entries(entries)) {
    const given = { entry: `${home}/${file}.ts`, minify: true, sources, external: /^node:/ }
    await bundle({ ...given, file: join(folder, `dist/${name}.js`), format: "esm" })
    await bundle({ ...given, file: join(folder, `dist/${name}.cjs`), format: "cjs" })
    declarations[join(declared, `${file}.d.ts`)] = join(folder, `dist/${name}.d.ts`)
  }
  bundleDeclarations(declarations)
  for (const name of Object.keys(entries))
    copyFileSync(join(folder, `dist/${name}.d.ts`), join(folder, `dist/${name}.d.cts`))
  rmSync(declared, { recursive: true })
  rmSync(config)
  return [home]
}

const configOf = (outDir: string) => ({
  extends: join(root, "tsconfig.json"),
  compilerOptions: {
    ...{ rootDir: join(root, home), outDir, noEmit: false, declaration: true, emitDeclarationOnly: true },
    ...{ rewriteRelativeImportExtensions: true, types: ["node"] }
  },
  include: [],
  files: Object.values(entries).map((file) => join(root, home, `${file}.ts`))
})
