/**
 * The sizes of the built console's scripts, compressed: of the first screen, and of what each screen loads beyond that.
 * `node test/clients/console/browser/ScriptSizes.ts [<folder>]` prints them, by default of what the service serves.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"

/** Files that a script imports before it runs, by their names. */
const importsOf = (script: string): ReadonlyArray<string> =>
  [...script.matchAll(/(?:from|import)\s*"\.\/([\w.-]+\.js)"/g)].map(([, name]) => name!)

export const scriptSizes = (folder: string) => {
  const assets = join(folder, "assets")
  const scripts = new Map(
    readdirSync(assets)
      .filter((name) => name.endsWith(".js"))
      .map((name) => [name, readFileSync(join(assets, name))])
  )
  const withImports = (names: ReadonlyArray<string>, known: ReadonlySet<string> = new Set()): ReadonlySet<string> => {
    const found = new Set<string>()
    const add = (name: string): void => {
      if (found.has(name) || known.has(name)) return
      found.add(name)
      importsOf(scripts.get(name)?.toString() ?? "").forEach(add)
    }
    names.forEach(add)
    return found
  }
  const sizeOf = (names: ReadonlySet<string>) =>
    [...names].reduce((sum, name) => sum + gzipSync(scripts.get(name) ?? "").length, 0)
  const page = readFileSync(join(folder, "index.html"), "utf8")
  const first = withImports([...page.matchAll(/assets\/([\w.-]+\.js)"/g)].map(([, name]) => name!))
  // What is imported while it runs: the screens, and parts of screens that come later.
  const later = [...scripts.values()].flatMap((script) =>
    [...script.toString().matchAll(/import\(["`]\.\/([\w.-]+\.js)["`]\)/g)].map(([, name]) => name!)
  )
  const screens = new Map(
    [...new Set(later)].map((name) => [name.replace(/-[\w-]{8}\.js$/, ""), sizeOf(withImports([name], first))])
  )
  return { first: sizeOf(first), screens }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const built = fileURLToPath(new URL("../../../../node_modules/.cache/console", import.meta.url))
  const { first, screens } = scriptSizes(process.argv[2] ?? built)
  const kilobytes = (bytes: number) => `${(bytes / 1_000).toFixed(1)} kB`
  console.log(`first screen  ${kilobytes(first)}`)
  for (const [name, bytes] of [...screens].toSorted(([, one], [, other]) => other - one))
    console.log(`${name}  +${kilobytes(bytes)}`)
}
