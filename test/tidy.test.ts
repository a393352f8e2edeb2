/**
 * Enforces the tidy rules. Each rule in test/tidy has its exceptions with their reasons, and an example that
 * it must find: a search that never finds anything proves nothing.
 */
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { banRules } from "./tidy/bans.ts"
import { importRules } from "./tidy/imports.ts"
import { readAll } from "./tidy/Rule.ts"
import { shapeRules } from "./tidy/shape.ts"
import { wordRules } from "./tidy/words.ts"

const root = fileURLToPath(new URL("..", import.meta.url))
const leftOut = /^(node_modules|\.git|data|coverage|dist|site)$/
const isText = (name: string) => /\.(tsx?|css|html|mjs|js|json|sql|md|ya?ml|txt|sh)$|^[^.]+$|^\.\w+$/.test(name)

const readTexts = (folder: string): ReadonlyArray<readonly [string, string]> =>
  readdirSync(`${root}${folder}`, { withFileTypes: true }).flatMap((entry) => {
    if (leftOut.test(entry.name)) return []
    const path = `${folder}${entry.name}`
    if (entry.isDirectory()) return readTexts(`${path}/`)
    return entry.isFile() && isText(entry.name) ? [[path, readFileSync(`${root}${path}`, "utf8")] as const] : []
  })

const rules = [...importRules, ...shapeRules, ...banRules, ...wordRules]
const examples = rules.map(({ example }) => new Map(Object.entries(example)))
const [project, ...exampleProjects] = readAll([new Map(readTexts("")), ...examples])

describe("the tidy rules", () => {
  for (const [index, { exceptions = {}, find, name }] of rules.entries()) {
    it(name, () => {
      const found = find(project!)
      const broken = found.filter(({ path }) => !(path in exceptions))
      assert.deepStrictEqual(
        broken.map(({ line, path, what }) => `${path}:${line} ${what}`),
        []
      )
      const idle = Object.keys(exceptions).filter((path) => !found.some((finding) => finding.path === path))
      assert.deepStrictEqual(idle, [], "exceptions that nothing needs any more")
    })

    it(`${name}: the example breaks it`, () => {
      assert.isNotEmpty(find(exampleProjects[index]!))
    })
  }
})
