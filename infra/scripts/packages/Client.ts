/**
 * The typed client: one module, of which Effect is no part, and one declaration. The compiler refuses to write the contract's
 * declaration (it is too large), so the operations' request and response types are asked of the type checker and written out, one
 * operation after the other.
 */
import { spawnSync } from "node:child_process"
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { API } from "typescript/unstable/sync"
import { operations } from "../../../src/clients/client/Operations.ts"
import { bundle, bundleDeclarations } from "./Bundles.ts"
import { root } from "./Contents.ts"

const entry = "src/clients/client/Client.ts"

export const stageClient = async (folder: string): Promise<ReadonlyArray<string>> => {
  const modules = await bundle({
    entry,
    file: join(folder, "dist/client.js"),
    format: "esm",
    external: /^effect(\/|$)/
  })
  const declared = join(folder, "declared")
  const problems = emit(folder, declared)
  writeFileSync(join(declared, "clients/client/Operations.d.ts"), operationTypes(folder))
  const main = join(declared, "clients/client/Client.d.ts")
  // What the declaration reaches must be declared without a problem.
  for (const path of reachedFrom(main)) {
    const source = path.slice(declared.length + 1).replace(/\.d\.ts$/, ".ts")
    const problem = problems.find((line) => line.startsWith(`src/${source}(`))
    if (problem !== undefined && source !== "clients/client/Operations.ts") throw new Error(problem)
  }
  bundleDeclarations({ [main]: join(folder, "dist/client.d.ts") })
  rmSync(declared, { recursive: true })
  return modules
}

/** Writes the declarations of the client's files; the compiler's problems. */
const emit = (folder: string, outDir: string): ReadonlyArray<string> => {
  const config = join(folder, "tsconfig.json")
  const compilerOptions = {
    ...{ rootDir: join(root, "src"), outDir, noEmit: false, declaration: true, emitDeclarationOnly: true },
    rewriteRelativeImportExtensions: true
  }
  const given = { extends: join(root, "tsconfig.json"), compilerOptions, include: [], files: [join(root, entry)] }
  writeFileSync(config, JSON.stringify(given))
  // Each further thread would check the same declarations again, for twice the work.
  const args = ["--checkers", "1", "-p", config]
  const { stdout } = spawnSync(join(root, "node_modules/.bin/tsc"), args, { cwd: root, encoding: "utf8" })
  rmSync(config)
  return stdout.split("\n")
}

const reachedFrom = (path: string, reached = new Set<string>()): ReadonlySet<string> => {
  if (reached.has(path)) return reached
  if (!existsSync(path)) throw new Error(`${path} is missing`)
  reached.add(path)
  for (const [, target] of readFileSync(path, "utf8").matchAll(/(?:from |import\()"(\.[^"]+)\.ts"/g))
    reachedFrom(join(path, "..", `${target}.d.ts`), reached)
  return reached
}

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
const operationTypes = (folder: string): string => {
  const [probe, config] = [join(folder, "Probe.ts"), join(folder, "tsconfig.json")]
  const members = ["request: Expand<Request<Id>>", "success: Expand<Success<Id>>", `code: Refusals<Id>["code"]`]
  const probes = operations.map(({ id }) => {
    const shape = members.map((member) => member.replace("Id", `"${id}"`)).join("; ")
    return `export declare const ${id}: { ${shape} }`
  })
  const names = `import type { Refusals, Request, Success } from "${join(root, "src/clients/client/Operations.ts")}"`
  writeFileSync(probe, [names, expand, ...probes].join("\n"))
  writeFileSync(config, JSON.stringify({ extends: join(root, "tsconfig.json"), include: [], files: ["Probe.ts"] }))
  const types = printedTypes(config, probe)
  for (const file of [probe, config]) rmSync(file)
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
