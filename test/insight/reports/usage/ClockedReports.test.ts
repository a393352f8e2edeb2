/** Reports apply the clock as the other reads do: the same before and after a sweep has written what has lapsed. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { customerSummary } from "../../../../src/insight/reports/usage/CustomerSummary.ts"
import { licenseAudit } from "../../../../src/insight/reports/usage/LicenseAudit.ts"
import { activate } from "../../../../src/licensing/rules/Activation.ts"
import { checkout } from "../../../../src/licensing/rules/Floating.ts"
import { instant } from "../../../../src/platform/postgres/driver/Parameters.ts"
import { Database } from "../../../support/database/Database.ts"
import { fromNoon, makeNode, makeSweeps } from "../../../support/database/LicenseNodes.ts"
import { checkoutOf, makeCustomer, requestOf, storeOne } from "../../../support/database/StoredLicenses.ts"
import { minute, noon } from "../../../support/rules/Licenses.ts"

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })("a report", (it) => {
  it.effect("counts no device and no lease that has lapsed, before and after the sweeps", () =>
    fromNoon(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { ask } = yield* makeNode
        const sweeps = yield* makeSweeps
        yield* makeCustomer("cust_clocked")
        const policy = { require_heartbeat: true, validation_interval_minutes: 60, floating_timeout_minutes: 600 }
        const heard = { customer_id: "cust_clocked", expires_at: undefined }
        const silent = yield* storeOne({ license: heard, policy: { ...policy, license_type: "consumption" } })
        const seated = yield* storeOne({
          license: { ...heard, expires_at: noon + 90 * minute },
          policy: { ...policy, require_heartbeat: false, license_type: "subscription", max_floating_users: 1 }
        })
        yield* ask(silent.license, activate, requestOf(silent, "m"))
        yield* ask(seated.license, checkout, checkoutOf(seated, "s"))
        // Shorter than the lease, as an edit of the dates makes it.
        yield* sql`UPDATE licenses SET expires_at = ${instant(noon + 80 * minute)} WHERE id = ${seated.license}`
        const use = Effect.fnUntraced(function* (now: number) {
          const { active_devices, live_leases } = yield* customerSummary(sql, { customer_id: "cust_clocked" }, now, 10)
          const { license } = yield* licenseAudit(sql, { license_id: silent.license, limit: 1 }, now)
          assert.strictEqual(license.active_device_count, active_devices)
          return [active_devices, live_leases]
        })
        assert.deepStrictEqual(yield* use(noon), [1, 1])
        const later = noon + 85 * minute
        yield* TestClock.setTime(later)
        assert.deepStrictEqual(yield* use(later), [0, 0])
        yield* Effect.all([sweeps.expiry, sweeps.lease, sweeps.heartbeat])
        assert.deepStrictEqual(yield* use(later), [0, 0])
      })
    )
  )
})
