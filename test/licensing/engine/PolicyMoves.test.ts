/** Commands that wait behind a move or a new limit of the same license are decided on what holds after it. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { changePolicy } from "../../../src/licensing/changes/PolicyChange.ts"
import { update } from "../../../src/licensing/changes/Update.ts"
import { Journal } from "../../../src/licensing/engine/Journal.ts"
import { LicenseActors } from "../../../src/licensing/engine/LicenseActors.ts"
import { LicenseLookups } from "../../../src/licensing/lookups/LicenseLookups.ts"
import { LicenseStore } from "../../../src/licensing/lookups/LicenseStore.ts"
import { activate, validate } from "../../../src/licensing/rules/Activation.ts"
import { openSession } from "../../../src/platform/postgres/driver/Postgres.ts"
import { Database, untilBlocked } from "../../support/database/Database.ts"
import { makeNode } from "../../support/database/LicenseNodes.ts"
import { makeLicense, requestOf, type StoredLicense, stored } from "../../support/database/StoredLicenses.ts"
import { container } from "../../support/rules/Licenses.ts"

const podOf = (license: StoredLicense, name: string) => ({ ...requestOf(license, name), binding: container(name) })

/** A license with more containers than are loaded with it, and a policy that allows one. */
const makeCrowded = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const license = yield* makeLicense({ max_activations: 0 })
  const target = `${license.policy}_strict`
  yield* sql`
    INSERT INTO policies SELECT (jsonb_populate_record(p, jsonb_build_object('id', ${target}::text, 'code', 'strict',
      'max_container_instances', 1, 'entitlement_counter', 4, 'revision', 77))).* FROM policies p WHERE id = ${license.policy}`
  yield* sql`
    INSERT INTO devices (id, license_id, binding_kind, binding_key, is_vm, is_container, status, holds_slot, activated_at,
      first_seen_at, last_seen_at, metadata, created_at, updated_at)
    SELECT ${license.license} || '_' || n, ${license.license}, 'container', 'pod ' || n, false, true, 'active', true, at, at, at,
      '{}', at, at FROM generate_series(1, 70) AS n, LATERAL (SELECT timestamptz '1970-01-01Z' AS at) AS made`
  yield* sql`UPDATE licenses SET active_device_count = 70, revision = revision + 1 WHERE id = ${license.license}`
  return { ...license, target }
})

/** A node on which `edit` is committed right after it has read the policy that a license moves to, the first time. */
const nodeWith = (edit: Effect.Effect<unknown, unknown, SqlClient.SqlClient>) => {
  let reads = 0
  const edited = Layer.effect(
    LicenseLookups,
    Effect.gen(function* () {
      const real = yield* LicenseLookups
      const context = yield* Effect.context<SqlClient.SqlClient>()
      const editOnce = Effect.suspend(() =>
        ++reads > 1 ? Effect.void : Effect.orDie(Effect.provideContext(edit, context))
      )
      return LicenseLookups.of({ ...real, targetPolicy: (id) => Effect.tap(real.targetPolicy(id), () => editOnce) })
    })
  ).pipe(Layer.provide(LicenseLookups.layer))
  const layerNode = LicenseActors.layer.pipe(
    Layer.provide(Journal.layer),
    Layer.provide([LicenseStore.layer, edited, EventLog.layer])
  )
  return Effect.map(Layer.build(Layer.fresh(layerNode)), (node) => ({
    node: Context.get(node, LicenseActors),
    reads: () => reads
  }))
}

layer(Database.layer, { timeout: 60_000 })("A move whose target is edited meanwhile", (it) => {
  it.effect("is decided again on the policy as it is", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const license = yield* makeCrowded
      yield* sql`
        INSERT INTO policy_features (policy_id, feature_id, enabled, max_consumptions, metadata, created_at, updated_at)
        SELECT ${license.target}, ${license.feature}, true, 1, '{}', created_at, created_at FROM policies WHERE id = ${license.target}`
      yield* sql`UPDATE license_features SET from_policy = true WHERE license_id = ${license.license}`
      const { node, reads } = yield* nodeWith(
        Effect.gen(function* () {
          yield* sql`UPDATE policy_features SET max_consumptions = 2 WHERE policy_id = ${license.target}`
          yield* sql`UPDATE policies SET revision = 78 WHERE id = ${license.target}`
        })
      )
      const { assignments } = yield* node.ask(license.license, changePolicy, { policy_id: license.target })
      assert.deepStrictEqual([reads(), assignments[0]?.max_consumptions], [2, 2])
      const [row] = yield* sql<{ max_consumptions: number; from_policy: boolean }>`
        SELECT max_consumptions, from_policy FROM license_features WHERE license_id = ${license.license}`
      assert.deepStrictEqual(row, { max_consumptions: 2, from_policy: true })
    })
  )

  it.effect("is refused if the policy is deleted meanwhile", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const license = yield* makeCrowded
      const { node } = yield* nodeWith(sql`DELETE FROM policies WHERE id = ${license.target}`)
      const refused = yield* Effect.flip(node.ask(license.license, changePolicy, { policy_id: license.target }))
      assert.deepInclude(refused, { code: "NOT_FOUND", detail: "policy_id" })
    })
  )
})

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })("A move whose target is being edited", (it) => {
  it.effect("waits for the edit, and is decided again on what it has changed", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const node = yield* makeNode
      const license = yield* makeCrowded
      const { values } = yield* openSession((yield* Database).url)
      yield* values("BEGIN")
      yield* values(`UPDATE policies SET license_type = 'subscription', revision = 78 WHERE id = '${license.target}'`)
      // As an edit locks it: the deletion of a policy must see the licenses that move to it.
      yield* values(`SELECT FROM policies WHERE id = '${license.target}' FOR UPDATE`)
      const moved = yield* Effect.forkChild(
        Effect.flip(node.ask(license.license, changePolicy, { policy_id: license.target })),
        { startImmediately: true }
      )
      yield* untilBlocked
      yield* values("COMMIT")
      // A subscription needs an expiry, and the license has none.
      assert.deepInclude(yield* Fiber.join(moved), { code: "VALIDATION_ERROR", detail: "expires_at" })
      const [row] = yield* sql<{ policy_id: string }>`SELECT policy_id FROM licenses WHERE id = ${license.license}`
      assert.strictEqual(row?.policy_id, license.policy)
    })
  )
})

layer(Database.layer, { timeout: 60_000 })("A command behind a change of the same license", (it) => {
  it.effect("finds the limits of the new policy, for devices that are not cached, too", () =>
    Effect.gen(function* () {
      const node = yield* makeNode
      const license = yield* makeCrowded
      yield* node.ask(license.license, activate, podOf(license, "before"))
      const [moved, refused] = yield* Effect.all(
        [
          node.ask(license.license, changePolicy, { policy_id: license.target }),
          Effect.flip(node.ask(license.license, activate, podOf(license, "after")))
        ],
        { concurrency: "unbounded" }
      )
      assert.strictEqual(moved.policy.id, license.target)
      assert.strictEqual(refused.code, "CONTAINER_LIMIT_REACHED")
      // The published version is the sum of both counters: it was 1 and is 2.
      assert.strictEqual((yield* stored(license.license)).version, -2)
      const { entitlement_version, policy_id } = yield* node.ask(license.license, validate, podOf(license, "before"))
      assert.deepStrictEqual([entitlement_version, policy_id], [2, license.target])
    })
  )

  it.effect("finds a limit that was set on the license", () =>
    Effect.gen(function* () {
      const node = yield* makeNode
      const license = yield* makeCrowded
      const pod = (name: string) => node.ask(license.license, activate, podOf(license, name))
      const limited = (max_container_instances: number | null) =>
        node.ask(license.license, update, { max_container_instances })
      const [, refused] = yield* Effect.all([limited(70), Effect.flip(pod("one"))], { concurrency: "unbounded" })
      assert.strictEqual(refused.code, "CONTAINER_LIMIT_REACHED")
      yield* Effect.all([limited(71), pod("two")], { concurrency: "unbounded" })
      yield* Effect.all([limited(null), pod("three")], { concurrency: "unbounded" })
    })
  )
})
