/** Changes of many licenses under their locks, as a bulk job makes them if requests change its licenses meanwhile. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { actions } from "../../../src/licensing/bulk/Actions.ts"
import { makeManyDecisions } from "../../../src/licensing/bulk/Decisions.ts"
import { LicenseLookups } from "../../../src/licensing/lookups/LicenseLookups.ts"
import { LicenseStore } from "../../../src/licensing/lookups/LicenseStore.ts"
import { columns } from "../../../src/platform/postgres/driver/Parameters.ts"
import { openSession } from "../../../src/platform/postgres/driver/Postgres.ts"
import { isConcurrentChange } from "../../../src/platform/postgres/queries/Sql.ts"
import { Database } from "../../support/database/Database.ts"
import { makeNode } from "../../support/database/LicenseNodes.ts"
import { makeLicense } from "../../support/database/StoredLicenses.ts"

const suspension = {
  rule: actions.suspend.rule,
  commandOf: () => ({}),
  origin: { actor_type: "api_key", actor_id: "key_1", request_id: "req_1", ip_address: undefined },
  reaches: () => true,
  isDryRun: false,
  isBare: false
} as const

const decisions = makeManyDecisions.pipe(
  Effect.provide(Layer.mergeAll(LicenseStore.layer, LicenseLookups.layer).pipe(Layer.provide(EventLog.layer)))
)

layer(Database.layer, { timeout: 60_000 })("Changes of many licenses under their locks", (it) => {
  it.effect(
    "fail all, with nothing written, if one's policy is edited before they are written, and succeed again",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { journal } = yield* makeNode
        const { decideLocked } = yield* decisions
        const editor = yield* openSession((yield* Database).url)
        const licenses = [yield* makeLicense(), yield* makeLicense(), yield* makeLicense()] as const
        const ids = licenses.map(({ license }) => license)
        const changes = Effect.map(decideLocked(ids, suspension), (all) => ({
          group: all.flatMap(({ changes }) => changes ?? []),
          statements: [sql`UPDATE products SET name = 'Other' WHERE id = ${licenses[0].product}`]
        }))
        const edited = `UPDATE policies SET revision = revision + 1 WHERE id = '${licenses[1].policy}'`
        const stored = sql`
        SELECT l.status, p.name, (SELECT count(*)::int4 FROM events e WHERE e.resource_id = l.id) AS events
        FROM licenses l JOIN products p ON p.id = l.product_id WHERE l.id = ANY(${columns.text(ids)})
        ORDER BY array_position(${columns.text(ids)}, l.id)`
        const error = yield* Effect.flip(journal.many.locked(ids, Effect.tap(changes, editor.values(edited))))
        assert.isTrue(isConcurrentChange(error))
        assert.deepStrictEqual(
          yield* stored,
          ["P", "P", "P"].map((name) => ({ status: "active", name, events: 0 }))
        )
        yield* journal.many.locked(ids, changes)
        assert.deepStrictEqual(
          yield* stored,
          ["Other", "P", "P"].map((name) => ({ status: "suspended", name, events: 1 }))
        )
      }).pipe(Effect.scoped)
  )

  it.effect("that are none leave only the other statements", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { journal } = yield* makeNode
      const { license, product } = yield* makeLicense()
      const statements = [sql`UPDATE products SET name = 'Other' WHERE id = ${product}`]
      yield* journal.many.locked([license], Effect.succeed({ group: [], statements }))
      const [row] = yield* sql`
        SELECT p.name, l.revision FROM products p JOIN licenses l ON l.product_id = p.id WHERE l.id = ${license}`
      assert.deepStrictEqual(row, { name: "Other", revision: 1 })
    })
  )
})
