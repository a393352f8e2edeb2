/** The management commands through actors on a real database: two nodes, very many devices, and concurrent commands. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Result } from "effect"
import { SqlClient } from "effect/sql"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { rotateKey } from "../../../src/licensing/changes/KeyRotation.ts"
import { renew } from "../../../src/licensing/changes/Renewal.ts"
import { transfer } from "../../../src/licensing/changes/Transfer.ts"
import { resetUsage } from "../../../src/licensing/changes/UsageReset.ts"
import { Journal } from "../../../src/licensing/engine/Journal.ts"
import { LicenseActors } from "../../../src/licensing/engine/LicenseActors.ts"
import { LicenseLookups } from "../../../src/licensing/lookups/LicenseLookups.ts"
import { LicenseStore } from "../../../src/licensing/lookups/LicenseStore.ts"
import { activate, check } from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { sha256Hex } from "../../../src/platform/signing/Digest.ts"
import { Database } from "../../support/database/Database.ts"
import { makeNode } from "../../support/database/LicenseNodes.ts"
import { eventsAbout, makeCustomer, makeLicense, requestOf, stored } from "../../support/database/StoredLicenses.ts"

const each = <A, E, R>(n: number, f: (index: number) => Effect.Effect<A, E, R>) =>
  Effect.forEach(Array.from({ length: n }), (_, index) => Effect.result(f(index)), { concurrency: "unbounded" })

const succeeded = (results: ReadonlyArray<Result.Result<unknown, unknown>>) => results.filter(Result.isSuccess).length

const expires_at = Date.UTC(2030, 0)

layer(Database.layer, { timeout: 60_000 })("the management commands", (it) => {
  it.effect("a renewal is stored with its event, and the other node uses it", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* makeNode, yield* makeNode]
      const license = yield* makeLicense({ license_type: "subscription", expires_at })
      yield* one.ask(license.license, renew, { extend_by_days: 1 })
      yield* other.ask(license.license, renew, { extend_by_days: 2 })
      yield* one.ask(license.license, renew, { extend_by_days: 4 })
      const { expires_at: ends, version, status } = yield* stored(license.license)
      assert.deepStrictEqual([ends, version, status], [expires_at + 7 * 86_400_000, 4, "active"])
      const renewalEvents = yield* eventsAbout(license.license, "license.renewed")
      assert.deepStrictEqual(
        renewalEvents.map(({ metadata }) => metadata["extend_by_days"]),
        [1, 2, 4]
      )
    })
  )

  it.effect("an order and a subscription of the product are looked up for a renewal, and not stored", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const node = yield* makeNode
      const license = yield* makeLicense({ license_type: "subscription", expires_at })
      const otherProduct = yield* makeLicense()
      const [order, subscription] = [`ord_${license.license}`, `sub_${license.license}`]
      yield* sql`
        INSERT INTO subscriptions (id, product_id, external_system, external_id, status, current_period_start,
          current_period_end, cancel_at_period_end, metadata, created_at, updated_at)
        VALUES (${subscription}, ${license.product}, 's', 'e', 'active', now(), now() + interval '1 day', false, '{}', now(), now())`
      yield* sql`
        INSERT INTO orders (id, product_id, subscription_id, external_system, external_id, status, metadata, created_at, updated_at)
        VALUES (${order}, ${license.product}, ${subscription}, 's', 'e', 'paid', '{}', now(), now()),
          (${`${order}_foreign`}, ${otherProduct.product}, NULL, 's', 'f', 'paid', '{}', now(), now())`
      yield* node.ask(license.license, renew, { extend_by_days: 1, order_id: order })
      const [renewalEvents] = yield* eventsAbout(license.license, "license.renewed")
      assert.deepInclude(renewalEvents?.metadata, { order_id: order, subscription_id: subscription })
      const [row] = yield* sql`SELECT order_id, subscription_id FROM licenses WHERE id = ${license.license}`
      assert.deepStrictEqual(row, { order_id: null, subscription_id: null })
      const refusals = yield* Effect.forEach(["ord_none", `${order}_foreign`], (order_id) =>
        Effect.flip(node.ask(license.license, renew, { extend_by_days: 1, order_id }))
      )
      assert.deepStrictEqual(
        refusals.map(({ code, detail }) => [code, detail]),
        [
          ["NOT_FOUND", "order_id"],
          ["LINKAGE_MISMATCH", "order_id"]
        ]
      )
    })
  )

  it.effect("concurrent transfers on two nodes never exceed the policy's limit", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const nodes = [yield* makeNode, yield* makeNode]
      const license = yield* makeLicense()
      yield* sql`UPDATE policies SET max_transfers = 5, revision = revision + 1 WHERE id = ${license.policy}`
      const results = yield* each(12, (index) =>
        nodes[index % 2]!.ask(license.license, transfer, { customer_name: `Owner ${index}` })
      )
      assert.strictEqual(succeeded(results), 5)
      const { transferred, version } = yield* stored(license.license)
      assert.deepStrictEqual([transferred, version], [5, 6])
      assert.lengthOf(yield* eventsAbout(license.license, "license.transferred"), 5)
    })
  )

  it.effect("a transfer stores the owner, clears the requested data, and refuses an unknown customer", () =>
    Effect.gen(function* () {
      const node = yield* makeNode
      const license = yield* makeLicense()
      yield* makeCustomer("cust_a")
      yield* node.ask(license.license, transfer, { customer_id: "cust_a", customer_name: "Ada" })
      assert.deepInclude(yield* stored(license.license), {
        customer_id: "cust_a",
        customer_name: "Ada",
        transferred: 1
      })
      const { code, detail } = yield* Effect.flip(node.ask(license.license, transfer, { customer_id: "cust_none" }))
      assert.deepStrictEqual([code, detail], ["NOT_FOUND", "customer_id"])
      yield* node.ask(license.license, transfer, { customer_id: "" })
      assert.deepInclude(yield* stored(license.license), { customer_id: null, customer_name: "Ada", transferred: 2 })
    })
  )

  it.effect("a customer that is deleted between look-up and commit is not found", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const license = yield* makeLicense()
      yield* makeCustomer("cust_fleeting")
      const deletedCustomer = Layer.effect(
        LicenseLookups,
        Effect.map(LicenseLookups, (lookups) => ({
          ...lookups,
          link: (kind: "customer" | "order" | "subscription", id: string) =>
            Effect.tap(lookups.link(kind, id), () => Effect.orDie(sql`DELETE FROM customers WHERE id = ${id}`))
        }))
      ).pipe(Layer.provide(LicenseLookups.layer))
      const node = yield* Layer.build(
        Layer.fresh(
          LicenseActors.layer.pipe(
            Layer.provide(Journal.layer),
            Layer.provide([LicenseStore.layer, deletedCustomer, EventLog.layer])
          )
        )
      )
      const sendCommand = Context.get(node, LicenseActors).ask(license.license, transfer, {
        customer_id: "cust_fleeting"
      })
      const { code, detail } = yield* Effect.flip(sendCommand)
      assert.deepStrictEqual([code, detail], ["NOT_FOUND", "customer_id"])
      assert.deepInclude(yield* stored(license.license), { transferred: 0, revision: 1 })
    })
  )

  it.effect("usage is consumed, topped up and reset concurrently on two nodes, and the ledger adds up", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const nodes = [yield* makeNode, yield* makeNode]
      const license = yield* makeLicense({ max_consumptions: 10 })
      yield* nodes[0]!.ask(license.license, activate, requestOf(license, "m"))
      const sendCommand = (index: number): Effect.Effect<unknown, unknown> => {
        const node = nodes[index % 2]!
        if (index % 10 === 0) return node.ask(license.license, resetUsage, { feature_code: "export", add_credits: 3 })
        if (index % 10 === 5)
          return node.ask(license.license, resetUsage, { feature_id: license.feature, reset_consumed: true })
        const use = { feature_code: "export", event_id: `e${index}`, amount: 1 }
        return node.ask(license.license, consume, { ...requestOf(license, "m"), ...use })
      }
      const answers = yield* each(90, sendCommand)
      const [row] = yield* sql<{
        assigned: number
        max: number
        balance: number
        used: number
        topped: number
        ledger: number
      }>`
        SELECT a.total_consumptions AS assigned, a.max_consumptions AS max,
          sum(amount) FILTER (WHERE action IN ('consume', 'reset'))::bigint AS balance,
          sum(amount) FILTER (WHERE action = 'consume')::bigint AS used,
          sum(amount) FILTER (WHERE action = 'top_up')::bigint AS topped,
          (array_agg(balance_after ORDER BY sequence DESC))[1] AS ledger
        FROM license_features a JOIN usage_ledger u USING (license_id) WHERE license_id = ${license.license}
        GROUP BY a.total_consumptions, a.max_consumptions`
      assert.strictEqual(row!.assigned, row!.balance)
      assert.strictEqual(row!.assigned, row!.ledger)
      assert.deepStrictEqual([row!.max, row!.topped], [37, 27])
      assert.strictEqual((yield* stored(license.license)).total, row!.used)
      assert.strictEqual(succeeded(answers), 18 + row!.used)
    })
  )

  it.effect("a rotated key ends on every node immediately, and the new one is valid", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* makeNode, yield* makeNode]
      const sql = yield* SqlClient.SqlClient
      const license = yield* makeLicense()
      const old = requestOf(license, "m")
      yield* one.ask(license.license, activate, old)
      yield* other.ask(license.license, check, old)
      const key_hash = sha256Hex("a new key")
      yield* other.ask(license.license, rotateKey, {
        key_hash,
        license_key_prefix: "LK-NEW00",
        license_key_last4: "0NEW"
      })
      for (const node of [one, other]) {
        assert.strictEqual((yield* Effect.flip(node.ask(license.license, check, old))).code, "LICENSE_KEY_INVALID")
        yield* node.ask(license.license, check, { ...old, keyHash: key_hash })
      }
      const [row] = yield* sql`
        SELECT encode(key_hash, 'hex') AS key_hash, license_key_prefix, license_key_last4 FROM licenses WHERE id = ${license.license}`
      assert.deepStrictEqual(row, { key_hash, license_key_prefix: "LK-NEW00", license_key_last4: "0NEW" })
    })
  )
})
