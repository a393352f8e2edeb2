/** The rehearsal of an import beside nodes that record events. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { tableOf } from "../../../src/tools/transfer/Columns.ts"
import { Importing } from "../../../src/tools/transfer/Importing.ts"
import { rowOf } from "../../../src/tools/transfer/LicenseUnits.ts"
import { Database, holdLock, recordSetting } from "../../support/database/Database.ts"

const layerImporting = Importing.layer.pipe(Layer.provide(EventLog.layer), Layer.provideMerge(Database.layer))

layer(layerImporting)("The rehearsal of an import", (it) => {
  it.effect("does not touch the counter of events, which every node waits for", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { rehearse, write } = yield* Importing
      const row = rowOf({ id: "cust_1", code: "c", name: "C", metadata: {}, created_at: 0, updated_at: 0 })
      const units = [{ root: { line: 1, table: tableOf("customer"), row }, parts: [] }]
      const counter = sql`SELECT last, xmin::text AS xmin FROM event_sequence`
      const before = yield* counter
      const { release } = yield* holdLock((sql) => sql`SELECT FROM event_sequence FOR UPDATE`)
      const rehearsed = yield* rehearse(write(units))
      assert.deepStrictEqual([...rehearsed.written], [["customer", 1]])
      yield* release
      assert.deepStrictEqual(yield* counter, before)
      assert.deepStrictEqual(yield* sql`SELECT id FROM customers`, [])

      // Nothing is sent while the parts of a large record are read: the transaction is idle.
      const idle = sql`SELECT current_setting('idle_in_transaction_session_timeout') AS idle`
      assert.deepStrictEqual(yield* rehearse(Effect.andThen(write(units), idle)), [{ idle: "1min" }])

      // An import holds only rows that nobody else knows, and parses others meanwhile.
      const idleInImport = yield* recordSetting("idle_in_transaction_session_timeout", "INSERT ON customers")
      yield* write(units)
      assert.deepStrictEqual(yield* idleInImport, ["10s"])
      const [{ last } = { last: undefined }] = yield* counter
      assert.strictEqual(last, Number(before[0]!["last"]) + 1)
    })
  )
})
