/** The columns of a CSV file that have other names than here. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../support/http/TestServer.ts"
import { operatorSettings, runLine } from "../../support/processes/CommandLine.ts"

const run = Effect.fnUntraced(function* (rows: ReadonlyArray<string>, ...args: ReadonlyArray<string>) {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-csv-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  const path = join(folder, "given.csv")
  writeFileSync(path, rows.join("\n"))
  return yield* runLine(yield* operatorSettings, "import", "csv", path, ...args, "--dry-run")
}, Effect.scoped)

layer(TestServer.layerWith({}), { timeout: 120_000 })("The columns of `licensing import csv`", (it) => {
  it.effect("maps columns as it is told, names the nearest one, and shows rows without their keys", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { id } = yield* client.products.create({ payload: { name: "Mapped", code: "csv-mapped" } })
      const payload = { name: "Pro", code: "pro", license_type: "perpetual" } as const
      yield* client.policies.create({ params: { id }, payload })
      const rows = ["License Key,product,policy,Shop order,Notes", "MAPPED-KEY-0001,csv-mapped,pro,17,x"]
      const { failure: error } = yield* run(rows)
      assert.include(
        error,
        '"License Key" is unknown, the nearest is license_key: pass --map "License Key=license_key"'
      )
      assert.include(error, '"Notes=-" to leave it out')
      const headless = yield* run(["MAPPED-KEY-0001,csv-mapped,pro"])
      assert.notInclude(`${headless.out}${headless.failure}`, "MAPPED")
      const map = ["License Key=license_key", "Shop order=metadata.order", "Notes=-"].flatMap((pair) => ["--map", pair])
      const { out } = yield* run(rows, ...map)
      assert.include(
        out,
        "Shop order → metadata.order\nNotes → left out\nline 2: license_key=…0001  product=csv-mapped"
      )
      assert.notInclude(out, "MAPPED")
    })
  )
})
