/** The database goes back to an earlier commit while nodes run: no node takes a lost state for the current one. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { resetUsage } from "../../../src/licensing/changes/UsageReset.ts"
import { check } from "../../../src/licensing/rules/Activation.ts"
import { suspend } from "../../../src/licensing/rules/Lifecycle.ts"
import { Database } from "../../support/database/Database.ts"
import { makeNode } from "../../support/database/LicenseNodes.ts"
import { makeLicense, requestOf } from "../../support/database/StoredLicenses.ts"

const credit = (add_credits: number) => ({ feature_code: "export", add_credits })

/** Sets the license back to its state before the first commit, as a standby that has not received it. */
const loseAllCommits = Effect.fnUntraced(function* (license: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql.withTransaction(
    Effect.all([
      sql`UPDATE licenses SET revision = 1, status = 'active', entitlement_counter = 1 WHERE id = ${license}`,
      sql`UPDATE license_features SET max_consumptions = 10 WHERE license_id = ${license}`,
      sql`DELETE FROM usage_ledger WHERE license_id = ${license}`,
      sql`DELETE FROM event_log WHERE resource_id = ${license}`
    ])
  )
})

layer(Database.layer, { timeout: 60_000 })("after a failover to a standby that lags", (it) => {
  it.effect("a change is decided on the database's state, after as many commits as were lost", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* makeNode, yield* makeNode]
      const { license } = yield* makeLicense({ max_consumptions: 10 })
      assert.strictEqual((yield* one.ask(license, resetUsage, credit(5))).max_consumptions, 15)
      yield* loseAllCommits(license)
      assert.strictEqual((yield* other.ask(license, resetUsage, credit(100))).max_consumptions, 110)
      assert.strictEqual((yield* one.ask(license, resetUsage, credit(1))).max_consumptions, 111)
    })
  )

  it.effect("an answer that changes nothing is confirmed by what the database has", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* makeNode, yield* makeNode]
      const license = yield* makeLicense({ max_consumptions: 10 })
      yield* one.ask(license.license, suspend, {})
      const suspended = yield* Effect.flip(one.ask(license.license, check, requestOf(license, "m")))
      yield* loseAllCommits(license.license)
      yield* other.ask(license.license, resetUsage, credit(1))
      const active = yield* Effect.flip(one.ask(license.license, check, requestOf(license, "m")))
      assert.deepStrictEqual([suspended.code, active.code], ["LICENSE_SUSPENDED", "DEVICE_NOT_FOUND"])
    })
  )
})
