/** The columns in the indexes of devices: none that a device's use or a seat's checkout and release change. */
import { assert, layer } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { DeviceStatus } from "../../../src/licensing/model/Device.ts"
import { listStatusOf } from "../../../src/licensing/rows/LicenseRows.ts"
import { instant } from "../../../src/platform/postgres/driver/Parameters.ts"
import { Database } from "../../support/database/Database.ts"
import { makeLicense } from "../../support/database/StoredLicenses.ts"

layer(Database.layer)("The indexes of devices", (it) => {
  it.effect("contain no status and no time of last use", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const indexes = yield* sql<{ indexdef: string }>`SELECT indexdef FROM pg_indexes WHERE tablename = 'devices'`
      assert.isAbove(indexes.length, 3)
      // A host name is in an index, because it is searched and changes seldom.
      const changing = /\b(status|last_seen_at|last_validated_at|updated_at|metadata|ip_address)\b/
      assert.deepStrictEqual(
        indexes.filter(({ indexdef }) => changing.test(indexdef)),
        []
      )
    })
  )

  it.effect("find devices by the status under which they are listed", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { license } = yield* makeLicense({})
      const now = instant(yield* Clock.currentTimeMillis)
      for (const status of DeviceStatus.literals) {
        yield* sql`
          INSERT INTO devices (id, license_id, binding_kind, binding_key, is_vm, is_container, status, holds_slot, first_seen_at,
            last_seen_at, metadata, created_at, updated_at)
          VALUES (${status}, ${license}, 'hardware', ${status}, false, false, ${status}, false, ${now}, ${now}, '{}', ${now}, ${now})`
      }
      const rows = yield* sql<{ status: DeviceStatus; listed_as: string }>`SELECT status, listed_as FROM devices`
      assert.strictEqual(rows.length, DeviceStatus.literals.length)
      for (const row of rows) assert.strictEqual(row.listed_as, listStatusOf(row.status), row.status)
    })
  )
})
