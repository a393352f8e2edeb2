/** A state that a clock ahead has recorded: every reader and the rules agree on what a clock behind makes of it. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { clockChanges } from "../../../src/insight/ops/Counts.ts"
import { customerSummary } from "../../../src/insight/reports/usage/CustomerSummary.ts"
import { LicenseList } from "../../../src/licensing/management/LicenseList.ts"
import { clockLagMillisMax } from "../../../src/licensing/model/ClockLag.ts"
import type { LicenseStatus } from "../../../src/licensing/model/License.ts"
import { statusAt } from "../../../src/licensing/rules/Lifecycle.ts"
import { Database } from "../../support/database/Database.ts"
import { fromNoon } from "../../support/database/LicenseNodes.ts"
import { makeCustomer, storeRows } from "../../support/database/StoredLicenses.ts"
import { day, noon, rowsOf } from "../../support/rules/Licenses.ts"

const Subject = LicenseList.layer.pipe(Layer.provideMerge(Database.layer))

const statuses = ["active", "grace_period", "expired", "suspended"] as const
const around = [-1, 0, 1].flatMap((step) => [step, clockLagMillisMax + step])
const graces = [0, 2]

/** Every stored state, with an end of the term or of the grace period around both limits. */
const rows = graces.flatMap((grace_period_days) =>
  statuses.flatMap((status) =>
    [0, grace_period_days].flatMap((days) =>
      around.map((millis) =>
        rowsOf({
          license: { status, expires_at: noon - days * day + millis, customer_id: "cust_states" },
          policy: { license_type: "time_limited", grace_period_days }
        })
      )
    )
  )
)

const expected = rows.map(({ license, policy }) => statusAt(license, policy, noon))
const countOf = (status: LicenseStatus) => expected.filter((one) => one === status).length

layer(Subject, { timeout: 60_000, excludeTestServices: true })("a state that a clock ahead has recorded", (it) => {
  it.effect("is the same in lists, filters, counts and reports", () =>
    fromNoon(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const licenses = yield* LicenseList
        yield* makeCustomer("cust_states")
        const ids = yield* storeRows("states", rows)
        const wanted = new Map(ids.map((id, index) => [id, expected[index]!]))
        const found = yield* Effect.forEach(ids, (id) => licenses.find(id))
        assert.deepStrictEqual(
          found.map((license) => license?.status),
          expected
        )
        // Whatever the days of the last reminder; 0: none was sent.
        for (const days of [0, 1, 2, 14]) {
          yield* sql`UPDATE licenses SET expiring_for = expires_at, expiring_days = ${days} WHERE ${days > 0}`
          for (const status of statuses) {
            const { items } = yield* licenses.page({ status, limit: 200 })
            assert.deepStrictEqual(
              items.map(({ id }) => id).toSorted(),
              ids.filter((id) => wanted.get(id) === status).toSorted(),
              `${status} ${days}`
            )
          }
        }
        const changes = yield* clockChanges(sql, noon)
        for (const status of statuses) {
          const before = rows.filter(({ license }) => license.status === status).length
          const moved = changes.reduce(
            (sum, { count, is, was }) => sum + (is === status ? count : 0) - (was === status ? count : 0),
            0
          )
          assert.strictEqual(before + moved, countOf(status), status)
        }
        const summary = yield* customerSummary(sql, { customer_id: "cust_states" }, noon, 10)
        assert.deepStrictEqual(
          summary.licenses.by_status,
          Object.fromEntries(statuses.toSorted().map((status) => [status, countOf(status)]))
        )
      })
    )
  )
})
