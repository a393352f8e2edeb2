/** A license is loaded in one snapshot, so that decisions on it need no second query. */
import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { LicenseLookups } from "../../../src/licensing/lookups/LicenseLookups.ts"
import { LicenseStore } from "../../../src/licensing/lookups/LicenseStore.ts"
import { activate } from "../../../src/licensing/rules/Activation.ts"
import type { CachedDevice } from "../../../src/licensing/state/CommittedState.ts"
import { Postgres } from "../../../src/platform/postgres/driver/Postgres.ts"
import { Database, untilBlockedOn } from "../../support/database/Database.ts"
import { makeNode } from "../../support/database/LicenseNodes.ts"
import { makeLicense } from "../../support/database/StoredLicenses.ts"
import { hardware } from "../../support/rules/Licenses.ts"

layer(Database.layer, { timeout: 60_000 })("the license store", (it) => {
  it.effect("loads no change made after the license's row was read", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const node = yield* makeNode
      const { keyHash, license } = yield* makeLicense()
      yield* node.ask(license, activate, { keyHash, binding: hardware("m"), newDeviceId: "dev_m" })
      const store = Context.get(yield* Layer.build(LicenseStore.layer), LicenseStore)
      const before = (yield* store.load(license))!
      const [isLocked, mayChange] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const change = Effect.gen(function* () {
        yield* sql`LOCK TABLE devices IN ACCESS EXCLUSIVE MODE`
        yield* Deferred.succeed(isLocked, undefined)
        yield* Deferred.await(mayChange)
        yield* sql`UPDATE devices SET status = 'blacklisted' WHERE id = 'dev_m'`
        yield* sql`UPDATE licenses SET revision = revision + 1 WHERE id = ${license}`
      })
      const changing = yield* Effect.forkChild(sql.withTransaction(change))
      yield* Deferred.await(isLocked)
      const loading = yield* Effect.forkChild(store.load(license))
      // The license's row has been read by now, and its devices have not.
      yield* untilBlockedOn("relation = 'devices'::regclass")
      yield* Deferred.succeed(mayChange, undefined)
      yield* Fiber.join(changing)
      const loaded = (yield* Fiber.join(loading))!
      const summaryOf = ({ devices, license: { revision } }: typeof loaded) => ({
        revision,
        devices: Array.from(devices.values(), ({ id, status }) => ({ id, status }))
      })
      assert.deepStrictEqual(summaryOf(loaded), summaryOf(before))
      const { revision } = before.license
      const after = { revision: revision + 1, devices: [{ id: "dev_m", status: "blacklisted" as const }] }
      assert.deepStrictEqual(summaryOf((yield* store.load(license))!), after)
    })
  )

  it.effect("reads within a transaction its uncommitted changes, over the transaction's own connection", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { pipelined } = yield* Postgres
      const { keyHash, license } = yield* makeLicense()
      const binding = hardware("m")
      const node = yield* makeNode
      yield* node.ask(license, activate, { keyHash, binding, newDeviceId: "dev_within" })
      const context = yield* Layer.build(Layer.mergeAll(LicenseStore.layer, LicenseLookups.layer))
      const [store, lookups] = [Context.get(context, LicenseStore), Context.get(context, LicenseLookups)]
      const statusOf = (found: { readonly devices: ReadonlyArray<CachedDevice> } | undefined) =>
        found?.devices[0]?.device.status
      const before = (yield* store.loadInTransaction(license))!.license.revision
      const seen = yield* pipelined(
        Effect.gen(function* () {
          yield* sql`UPDATE licenses SET revision = revision + 1 WHERE id = ${license}`
          yield* sql`UPDATE devices SET status = 'blacklisted' WHERE id = 'dev_within'`
          return {
            loaded: (yield* store.loadInTransaction(license))?.license.revision,
            revision: (yield* store.revisionsInTransaction(license))?.license,
            within: statusOf(yield* lookups.inTransaction.device({ licenseId: license, binding })),
            outside: statusOf(yield* lookups.device({ licenseId: license, binding }))
          }
        })
      )
      const after = { loaded: before + 1, revision: before + 1, within: "blacklisted", outside: "active" }
      assert.deepStrictEqual<object>(seen, after)
    })
  )

  it.effect(
    "loads one record of a policy for all its licenses, and another one after each change of the policy or catalog",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const [first, second] = [yield* makeLicense(), yield* makeLicense()]
        yield* sql`UPDATE licenses SET product_id = ${first.product}, policy_id = ${first.policy} WHERE id = ${second.license}`
        const store = Context.get(yield* Layer.build(LicenseStore.layer), LicenseStore)
        const loaded = Effect.fnUntraced(function* () {
          const policy = (yield* store.load(first.license))!.policy
          assert.strictEqual((yield* store.load(second.license))!.policy, policy)
          return policy
        })
        const before = yield* loaded()
        yield* sql`UPDATE policies SET max_activations = 7, revision = revision + 1 WHERE id = ${first.policy}`
        const changed = yield* loaded()
        assert.deepStrictEqual(changed, { ...before, max_activations: 7, revision: before.revision + 1 })
        yield* sql`UPDATE products SET catalog_revision = catalog_revision + 1 WHERE id = ${first.product}`
        assert.notStrictEqual(yield* loaded(), changed)
      })
  )
})
