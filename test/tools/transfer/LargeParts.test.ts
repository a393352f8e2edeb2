/** Parts of records that are too many to be in memory together. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, FileSystem, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { makePartsOf } from "../../../src/tools/transfer/ImportFile.ts"
import { Importing } from "../../../src/tools/transfer/Importing.ts"
import type { Entry, Unit } from "../../../src/tools/transfer/Units.ts"
import { Database } from "../../support/database/Database.ts"
import { at, customer, device, entryOf, license, policy, product, unitOf } from "./Records.ts"

const layerImporting = Importing.layer.pipe(Layer.provide(EventLog.layer), Layer.provideMerge(Database.layer))

layer(layerImporting)("The parts of a large record of an erased customer", (it) => {
  it.effect("are written, without those that show what was erased", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { write } = yield* Importing
      const times = { created_at: at, updated_at: at }
      const field = (id: string) =>
        entryOf({
          ...{ type: "custom_field", id, product_id: "prod_1", resource_type: "license", code: id, name: id },
          ...{ value_type: "string", is_required: false, enum_options: [], metadata: {}, ...times }
        })
      const fields = [field("cfd_1"), field("cfd_2")]
      yield* write([{ ...unitOf(product("prod_1")), parts: fields }])
      yield* write([policy("pol_1", "prod_1"), customer("cust_1")].map(unitOf))
      yield* sql`UPDATE customers SET erased_at = now()`

      const large = (id: string, name: { readonly customer_name?: string }): Unit => {
        const value = (definition_id: string, string_value: string): Entry =>
          entryOf({ type: "license_custom_field_value", license_id: id, definition_id, string_value, ...times })
        const devices = [0, 1, 2].map((index) => entryOf(device(id, index)))
        const values = [value("cfd_1", "desk of Zdenka Quist"), value("cfd_2", "red")]
        return {
          ...unitOf(license(id, { product_id: "prod_1", policy_id: "pol_1", customer_id: "cust_1", ...name })),
          large: {
            counts: new Map([
              ["device", 3],
              ["license_custom_field_value", 2]
            ]),
            inPieces: (use) => Effect.forEach([devices, values.slice(0, 1), values.slice(1)], use, { discard: true })
          }
        }
      }
      const { erased, written } = yield* write([large("lic_1", { customer_name: "Zdenka Quist" })])
      assert.strictEqual(erased.length, 1)
      assert.deepStrictEqual(Object.fromEntries(written), { license: 1, device: 3, license_custom_field_value: 1 })
      assert.deepStrictEqual(
        yield* sql`SELECT customer_name, (SELECT count(*)::int FROM devices) AS devices FROM licenses`,
        [{ customer_name: null, devices: 3 }]
      )
      assert.deepStrictEqual(yield* sql`SELECT string_value FROM custom_field_values`, [{ string_value: "red" }])
      assert.deepStrictEqual(
        yield* sql`SELECT metadata -> 'devices' AS devices, metadata -> 'license_custom_field_values' AS values
          FROM event_log WHERE resource_id = 'lic_1'`,
        [{ devices: 3, values: 1 }]
      )
      // Without a name, each text may contain the erased one.
      const unnamed = yield* write([large("lic_2", {})])
      assert.strictEqual(unnamed.erased.length, 1)
      assert.deepStrictEqual(Object.fromEntries(unnamed.written), { license: 1, device: 3 })
    })
  )
})

describe("The parts of large records of a file", () => {
  it.effect("are found once, each from where those before begin, and read from there", () =>
    Effect.gen(function* () {
      const home = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-parts-"))),
        (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
      )
      const path = join(home, "given.jsonl")
      const lines = [
        ...[license("lic_1", { customer_name: "Zoë" }), device("lic_1", 0), device("lic_1", 1)],
        ...[license("lic_2", {}), device("lic_2", 0)]
      ]
      const texts = lines.map((line) => `${JSON.stringify(line)}\n`)
      writeFileSync(path, texts.join(""))
      const files = yield* FileSystem.FileSystem
      const offsets: Array<unknown> = []
      const watched: FileSystem.FileSystem = {
        ...files,
        stream: (path, options) => {
          offsets.push(options?.offset)
          return files.stream(path, options)
        }
      }
      const partsOf = yield* Effect.provideService(makePartsOf(path), FileSystem.FileSystem, watched)
      const large = (line: number, lastLine: number) =>
        Effect.provideService(
          partsOf({ root: entryOf(lines[line - 1]!, line), counts: new Map(), lastLine }),
          FileSystem.FileSystem,
          watched
        )
      const [first, second] = [yield* large(1, 3), yield* large(4, 5)]
      const bytes = (count: number) => Buffer.byteLength(texts.slice(0, count).join(""))
      assert.deepStrictEqual(offsets.splice(0), [0, bytes(1)])

      const found: Array<unknown> = []
      const read = (parts: ReadonlyArray<Entry>) =>
        Effect.sync(() => void found.push(...parts.map(({ line, row }) => [line, row["id"]])))
      yield* first.inPieces(read)
      yield* second.inPieces(read)
      yield* second.inPieces(read)
      const last = [5, "dev_lic_2_0"]
      assert.deepStrictEqual(found, [[2, "dev_lic_1_0"], [3, "dev_lic_1_1"], last, last])
      assert.deepStrictEqual(offsets, [bytes(1), bytes(4), bytes(4)])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
