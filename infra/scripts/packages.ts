/**
 * Makes what others install, each as an archive of npm with its licence, types, SBOM and the provenance of its files:
 *
 *   npm run packages                          the three packages, into packages/
 *   npm run packages -- kit --out /tmp        one of kit, client, service, into another folder
 *
 * The same sources give the same bytes.
 */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { parseArgs } from "node:util"
import { stageClient } from "./packages/Client.ts"
import { complete, root } from "./packages/Contents.ts"
import { stageKit } from "./packages/Kit.ts"
import { stageService } from "./packages/Service.ts"

/** Each fills its folder, and says of which files of the project it is made. */
const packages = { kit: stageKit, client: stageClient, service: stageService }

type Name = keyof typeof packages
const names = Object.keys(packages) as ReadonlyArray<Name>

const { positionals, values } = parseArgs({ allowPositionals: true, options: { out: { type: "string" } } })
const out = resolve(values.out ?? join(root, "packages"))
const isName = (name: string): name is Name => Object.hasOwn(packages, name)
const unknown = positionals.find((name) => !isName(name))
if (unknown !== undefined) throw new Error(`There is no package ${unknown}, only ${names.join(", ")}.`)
const wanted = positionals.length === 0 ? names : positionals.filter(isName)

interface Packed {
  readonly filename: string
  readonly size: number
  readonly unpackedSize: number
  readonly files: ReadonlyArray<{ readonly path: string }>
}

/** Below node_modules, so that the compiler finds the project's packages. */
const stages = join(root, "node_modules/.cache/packages")
mkdirSync(stages, { recursive: true })
mkdirSync(out, { recursive: true })
const lines: Array<string> = []
for (const name of wanted) {
  const folder = mkdtempSync(join(stages, `${name}-`))
  try {
    complete(folder, name, await packages[name](folder))
    const options = ["--json", "--silent", "--ignore-scripts", "--pack-destination", out]
    const printed = execFileSync("npm", ["pack", ...options], { cwd: folder, encoding: "utf8" })
    const [{ filename, files, size, unpackedSize }] = JSON.parse(printed) as readonly [Packed]
    const digest = createHash("sha256")
      .update(readFileSync(join(out, filename)))
      .digest("hex")
    lines.push(`${digest}  ${filename}`)
    const kilobytes = (bytes: number) => `${(bytes / 1_000).toFixed(1)} kB`
    console.log(`${filename}: ${files.length} files, ${kilobytes(size)}, unpacked ${kilobytes(unpackedSize)}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
writeFileSync(join(out, "SHA256SUMS"), `${lines.join("\n")}\n`)
