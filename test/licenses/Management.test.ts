/** The back office's commands through actors on a real database: two nodes, very many devices, and all at once. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Result } from "effect"
import { SqlClient } from "effect/sql"
import { EventLog } from "../../src/events/EventLog.ts"
import { activate, check, validate } from "../../src/licenses/Activation.ts"
import { consume } from "../../src/licenses/Consumption.ts"
import { blacklist, reset, unblacklist } from "../../src/licenses/DeviceActions.ts"
import { Journal } from "../../src/licenses/Journal.ts"
import { rotateKey } from "../../src/licenses/KeyRotation.ts"
import { LicenseActors } from "../../src/licenses/LicenseActors.ts"
import { LicenseLookups } from "../../src/licenses/LicenseLookups.ts"
import { LicenseStore } from "../../src/licenses/LicenseStore.ts"
import { renew } from "../../src/licenses/Renewal.ts"
import { transfer } from "../../src/licenses/Transfer.ts"
import { resetUsage } from "../../src/licenses/UsageReset.ts"
import { sha256Hex } from "../../src/signing/Digest.ts"
import { Database } from "../support/Database.ts"
import { hardware, makeLicense, makeNode } from "../support/Nodes.ts"

interface Made {
  readonly license: string
  readonly keyHash: string
}

const deviceIdOf = ({ keyHash }: Made, name: string) => `dev_${keyHash.slice(0, 8)}_${name}`

const requestOf = (license: Made, name: string) => ({
  keyHash: license.keyHash,
  binding: hardware(name),
  newDeviceId: deviceIdOf(license, name)
})

const stored = Effect.fnUntraced(function* (licenseId: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{
    revision: number
    status: string
    expires_at: number | null
    customer_id: string | null
    customer_name: string | null
    active: number
    transferred: number
    total: number
    version: number
  }>`
    SELECT revision, status, expires_at, customer_id, customer_name, active_device_count AS active,
      times_transferred AS transferred, total_consumptions AS total, entitlement_counter AS version
    FROM licenses WHERE id = ${licenseId}`
  return row!
})

const statuses = Effect.fnUntraced(function* (licenseId: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ status: string; count: number; slots: number }>`
    SELECT status, count(*) AS count, count(*) FILTER (WHERE holds_slot) AS slots FROM devices
    WHERE license_id = ${licenseId} GROUP BY status ORDER BY status`
  return Object.fromEntries(rows.map(({ status, count, slots }) => [status, [count, slots]]))
})

const events = Effect.fnUntraced(function* (resourceId: string, type: string) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<{ metadata: { readonly [member: string]: unknown } }>`
    SELECT metadata - 'request_id' AS metadata FROM events
    WHERE resource_id = ${resourceId} AND event_type = ${type} ORDER BY sequence`
})

const makeCustomer = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    INSERT INTO customers (id, name, code, metadata, created_at, updated_at) VALUES (${id}, 'C', ${id}, '{}', now(), now())`
})

/** Devices that no actor has seen, a fifth of them in each state. */
const fillDevices = Effect.fnUntraced(function* ({ license }: Made, count: number) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    INSERT INTO devices (id, license_id, binding_kind, binding_key, fingerprint, is_vm, is_container, status, holds_slot,
      first_seen_at, last_seen_at, metadata, created_at, updated_at)
    SELECT ${license} || '_' || n, ${license}, 'hardware', 'f' || n, 'f' || n, false, false, state, state = 'active', at, at,
      '{}', at, at
    FROM generate_series(1, ${count}::int) AS n,
      LATERAL (SELECT (ARRAY['active', 'deactivated', 'expired', 'reset', 'blacklisted'])[1 + n % 5] AS state,
        timestamptz '2026-01-01Z' + n * interval '1 second' AS at) AS made`
  yield* sql`
    UPDATE licenses SET active_device_count = ${count / 5}, revision = revision + 1 WHERE id = ${license}`
})

const each = <A, E, R>(n: number, f: (index: number) => Effect.Effect<A, E, R>) =>
  Effect.forEach(Array.from({ length: n }), (_, index) => Effect.result(f(index)), { concurrency: "unbounded" })

const succeeded = (results: ReadonlyArray<Result.Result<unknown, unknown>>) => results.filter(Result.isSuccess).length

const expires_at = new Date("2030-01-01T00:00:00Z")

layer(Database.layer, { timeout: 60_000 })("the back office's commands", (it) => {
  it.effect("a renewal is stored with its event, and the other node goes on from it", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* makeNode, yield* makeNode]
      const license = yield* makeLicense({ license_type: "subscription", expires_at })
      yield* one.ask(license.license, renew, { extend_by_days: 1 })
      yield* other.ask(license.license, renew, { extend_by_days: 2 })
      yield* one.ask(license.license, renew, { extend_by_days: 4 })
      const { expires_at: ends, version, status } = yield* stored(license.license)
      assert.deepStrictEqual([ends, version, status], [expires_at.getTime() + 7 * 86_400_000, 4, "active"])
      const told = yield* events(license.license, "license.renewed")
      assert.deepStrictEqual(
        told.map(({ metadata }) => metadata["extend_by_days"]),
        [1, 2, 4]
      )
    })
  )

  it.effect("an order and a subscription of the product are found for a renewal, and not stored", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const node = yield* makeNode
      const license = yield* makeLicense({ license_type: "subscription", expires_at })
      const foreign = yield* makeLicense()
      const [order, subscription] = [`ord_${license.license}`, `sub_${license.license}`]
      yield* sql`
        INSERT INTO subscriptions (id, product_id, external_system, external_id, status, current_period_start,
          current_period_end, cancel_at_period_end, metadata, created_at, updated_at)
        VALUES (${subscription}, ${license.product}, 's', 'e', 'active', now(), now() + interval '1 day', false, '{}', now(), now())`
      yield* sql`
        INSERT INTO orders (id, product_id, subscription_id, external_system, external_id, status, metadata, created_at, updated_at)
        VALUES (${order}, ${license.product}, ${subscription}, 's', 'e', 'paid', '{}', now(), now()),
          (${`${order}_foreign`}, ${foreign.product}, NULL, 's', 'f', 'paid', '{}', now(), now())`
      yield* node.ask(license.license, renew, { extend_by_days: 1, order_id: order })
      const [told] = yield* events(license.license, "license.renewed")
      assert.deepInclude(told?.metadata, { order_id: order, subscription_id: subscription })
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

  it.effect("transfers from two nodes at once never pass the policy's limit", () =>
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
      assert.lengthOf(yield* events(license.license, "license.transferred"), 5)
    })
  )

  it.effect("a transfer stores the owner, clears what it is asked to, and refuses an unknown customer", () =>
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
      const fleeting = Layer.effect(
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
            Layer.provide([LicenseStore.layer, fleeting, EventLog.layer])
          )
        )
      )
      const asked = Context.get(node, LicenseActors).ask(license.license, transfer, { customer_id: "cust_fleeting" })
      const { code, detail } = yield* Effect.flip(asked)
      assert.deepStrictEqual([code, detail], ["NOT_FOUND", "customer_id"])
      assert.deepInclude(yield* stored(license.license), { transferred: 0, revision: 1 })
    })
  )

  it.effect("a transfer resets thousands of devices, those in memory and those that nobody has looked at", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* makeNode, yield* makeNode]
      const license = yield* makeLicense({ max_activations: 0 })
      const bystander = yield* makeLicense()
      yield* one.ask(bystander.license, activate, requestOf(bystander, "m"))
      yield* one.ask(license.license, activate, requestOf(license, "known"))
      yield* fillDevices(license, 5000)
      const counts = {
        active: [1001, 1001],
        blacklisted: [1000, 0],
        deactivated: [1000, 0],
        expired: [1000, 0],
        reset: [1000, 0]
      }
      assert.deepStrictEqual(yield* statuses(license.license), counts)
      const { license: answered } = yield* other.ask(license.license, transfer, { reset_devices: true })
      assert.strictEqual(answered.active_device_count, 0)
      assert.deepStrictEqual(yield* statuses(license.license), { blacklisted: [1000, 0], reset: [4001, 0] })
      const { revision, ...after } = yield* stored(license.license)
      assert.deepInclude(after, { active: 0, transferred: 0 })
      yield* one.ask(license.license, transfer, { reset_devices: true })
      assert.strictEqual((yield* stored(license.license)).revision, revision)
      const told = yield* events(license.license, "license.transferred")
      assert.deepStrictEqual(
        told.map(({ metadata }) => metadata),
        [{ devices_reset: 3001 }]
      )
      const refused = yield* Effect.flip(one.ask(license.license, validate, requestOf(license, "known")))
      assert.strictEqual(refused.code, "DEVICE_NOT_ACTIVE")
      yield* one.ask(license.license, activate, requestOf(license, "f5"))
      assert.deepStrictEqual((yield* statuses(license.license))["active"], [1, 1])
      yield* one.ask(bystander.license, check, requestOf(bystander, "m"))
    })
  )

  it.effect("what is decided on a device in the same moment as a transfer, and after it, stands", () =>
    Effect.gen(function* () {
      const node = yield* makeNode
      const license = yield* makeLicense({ max_activations: 0 })
      yield* fillDevices(license, 500)
      yield* Effect.all(
        [
          node.ask(license.license, activate, requestOf(license, "f1")),
          node.ask(license.license, transfer, { reset_devices: true }),
          node.ask(license.license, activate, requestOf(license, "f2")),
          node.ask(license.license, blacklist, { device_id: `${license.license}_3` }),
          node.ask(license.license, transfer, { reset_devices: true }),
          node.ask(license.license, activate, requestOf(license, "f6"))
        ],
        { concurrency: "unbounded" }
      )
      const counts = { active: [1, 1], blacklisted: [101, 0], reset: [398, 0] }
      assert.deepStrictEqual(yield* statuses(license.license), counts)
      assert.strictEqual((yield* stored(license.license)).active, 1)
      const told = yield* events(license.license, "license.transferred")
      assert.deepStrictEqual(
        told.map(({ metadata }) => metadata["devices_reset"]),
        [301, 1]
      )
    })
  )

  it.effect("usage is consumed, topped up and reset from two nodes at once, and the ledger adds up", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const nodes = [yield* makeNode, yield* makeNode]
      const license = yield* makeLicense({ max_consumptions: 10 })
      yield* nodes[0]!.ask(license.license, activate, requestOf(license, "m"))
      const consumed = yield* each(90, (index) => {
        const node = nodes[index % 2]!
        if (index % 10 === 0) return node.ask(license.license, resetUsage, { feature_code: "export", add_credits: 3 })
        if (index % 10 === 5)
          return node.ask(license.license, resetUsage, { feature_id: license.feature, reset_consumed: true })
        const use = { feature_code: "export", event_id: `e${index}`, amount: 1 }
        return node.ask(license.license, consume, { ...requestOf(license, "m"), ...use })
      })
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
      assert.strictEqual(consumed.slice(0).filter(Result.isSuccess).length, 18 + row!.used)
    })
  )

  it.effect("a rotated key ends on every node at once, and the new one begins", () =>
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

  it.effect("actions on a device hold at the next use on the other node, also on devices beyond memory", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* makeNode, yield* makeNode]
      const license = yield* makeLicense({ max_activations: 0 })
      yield* one.ask(license.license, activate, requestOf(license, "m"))
      yield* fillDevices(license, 500)
      const device_id = deviceIdOf(license, "m")
      yield* other.ask(license.license, blacklist, { device_id })
      const barred = yield* Effect.flip(one.ask(license.license, validate, requestOf(license, "m")))
      assert.strictEqual(barred.code, "DEVICE_BLACKLISTED")
      yield* one.ask(license.license, unblacklist, { device_id })
      yield* other.ask(license.license, activate, requestOf(license, "m"))
      const unseen = { device_id: `${license.license}_5` }
      assert.strictEqual((yield* one.ask(license.license, reset, unseen)).status, "reset")
      const { code, detail } = yield* Effect.flip(one.ask(license.license, reset, { device_id: "dev_none" }))
      assert.deepStrictEqual([code, detail], ["NOT_FOUND", "device_id"])
      const types = ["device.blacklisted", "device.unblacklisted"]
      assert.deepStrictEqual(
        (yield* Effect.forEach(types, (type) => events(device_id, type))).map(({ length }) => length),
        [1, 1]
      )
    })
  )
})
