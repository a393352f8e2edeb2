/**
 * Builds what the package ships into dist/: JavaScript of everything, declarations of the client and the application kit, the
 * web pages, and the documentation site. npm runs it before it packs (`prepack`).
 *
 * The compiler refuses to write the contract's declaration (it is too large), so the client's request and response types are asked
 * of the type checker and written out, one operation after the other.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { API } from "typescript/unstable/sync"
import { operations } from "../../src/clients/client/Operations.ts"

const root = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "")
const dist = join(root, "dist")
const tsc = join(root, "node_modules/.bin/tsc")
const entries = ["clients/client/Client.d.ts", "clients/kit/LicenseKit.d.ts"]

/** Types in full, but for bytes, functions and free-form objects. */
const expand = `
type Expand<A> = A extends Uint8Array ? Uint8Array
  : A extends (...args: ReadonlyArray<never>) => unknown ? A
  : A extends ReadonlyArray<infer Item> ? ReadonlyArray<Expand<Item>>
  : A extends object ? string extends keyof A ? A : { [Name in keyof A]: Expand<A[Name]> }
  : A
`
const json = "type Json = string | number | boolean | null | ReadonlyArray<Json> | { readonly [name: string]: Json }"
const metadata = "type Metadata = { readonly [name: string]: Json }"
// NodeBuilderFlags: NoTruncation, MultilineObjectLiterals, InTypeAlias.
const flags = 1 | 1024 | 8388608

/** The declarations of src/clients/client/Operations.ts. */
const operationTypes = (): string => {
  const folder = join(dist, ".types")
  const [probe, config] = [join(folder, "Probe.ts"), join(folder, "tsconfig.json")]
  mkdirSync(folder, { recursive: true })
  const members = ["request: Expand<Request<Id>>", "success: Expand<Success<Id>>", `code: Refusals<Id>["code"]`]
  const probes = operations.map(({ id }) => {
    const shape = members.map((member) => member.replace("Id", `"${id}"`)).join("; ")
    return `export declare const ${id}: { ${shape} }`
  })
  const names = `import type { Refusals, Request, Success } from "../../src/clients/client/Operations.ts"`
  writeFileSync(probe, [names, expand, ...probes].join("\n"))
  writeFileSync(config, JSON.stringify({ extends: "../../tsconfig.json", include: [], files: ["Probe.ts"] }))
  const types = printedTypes(config, probe)
  rmSync(folder, { recursive: true })
  return [
    `import type { Refusal } from "../../contract/api/Failure.ts"`,
    json,
    metadata,
    "/** Each operation's request, what it gives, and the codes of its refusals. */",
    `export interface OperationTypes {\n${types.map(([id, type]) => `  readonly ${id}: ${type}`).join("\n")}\n}`,
    "export type OperationId = keyof OperationTypes",
    `export type Request<Id extends OperationId> = OperationTypes[Id]["request"]`,
    `export type Success<Id extends OperationId> = OperationTypes[Id]["success"]`,
    `export type Refusals<Id extends OperationId> = Refusal<OperationTypes[Id]["code"]>`,
    ""
  ].join("\n")
}

const printedTypes = (config: string, file: string): ReadonlyArray<readonly [string, string]> => {
  const api = new API({ cwd: root })
  try {
    const project = api.updateSnapshot({ openProjects: [config] }).getProject(config)!
    const source = project.program.getSourceFile(file)!
    return operations.map(({ id }) => {
      const at = source.text.indexOf(`const ${id}:`) + "const ".length
      const type = project.checker.getTypeAtPosition(file, at)
      if (type === undefined) throw new Error(`${id} has no type`)
      const text = project.checker.typeToString(type, undefined, flags)
      if (text.includes(`<"${id}">`)) throw new Error(`The type of ${id} names itself: ${text}`)
      return [id, text] as const
    })
  } finally {
    api.close()
  }
}

/** The declarations that the entries reach, with the specifiers that every resolution finds. The others are removed. */
const keepReached = (problems: ReadonlyArray<string>): void => {
  const reached = new Set<string>()
  const visit = (path: string) => {
    if (reached.has(path)) return
    reached.add(path)
    const problem = problems.find((line) => line.startsWith(`src/${path.replace(/\.d\.ts$/, ".ts")}(`))
    if (problem !== undefined || !existsSync(join(dist, path))) throw new Error(problem ?? `${path} is missing`)
    const text = readFileSync(join(dist, path), "utf8")
    const specifier = /((?:from |import\()")(\.[^"]+)\.ts"/g
    writeFileSync(join(dist, path), text.replaceAll(specifier, '$1$2.js"'))
    for (const [, , target] of text.matchAll(specifier)) visit(`${join(dirname(path), String(target))}.d.ts`)
  }
  entries.forEach(visit)
  for (const path of readdirSync(dist, { recursive: true }).map(String)) {
    if (path.endsWith(".d.ts") && !reached.has(path)) rmSync(join(dist, path))
  }
}

rmSync(dist, { recursive: true, force: true })
// Each further thread would check the same declarations again, for twice the work.
const single = ["--checkers", "1"]
execFileSync(tsc, [...single, "-p", "infra/package/tsconfig.build.json"], { cwd: root, stdio: "inherit" })
// What the reference page loads.
for (const name of ["Reference.css", "Favicon.svg"])
  cpSync(join(root, "src/edge/documents/reference", name), join(dist, "edge/documents/reference", name))
const { stdout } = spawnSync(tsc, [...single, "-p", "infra/package/tsconfig.declarations.json"], {
  cwd: root,
  encoding: "utf8"
})
writeFileSync(join(dist, "clients/client/Operations.d.ts"), operationTypes())
// What is written in full above does not concern.
keepReached(stdout.split("\n").filter((line) => !line.startsWith("src/clients/client/Operations.ts(")))
execFileSync(process.execPath, ["infra/scripts/console.mjs", join(dist, "clients")], {
  cwd: root,
  stdio: "inherit"
})
execFileSync(process.execPath, ["infra/scripts/pages.ts", "--out", join(dist, "site")], { cwd: root, stdio: "inherit" })
