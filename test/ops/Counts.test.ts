import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { Policies } from "../../src/catalog/policies/Policies.ts"
import { Products } from "../../src/catalog/products/Products.ts"
import { keptCounts, movedByClock, OpsCounts, otherNumbers } from "../../src/ops/Counts.ts"
import { instant } from "../../src/postgres/Parameters.ts"
import { Foundations, insertLicense, makePolicy } from "../support/Services.ts"

const Counted = Layer.mergeAll(OpsCounts.layer, Policies.layer).pipe(
  Layer.provideMerge(Products.layer),
  Layer.provideMerge(Foundations)
)

const statuses = ["active", "suspended", "expired", "revoked", "grace_period"] as const

/** What counting row by row gives. */
const counted = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ name: string; count: number }>`
    SELECT 'licenses.' || status AS name, count(*) AS count FROM licenses GROUP BY status
    UNION ALL SELECT 'products', count(*) FROM products`
  return Object.fromEntries(rows.map(({ name, count }) => [name, count]))
})

const known = Effect.map(
  Effect.flatMap(OpsCounts, ({ read }) => read),
  ({ kept }) => Object.fromEntries([...kept].filter(([, count]) => count !== 0))
)

layer(Counted)("Kept counts", (it) => {
  it.effect("are what counting gives, whatever happened to the rows, folded or not", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { fold } = yield* OpsCounts
      const policy = yield* makePolicy()
      const ids = yield* Effect.forEach(Array.from({ length: 300 }), (_, index) =>
        insertLicense({ product_id: policy.product_id, policy_id: policy.id, status: statuses[index % 5]! })
      )
      assert.deepStrictEqual(yield* known, yield* counted)
      yield* sql`UPDATE licenses SET status = 'revoked' WHERE id < ${ids[50]!}`
      yield* sql`DELETE FROM licenses WHERE id > ${ids[290]!}`
      const now = yield* counted
      assert.deepStrictEqual(yield* known, now)
      yield* Effect.all([fold, fold, fold], { concurrency: "unbounded" })
      const [rows] = yield* sql<{ count: number }>`SELECT count(*) AS count FROM kept_counts`
      assert.isBelow(rows!.count, 16)
      assert.deepStrictEqual(yield* known, now)
      // A change that is rolled back leaves nothing.
      yield* Effect.ignore(
        sql.withTransaction(Effect.andThen(sql`UPDATE licenses SET status = 'expired'`, Effect.fail("no")))
      )
      assert.deepStrictEqual(yield* known, now)
    })
  )

  it.effect("follow the clock, not the sweep", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { read } = yield* OpsCounts
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
      const { kept } = yield* read
      const shown = Object.fromEntries(statuses.map((status) => [status, kept.get(`licenses.${status}`) ?? 0]))
      assert.deepStrictEqual(shown, { active: 2, grace_period: 4, expired: 3, suspended: 1, revoked: 1 })
    })
  )

  it.effect("read no table of licenses or devices from end to end", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const now = yield* Clock.currentTimeMillis
      for (const statement of [keptCounts(sql), movedByClock(sql, now), otherNumbers(sql, now)]) {
        const plan = yield* planOf(sql, statement as Statement.Fragment)
        assert.notMatch(plan, /Seq Scan on (licenses|license_states|devices|leases|events|customers)\b/, plan)
        assert.notMatch(plan, /(?<!Only )Scan using \w+ on (devices|events|customers)\b/, plan)
      }
      assert.match(yield* planOf(sql, movedByClock(sql, now)), /license_states_clock/)
      assert.match(yield* planOf(sql, otherNumbers(sql, now)), /Index Only Scan using leases_\w+ on leases /)
    })
  )
})

const planOf = (sql: SqlClient.SqlClient, statement: Statement.Fragment) =>
  Effect.map(sql<{ "QUERY PLAN": string }>`EXPLAIN ${statement}`, (rows) =>
    rows.map((row) => row["QUERY PLAN"]).join("\n")
  )
