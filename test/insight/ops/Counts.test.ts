import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { TestClock } from "effect/testing"
import { clockChanges, currentNumbers, OpsCounts, storedCounts } from "../../../src/insight/ops/Counts.ts"
import { instant } from "../../../src/platform/postgres/driver/Parameters.ts"
import { Policies } from "../../../src/vendor/policies/Policies.ts"
import { Products } from "../../../src/vendor/products/Products.ts"
import { Foundations, insertLicense, makePolicy } from "../../support/database/Services.ts"
import { fillDevices, makeCustomer } from "../../support/database/StoredLicenses.ts"

const Counted = Layer.mergeAll(OpsCounts.layer, Policies.layer).pipe(
  Layer.provideMerge(Products.layer),
  Layer.provideMerge(Foundations)
)

const statuses = ["active", "suspended", "expired", "revoked", "grace_period"] as const

/** What each table contains. */
const stored = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ name: string; count: number }>`
    SELECT 'licenses.' || status AS name, count(*) AS count FROM licenses GROUP BY status
    UNION ALL SELECT 'devices.' || status, count(*) FROM devices GROUP BY status
    UNION ALL SELECT 'products', count(*) FROM products
    UNION ALL SELECT 'customers', count(*) FROM customers`
  return Object.fromEntries(rows.map(({ name, count }) => [name, count]))
})

const countsByName = Effect.map(
  Effect.flatMap(OpsCounts, ({ read }) => read),
  ({ rows }) => Object.fromEntries(rows)
)

layer(Counted)("Counts", (it) => {
  it.effect("are those of the worker's last pass, or the reader's own if that pass is too old", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { count } = yield* OpsCounts
      const policy = yield* makePolicy()
      const ids = yield* Effect.forEach(Array.from({ length: 30 }), (_, index) =>
        insertLicense({ product_id: policy.product_id, policy_id: policy.id, status: statuses[index % 5]! })
      )
      yield* makeCustomer("cust_counted")
      yield* fillDevices({ license: ids[0]!, keyHash: "" }, 25)
      // No pass has run: the first reader counts, and concurrent readers wait for it.
      const first = yield* stored
      assert.deepStrictEqual(yield* Effect.all([countsByName, countsByName, countsByName], { concurrency: 3 }), [
        first,
        first,
        first
      ])
      assert.deepInclude(first, { "licenses.revoked": 6, "devices.reset": 5, products: 1, customers: 1 })

      yield* sql`UPDATE licenses SET status = 'revoked' WHERE id < ${ids[15]!}`
      yield* sql`DELETE FROM licenses WHERE id > ${ids[25]!}`
      yield* sql`UPDATE devices SET status = 'active' WHERE status = 'expired'`
      assert.deepStrictEqual(yield* countsByName, first)
      yield* count
      const second = yield* stored
      assert.notDeepEqual(second, first)
      assert.deepStrictEqual(yield* countsByName, second)

      yield* sql`DELETE FROM licenses WHERE id > ${ids[20]!}`
      yield* TestClock.adjust("179 seconds")
      assert.deepStrictEqual(yield* countsByName, second)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* countsByName, yield* stored)
    })
  )

  it.effect("are counted once for concurrent readers", () =>
    Effect.gen(function* () {
      const { read } = yield* OpsCounts
      yield* TestClock.adjust("3 minutes")
      const [first, ...others] = yield* Effect.all([read, read, read, read], { concurrency: 4 })
      for (const { rows } of others) assert.strictEqual(rows, first.rows)
    })
  )

  it.effect("follow the clock, not the sweep", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { count, read } = yield* OpsCounts
      yield* sql`DELETE FROM devices`
      yield* sql`DELETE FROM licenses`
      const policy = yield* makePolicy()
      yield* sql`UPDATE policies SET grace_period_days = 2 WHERE id = ${policy.id}`
      const at = (days: number) => instant(now + days * 86_400_000)
      const now = yield* Clock.currentTimeMillis
      for (const [status, days] of [
        ["active", 1],
        ["active", 0],
        ["active", -1],
        ["active", -2],
        ["grace_period", -1],
        ["grace_period", -3],
        ["grace_period", 1],
        ["expired", -3],
        ["expired", -1],
        ["suspended", -9],
        ["revoked", -9]
      ] as const) {
        const id = yield* insertLicense({ product_id: policy.product_id, policy_id: policy.id, status })
        yield* sql`UPDATE licenses SET expires_at = ${at(days)} WHERE id = ${id}`
      }
      yield* count
      const { rows } = yield* read
      const presentedCounts = Object.fromEntries(
        statuses.map((status) => [status, rows.get(`licenses.${status}`) ?? 0])
      )
      assert.deepStrictEqual(presentedCounts, { active: 2, grace_period: 4, expired: 3, suspended: 1, revoked: 1 })
    })
  )

  it.effect("scan no table completely except the devices", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const now = yield* Clock.currentTimeMillis
      for (const statement of [...storedCounts(sql), clockChanges(sql, now), currentNumbers(sql, now)]) {
        const plan = yield* planOf(sql, statement as Statement.Fragment)
        assert.notMatch(plan, /Seq Scan on (licenses|license_states|leases|events|customers)\b/, plan)
        assert.notMatch(plan, /(?<!Only )Scan using \w+ on (devices|events|customers)\b/, plan)
      }
      assert.match(yield* planOf(sql, clockChanges(sql, now)), /license_states_clock/)
      assert.match(yield* planOf(sql, currentNumbers(sql, now)), /Index Only Scan using leases_\w+ on leases /)
    })
  )
})

const planOf = (sql: SqlClient.SqlClient, statement: Statement.Fragment) =>
  Effect.map(sql<{ "QUERY PLAN": string }>`EXPLAIN ${statement}`, (rows) =>
    rows.map((row) => row["QUERY PLAN"]).join("\n")
  )
