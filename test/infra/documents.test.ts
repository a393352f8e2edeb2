/** The files that the documents refer to exist. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))
const documents = readdirSync(`${root}/docs`, { recursive: true, encoding: "utf8" }).filter((name) =>
  name.endsWith(".md")
)

describe("The documents", () => {
  for (const name of documents) {
    it(`docs/${name} names only existing files`, () => {
      const text = readFileSync(`${root}/docs/${name}`, "utf8")
      const named = text.match(/(?<![\w/.-])(?:src|test|schema|infra)\/[\w/.-]*\w/g) ?? []
      assert.deepStrictEqual(
        named.filter((path) => !existsSync(`${root}/${path}`)),
        []
      )
    })
  }

  it("docs/SETTINGS.md lists every setting, and no other", () => {
    const read = ["Config", "ConsoleSettings", "MailSettings", "PortalSettings"]
      .map((name) => readFileSync(`${root}/src/platform/config/${name}.ts`, "utf8"))
      .join()
      .matchAll(/"(LICENSING_\w+)"/g)
    const listed = readFileSync(`${root}/docs/SETTINGS.md`, "utf8").matchAll(/^\| (LICENSING_\w+) \|/gm)
    const names = (found: Iterable<RegExpMatchArray>) => Array.from(found, ([, name]) => name).toSorted()
    assert.deepStrictEqual(names(listed), names(read))
  })
})
