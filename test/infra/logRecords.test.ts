/** The table of log records in OPERATIONS.md has every warning and error of the service, and no other. */
import { globSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))
const read = (path: string) => readFileSync(`${root}/${path}`, "utf8")

const source = globSync("src/**/*.ts", { cwd: root, exclude: ["src/clients/**"] })
  .map(read)
  .join("\n")

/** The fixed parts of a message: texts stand in the place of `${…}`, and of "…" in the table. */
const partsOf = (message: string) =>
  message
    .split(/\$\{[^}]*\}|…/)
    .map((part) => part.trim())
    .filter((part) => part.length > 3)

const logged = Array.from(source.matchAll(/log(?:Warning|Error)\(\s*(?:"([^"]+)"|`([^`]+)`)/g), ([, plain, template]) =>
  String(plain ?? template)
)
const [, table] = read("docs/OPERATIONS.md").split("| Message | Level |")
const documented = Array.from((table ?? "").split("\n\n")[0]!.matchAll(/^\| (.+?) \| [a-z, ]+ \|/gm), ([, cell]) =>
  String(cell).split(" / ")
).flat()

describe("The log records of docs/OPERATIONS.md", () => {
  it("have each warning and error", () => {
    assert.isAbove(logged.length, 25)
    const rows = documented.map((row) => partsOf(row)[0]!)
    const missing = logged.filter((message) => {
      const [first = ""] = partsOf(message)
      return !rows.some((row) => row.startsWith(first) || first.startsWith(row))
    })
    assert.deepStrictEqual(missing, [])
  })

  it("are all written by the service", () => {
    assert.isAbove(documented.length, 35)
    const unwritten = documented.filter((row) => !partsOf(row).every((part) => source.includes(part)))
    assert.deepStrictEqual(unwritten, [])
  })
})
