/** Batches that the database refuses: which lines are named, and what becomes of a batch whose fault has gone meanwhile. */
import { assert, it, layer } from "@effect/vitest"
import { Deferred, Effect, Layer } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { makeFaultsOf } from "../../../src/tools/transfer/Faults.ts"
import { Importing } from "../../../src/tools/transfer/Importing.ts"
import { type Accept, runImport } from "../../../src/tools/transfer/ImportRun.ts"
import { TransferRefused } from "../../../src/tools/transfer/Lines.ts"
import { Database } from "../../support/database/Database.ts"
import { at, customer, device, entryOf, license, policy, product, unitOf } from "./Records.ts"

const layerImporting = Importing.layer.pipe(Layer.provide(EventLog.layer), Layer.provideMerge(Database.layer))

/** The database refuses the attempts to write a customer for which a condition on their number holds. */
const refuseAttempts = Effect.fnUntraced(function* (condition: string) {
  const sql = yield* SqlClient.SqlClient
  // A sequence counts attempts that are rolled back, too.
  yield* sql`CREATE SEQUENCE attempts`
  yield* sql.unsafe(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$DECLARE n int := nextval('attempts'); BEGIN
    IF ${condition} THEN RAISE EXCEPTION USING ERRCODE = '23514', MESSAGE = 'refused'; END IF; RETURN NULL; END$$`)
  yield* sql`CREATE TRIGGER refuse AFTER INSERT ON customers FOR EACH STATEMENT EXECUTE FUNCTION refuse()`
  return Effect.gen(function* () {
    yield* sql`DROP FUNCTION refuse CASCADE`
    yield* sql`DROP SEQUENCE attempts`
  })
})

layer(layerImporting)("A batch that the database refuses", (it) => {
  // The second attempt is the search for the line, the third one tries the line alone.
  for (const refusals of [1, 2])
    it.effect(`${refusals} times is tried again if nothing is wrong with it any more`, () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const allow = yield* refuseAttempts(`n <= ${refusals}`)
        const id = `cust_again_${refusals}`
        const { written } = yield* Effect.ensuring(
          (yield* Importing).write([unitOf(customer(id))]),
          Effect.orDie(allow)
        )
        assert.deepStrictEqual([...written], [["customer", 1]])
        assert.deepStrictEqual(yield* sql`SELECT count(*)::int FROM customers WHERE id = ${id}`, [{ count: 1 }])
      })
    )

  it.effect("again and again, although nothing is wrong with it, stops the import", () =>
    Effect.gen(function* () {
      const allow = yield* refuseAttempts("n % 2 = 1")
      const error = yield* Effect.flip((yield* Importing).write([unitOf(customer("cust_never"))]))
      yield* allow
      assert.match(error.message, /run the same command again. The last reason: The database refuses it: refused\.$/)
      assert.isUndefined(error.faults)
    })
  )

  it.effect("is reported without the lines that would not have been written", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { write } = yield* Importing
      yield* write([product("prod_1"), policy("pol_1", "prod_1"), customer("cust_1")].map(unitOf))
      yield* sql`UPDATE customers SET erased_at = now() WHERE id = 'cust_1'`
      const value = (line: number, string_value: string) =>
        entryOf(
          {
            ...{ type: "license_custom_field_value", license_id: "lic_1", definition_id: `cfd_${line}`, string_value },
            ...{ created_at: at, updated_at: at }
          },
          line
        )
      const links = { product_id: "prod_1", policy_id: "pol_1", customer_id: "cust_1", customer_name: "Zdenka Quist" }
      const unit = { root: entryOf(license("lic_1", links)), parts: [value(2, "of Zdenka Quist"), value(3, "red")] }
      const { faults } = yield* Effect.flip(write([unit]))
      assert.deepStrictEqual(
        faults?.map(({ line }) => line),
        [3]
      )
    })
  )

  it.effect("is not reported for a record that another import has written meanwhile", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { columns, rehearse, write } = yield* Importing
      yield* write([product("prod_2"), policy("pol_2", "prod_2")].map(unitOf))
      const unit = unitOf(license("lic_2", { product_id: "prod_2", policy_id: "pol_2" }))
      const wrong = entryOf({ ...device("lic_2", 1), status: "wrong" }, 2)
      const cause = { code: "23514", message: "refused" }
      const refusal = new SqlError.SqlError({
        reason: new SqlError.ConstraintError({ cause, operation: "execute" })
      })
      const faultsOf = makeFaultsOf(sql, columns, () => Effect.fail(refusal))
      const faults = rehearse(faultsOf([{ ...unit, parts: [wrong] }]))
      assert.deepStrictEqual(
        (yield* faults).map(({ line }) => line),
        [2]
      )
      yield* write([unit])
      assert.deepStrictEqual(yield* faults, [])
    })
  )
})

it.effect("A batch that stops an import does so after the batch that is written beside it", () =>
  Effect.gen(function* () {
    const begun = yield* Deferred.make<void>()
    let written = false
    const importing = Importing.of({
      columns: new Map(),
      rehearse: (effect) => effect,
      write: ([first]) =>
        first!.root.line === 1
          ? Effect.andThen(Deferred.await(begun), new TransferRefused({ message: "stopped" }))
          : Effect.gen(function* () {
              yield* Deferred.succeed(begun, undefined)
              yield* Effect.repeat(Effect.yieldNow, { times: 1_000 })
              written = true
              return { written: new Map(), present: 0, erased: [] }
            })
    })
    const records = Array.from({ length: 1_001 }, (_, index) => ({
      ...unitOf(customer(`cust_${index}`)),
      root: entryOf(customer(`cust_${index}`), index + 1)
    }))
    const source = (accept: Accept) => Effect.forEach(records, accept, { discard: true })
    const error = yield* Effect.flip(runImport(source, { dryRun: false, onProgress: () => Effect.void })).pipe(
      Effect.provideService(Importing, importing)
    )
    assert.strictEqual(error.message, "stopped")
    assert.isTrue(written)
  })
)
