/** Every management operation has its place in the console. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { operations } from "../../../contract/cases/Surface.ts"

const folder = fileURLToPath(new URL("../../../../src/clients/console", import.meta.url))

const sources = readdirSync(folder, { recursive: true })
  .map(String)
  .filter((name) => /\.tsx?$/.test(name))
  .map((name) => ({ name, text: readFileSync(join(folder, name), "utf8") }))

const placesOf = (id: string) => sources.filter(({ text }) => text.includes(`("${id}"`)).map(({ name }) => name)

describe("The console", () => {
  const managed = operations.filter(({ credential }) => credential === "token").map(({ id }) => id)

  it("has a place for every management operation", () => {
    assert.deepStrictEqual(
      managed.filter((id) => placesOf(id).length === 0),
      []
    )
  })
})
