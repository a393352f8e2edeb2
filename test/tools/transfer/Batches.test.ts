/** The batches of an import: what they wait for, and what becomes of one whose connection is lost. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { Importing } from "../../../src/tools/transfer/Importing.ts"
import { runImport } from "../../../src/tools/transfer/ImportRun.ts"
import { Database } from "../../support/database/Database.ts"
import { customer, type Line, license, policy, product, unitOf } from "./Records.ts"

describe("A batch of an import", () => {
  const turns = 50
  /** When batches of these types of records begin and end. Each lasts until others that may begin have begun. */
  const stepsOf = Effect.fnUntraced(function* (lines: ReadonlyArray<Line>) {
    const steps: Array<string> = []
    const importing = Importing.of({
      columns: new Map(),
      rehearse: (effect) => effect,
      write: (units) =>
        Effect.gen(function* () {
          const types = [...new Set(units.map(({ root }) => root.table.type))].join()
          steps.push(`${types} begins`)
          yield* Effect.repeat(Effect.yieldNow, { times: turns })
          steps.push(`${types} ends`)
          return { written: new Map(), present: 0, erased: [] }
        })
    })
    const source = (accept: Parameters<Parameters<typeof runImport>[0]>[0]) =>
      Effect.forEach(lines.map(unitOf), accept, { discard: true })
    yield* Effect.provideService(
      runImport(source, { dryRun: false, onProgress: () => Effect.void }),
      Importing,
      importing
    )
    return steps
  })
  const range = (count: number, lineOf: (index: number) => Line) => Array.from({ length: count }, (_, n) => lineOf(n))
  const batch = 1_000
  const licenses = (count: number) => range(count, (index) => license(`lic_${index}`, {}))

  it.effect("with licenses waits until used event ids and used trials are committed", () =>
    Effect.gen(function* () {
      for (const type of ["used_event_id", "public_trial"]) {
        const used = range(batch, () => ({ type }))
        assert.deepStrictEqual(yield* stepsOf([...used, ...licenses(1)]), [
          ...[`${type} begins`, `${type} ends`, "license begins", "license ends"]
        ])
        // The first batch has both.
        assert.deepStrictEqual(yield* stepsOf([{ type }, ...licenses(batch)]), [
          ...[`${type},license begins`, `${type},license ends`, "license begins", "license ends"]
        ])
      }
    })
  )

  it.effect("does not wait for one of the same kind", () =>
    Effect.gen(function* () {
      const used = range(batch + 1, () => ({ type: "used_event_id" }))
      for (const lines of [used, licenses(batch + 1)]) {
        const type = lines[0]!.type
        const [begin, end] = [`${type} begins`, `${type} ends`]
        assert.deepStrictEqual(yield* stepsOf(lines), [begin, begin, end, end])
      }
    })
  )
})

const layerImporting = Importing.layer.pipe(Layer.provide(EventLog.layer), Layer.provideMerge(Database.layer))

layer(layerImporting)("A batch whose connection is lost", (it) => {
  it.effect("while it is written is written once", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { write } = yield* Importing
      // A sequence counts attempts that are rolled back, too.
      yield* sql`CREATE SEQUENCE attempts`
      yield* sql`CREATE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
        IF nextval('attempts') <= 2 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN NULL; END$$`
      yield* sql`CREATE TRIGGER leave AFTER INSERT ON customers FOR EACH STATEMENT EXECUTE FUNCTION leave()`
      const result = yield* write([unitOf(customer("cust_1"))])
      yield* sql`DROP TRIGGER leave ON customers`
      assert.deepStrictEqual([[...result.written], result.present], [[["customer", 1]], 0])
      assert.deepStrictEqual(yield* sql`SELECT last_value::int AS last FROM attempts`, [{ last: 3 }])
      assert.deepStrictEqual(yield* sql`SELECT count(*)::int FROM customers`, [{ count: 1 }])
      assert.deepStrictEqual(yield* sql`SELECT count(*)::int FROM event_log WHERE resource_id = 'cust_1'`, [
        { count: 1 }
      ])
    })
  )

  it.effect("before the answer to its COMMIT is reported as what it has written", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* (yield* Importing).write([product("prod_1"), policy("pol_1", "prod_1"), customer("cust_2")].map(unitOf))
      yield* sql`UPDATE customers SET erased_at = now() WHERE id = 'cust_2'`
      let commits = 0
      const cause = new Error("lost")
      const lost = new SqlError.SqlError({ reason: new SqlError.ConnectionError({ cause, operation: "commit" }) })
      const withTransaction: SqlClient.SqlClient["withTransaction"] = (effect) =>
        Effect.tap(sql.withTransaction(effect), () => (++commits <= 2 ? Effect.fail(lost) : Effect.void))
      const losing = new Proxy(sql, {
        get: (target, name) => (name === "withTransaction" ? withTransaction : Reflect.get(target, name))
      })
      const services = yield* Layer.build(
        Layer.fresh(Importing.layer).pipe(Layer.provide(Layer.succeed(SqlClient.SqlClient, losing)))
      )
      const links = { product_id: "prod_1", policy_id: "pol_1", customer_id: "cust_2", customer_name: "Zdenka Quist" }
      const units = [unitOf(customer("cust_2")), unitOf(license("lic_1", links))]
      const write = Effect.flatMap(Importing, ({ write }) => write(units)).pipe(Effect.provide(services))
      const result = yield* write
      assert.strictEqual(commits, 3)
      assert.deepStrictEqual([[...result.written], result.present], [[["license", 1]], 1])
      assert.strictEqual(result.erased.length, 1)
      assert.deepStrictEqual(yield* sql`SELECT count(*)::int FROM event_log WHERE resource_id = 'lic_1'`, [
        { count: 1 }
      ])
      const again = yield* write
      assert.deepStrictEqual([[...again.written], again.present, again.erased], [[], 2, []])
    }).pipe(Effect.scoped, Effect.provide(EventLog.layer))
  )
})
