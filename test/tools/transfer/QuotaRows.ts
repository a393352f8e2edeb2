/** Values in each column of quotas, own devices and borrowed seats, for the tests of export and import. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"

/** A change to the rows of a table, which gives each of the columns a value. */
const changes: { readonly [table: string]: { readonly [column: string]: string } } = {
  policies: { self_deactivations_per_month: "4", hold_offline_slots: "true", borrow_days_max: "9" },
  policy_features: { reset_period: "'month'", reset_anchor: "'subscription'", rollover_max: "4", overage_max: "-1" },
  licenses: {
    kept_counts: `'{"feat_gone": {"total_consumptions": 3, "extra_credits": 2, "period_start": 1, "resets_at": 2}}'`,
    self_deactivations_per_month: "2",
    self_deactivated_at: "'[1893456000000]'",
    slots_held_until: "'2040-01-01Z'",
    term_began_at: "'2029-01-01Z'"
  },
  license_features: {
    reset_period: "'month'",
    reset_anchor: "'subscription'",
    rollover_max: "5",
    overage_max: "7",
    credits_used: "1",
    overage: "2",
    rolled_over: "3",
    extra_credits: "9007199254740991",
    period_anchor: "'2029-01-31T01:02:03.004Z'",
    periods_end_at: "'2041-01-31Z'",
    period_start: "'2030-01-31T01:02:03.004Z'",
    resets_at: "'2040-02-28T01:02:03.004Z'"
  },
  devices: { slot_held_until: "'2040-01-01Z'" },
  leases: { borrowed_until: "'2040-01-02Z'" }
}

export const fillQuotas = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  for (const [table, columns] of Object.entries(changes)) {
    const values = Object.entries(columns).map(([column, value]) => `${column} = ${value}`)
    yield* sql.unsafe(`UPDATE ${table} SET ${values.join(", ")}`)
  }
})

/** Each of the columns has the same values in both databases. */
export const assertQuotas = Effect.fnUntraced(function* (one: SqlClient.SqlClient, other: SqlClient.SqlClient) {
  for (const [table, columns] of Object.entries(changes))
    for (const column of Object.keys(columns)) {
      const read = (sql: SqlClient.SqlClient) =>
        sql.unsafe<{ readonly value: unknown }>(
          `SELECT to_jsonb(${column}) AS value, count(*)::int FROM ${table} GROUP BY 1 ORDER BY 1`
        )
      const values = yield* read(one)
      assert.isNotEmpty(values, `${table}.${column}`)
      for (const { value } of values) assert.isNotNull(value, `${table}.${column}`)
      assert.deepStrictEqual(yield* read(other), values, `${table}.${column}`)
    }
})
