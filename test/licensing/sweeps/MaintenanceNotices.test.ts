/** Notices of the end of maintenance: each once for a license and an end, from any node, and the end itself. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { renewMaintenance } from "../../../src/licensing/changes/MaintenanceRenewal.ts"
import { revoke, suspend } from "../../../src/licensing/rules/Lifecycle.ts"
import { Database } from "../../support/database/Database.ts"
import { fromNoon, leap, twoNodes } from "../../support/database/LicenseNodes.ts"
import { storeOne } from "../../support/database/StoredLicenses.ts"
import { day, noon } from "../../support/rules/Licenses.ts"

const perpetual = (days: number) => ({
  policy: { license_type: "perpetual" as const },
  license: { expires_at: undefined, maintenance_expires_at: noon + days * day }
})

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })("notices of maintenance", (it) => {
  it.effect("are given at the reminder_days and at the end, each once for an end, also when suspended", () =>
    fromNoon(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { nodes, sweeps } = yield* twoNodes
        const { license } = yield* storeOne(perpetual(10))
        const { license: gone } = yield* storeOne(perpetual(10))
        const { license: late } = yield* storeOne(perpetual(-20))
        const { license: old } = yield* storeOne(perpetual(-400))
        yield* nodes[0].ask(gone, revoke, undefined)
        yield* nodes[0].ask(license, suspend, undefined)
        const toldOf = (id: string) =>
          Effect.map(
            sql<{ told: string }>`
              SELECT event_type || coalesce(' ' || (metadata ->> 'days_before'), '') AS told FROM events
              WHERE event_type LIKE 'license.maintenance_exp%' AND resource_id = ${id} ORDER BY sequence`,
            (rows) => rows.map(({ told }) => told.replace("license.maintenance_", ""))
          )
        const passes = sweeps.map((node) => node.expiry)
        const passAfter = Effect.fnUntraced(function* (days: number) {
          yield* leap(days * day)
          yield* Effect.all([...passes, ...passes], { concurrency: "unbounded" })
          return yield* toldOf(license)
        })
        assert.deepStrictEqual(yield* passAfter(2), [])
        assert.deepStrictEqual(yield* toldOf(late), ["expired"])
        assert.deepStrictEqual(yield* toldOf(old), [])
        assert.deepStrictEqual(yield* passAfter(1), ["expiring 7"])
        assert.deepStrictEqual(yield* passAfter(6), ["expiring 7", "expiring 1"])
        const ended = ["expiring 7", "expiring 1", "expired"]
        assert.deepStrictEqual(yield* passAfter(1), ended)
        assert.deepStrictEqual(yield* passAfter(2), ended)
        yield* nodes[1].ask(license, renewMaintenance, { extend_by_days: 8 })
        assert.deepStrictEqual(yield* passAfter(5), [...ended, "expiring 3"])
        assert.deepStrictEqual(yield* toldOf(gone), [])
        assert.deepStrictEqual(yield* toldOf(late), ["expired"])
      })
    )
  )
})
