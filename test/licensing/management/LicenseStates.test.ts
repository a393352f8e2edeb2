/**
 * The table that finds licenses by their state matches the licenses after every writer; the indexes of licenses contain
 * no state.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import type { Code } from "../../../src/contract/api/ErrorCode.ts"
import { renew } from "../../../src/licensing/changes/Renewal.ts"
import type { Rule } from "../../../src/licensing/rules/LicenseCommand.ts"
import { reinstate, suspend } from "../../../src/licensing/rules/Lifecycle.ts"
import { Database, recordSetting } from "../../support/database/Database.ts"
import { fromNoon, leap, makeNode, makeSweeps, twoNodes } from "../../support/database/LicenseNodes.ts"
import { storeMany, storeRows } from "../../support/database/StoredLicenses.ts"
import { rows as anyRows } from "../../support/rules/LicenseArbitraries.ts"
import { day, noon, type Rows } from "../../support/rules/Licenses.ts"

/** Rows that only one of the two has: the table, and the states computed from the licenses. */
const differences = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* sql`
    WITH derived AS (
      SELECT status, created_at, id AS license_id, policy_id, expires_at,
        CASE WHEN status = 'active' AND expires_at IS NOT NULL
          THEN CASE WHEN expiring_for = expires_at THEN expiring_days + (expiring_days >= 8)::int ELSE 8 END END AS notice
      FROM licenses
    )
    (SELECT * FROM derived EXCEPT ALL SELECT * FROM license_states)
    UNION ALL (SELECT * FROM license_states EXCEPT ALL SELECT * FROM derived)`
})

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })("license states", (it) => {
  it.effect("follow sweeps, for all licenses and times", () =>
    fromNoon(
      Effect.gen(function* () {
        const sweeps = yield* makeSweeps
        yield* storeRows("states", fc.sample(anyRows, { numRuns: 150, seed: 16 }) as ReadonlyArray<Rows>)
        assert.deepStrictEqual(yield* differences, [])
        for (const elapsed of [0, day, 7 * day, 30 * day, 400 * day]) {
          yield* TestClock.setTime(noon + elapsed)
          for (const sweep of Object.values(sweeps)) yield* sweep
          assert.deepStrictEqual(yield* differences, [], `after ${elapsed}`)
        }
      })
    )
  )

  it.effect("follow commands and manual statements", () =>
    fromNoon(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { nodes, sweeps } = yield* twoNodes
        const [first, second, third, fourth] = yield* storeMany(4, { license: { expires_at: noon + 3 * day } })
        yield* sweeps[0].expiry
        yield* nodes[0].ask(first!.license, suspend, {})
        yield* nodes[1].ask(second!.license, renew, { extend_by_days: 30 })
        yield* leap(20 * day)
        yield* sweeps[1].expiry
        assert.deepStrictEqual(yield* differences, [])
        yield* sql`UPDATE licenses SET expires_at = NULL, status = 'active' WHERE id = ${third!.license}`
        yield* sql`UPDATE licenses SET created_at = created_at + interval '1 microsecond'`
        assert.deepStrictEqual(yield* differences, [])
        yield* sql`DELETE FROM licenses WHERE id = ${fourth!.license}`
        assert.deepStrictEqual(yield* differences, [])
      })
    )
  )

  it.effect("follow groups of many changes, whose rows one statement writes", () =>
    fromNoon(
      Effect.gen(function* () {
        const { ask } = yield* makeNode
        const licenses = yield* storeMany(40, { license: { expires_at: noon + 3 * day } })
        const askAll = <Command, Result>(rule: Rule<Command, Result, Code>, command: Command) =>
          Effect.gen(function* () {
            const kept = yield* recordSetting("licensing.states_kept", "UPDATE ON license_states")
            yield* Effect.forEach(licenses, ({ license }) => ask(license, rule, command), { concurrency: "unbounded" })
            assert.include(yield* kept, "on", rule.name)
            assert.deepStrictEqual(yield* differences, [], rule.name)
          })
        yield* askAll(suspend, {})
        yield* askAll(renew, { extend_by_days: 30 })
        yield* askAll(reinstate, {})
      })
    )
  )

  it.effect("need no index of licenses that contains a column changed by use or time", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const changing =
        /\b(status|expiring_for|expiring_days|revision|entitlement_counter|active_device_count|times_activated|total_consumptions|updated_at)\b/
      const indexes = yield* sql<{ indexdef: string }>`SELECT indexdef FROM pg_indexes WHERE tablename = 'licenses'`
      assert.isAbove(indexes.length, 5)
      assert.deepStrictEqual(
        indexes.filter(({ indexdef }) => changing.test(indexdef)),
        []
      )
    })
  )
})
