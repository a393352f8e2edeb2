/**
 * Limits and heartbeats on licenses with more activations than an actor caches: every device is counted, and none is
 * read for it.
 */
import { assert, layer } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { transfer } from "../../../src/licensing/changes/Transfer.ts"
import { activate, deactivate, validate } from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { instant } from "../../../src/platform/postgres/driver/Parameters.ts"
import { Database } from "../../support/database/Database.ts"
import { makeNode } from "../../support/database/LicenseNodes.ts"
import { deviceStates, eventsAbout, makeLicense, requestOf, stored } from "../../support/database/StoredLicenses.ts"
import { dueAfter, hardware } from "../../support/rules/Licenses.ts"

interface CreatedLicense {
  readonly license: string
  readonly keyHash: string
}

const container = (license: CreatedLicense, name: string) => {
  const { fingerprint: _, ...binding } = hardware(name)
  return { ...requestOf(license, name), binding: { ...binding, kind: "container" as const, is_container: true } }
}

/** Activations that no actor has cached, last heard from at an instant. */
const fillActivations = Effect.fnUntraced(function* (
  { license }: CreatedLicense,
  kind: "hardware" | "container",
  count: number,
  heardAt: number
) {
  const sql = yield* SqlClient.SqlClient
  const at = instant(heardAt)
  yield* sql`
    INSERT INTO devices (id, license_id, binding_kind, binding_key, is_vm, is_container, status, holds_slot, activated_at,
      first_seen_at, last_seen_at, last_validated_at, due_at, metadata, created_at, updated_at)
    SELECT ${license} || ${kind} || ${heardAt} || n, ${license}, ${kind}, ${kind} || ${heardAt} || '-' || n, false, ${kind === "container"},
      'active', true, ${at}, ${at}, ${at}, ${at}, ${instant(dueAfter(heardAt, 10))}, '{}', ${at}, ${at}
    FROM generate_series(1, ${count}::int) AS n`
  yield* sql`
    UPDATE licenses SET active_device_count = active_device_count + ${count}, revision = revision + 1 WHERE id = ${license}`
})

const codeOf = <A, E extends { readonly code: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(effect), ({ code }) => code)

layer(Database.layer, { timeout: 60_000 })("a license with very many activations", (it) => {
  it.effect("counts uncached container instances and other devices, each against their limit", () =>
    Effect.gen(function* () {
      const node = yield* makeNode
      const license = yield* makeLicense({ max_activations: 152, max_container_instances: 202 })
      yield* fillActivations(license, "container", 200, 0)
      yield* fillActivations(license, "hardware", 150, 0)
      const pod = (name: string) => node.ask(license.license, activate, container(license, name))
      const machine = (name: string) => node.ask(license.license, activate, requestOf(license, name))
      // Both limits are reached within one batch.
      const codes = yield* Effect.forEach(
        [pod("p1"), machine("m1"), pod("p2"), machine("m2"), pod("p3"), machine("m3")],
        (activation) => Effect.match(activation, { onSuccess: () => "", onFailure: ({ code }) => code }),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(codes, ["", "", "", "", "CONTAINER_LIMIT_REACHED", "ACTIVATION_LIMIT_REACHED"])
      assert.strictEqual(yield* codeOf(pod("p3")), "CONTAINER_LIMIT_REACHED")
      assert.strictEqual(yield* codeOf(machine("m3")), "ACTIVATION_LIMIT_REACHED")
      yield* node.ask(license.license, deactivate, container(license, "container0-7"))
      yield* pod("p3")
      assert.strictEqual(yield* codeOf(pod("p4")), "CONTAINER_LIMIT_REACHED")
      yield* node.ask(license.license, deactivate, requestOf(license, "m1"))
      assert.strictEqual(yield* codeOf(pod("p4")), "CONTAINER_LIMIT_REACHED")
      yield* machine("m3")
      assert.strictEqual((yield* stored(license.license)).active, 354)
    })
  )

  it.effect("has all its slots again after a transfer has reset them", () =>
    Effect.gen(function* () {
      const node = yield* makeNode
      const license = yield* makeLicense({ max_container_instances: 200 })
      yield* fillActivations(license, "container", 200, 0)
      const pod = (name: string) => node.ask(license.license, activate, container(license, name))
      assert.strictEqual(yield* codeOf(pod("p0")), "CONTAINER_LIMIT_REACHED")
      yield* Effect.all([node.ask(license.license, transfer, { reset_devices: true }), pod("p0")], {
        concurrency: "unbounded"
      })
      yield* Effect.forEach(Array.from({ length: 199 }), (_, index) => pod(`p${index + 1}`), {
        concurrency: "unbounded"
      })
      assert.strictEqual(yield* codeOf(pod("p200")), "CONTAINER_LIMIT_REACHED")
      assert.deepStrictEqual((yield* deviceStates(license.license))["active"], [200, 200])
    })
  )

  it.effect("frees the slots of silent devices, cached or not, when their heartbeat is overdue", () =>
    Effect.gen(function* () {
      const node = yield* makeNode
      const minute = 60_000
      const license = yield* makeLicense({
        max_activations: 300,
        require_heartbeat: true,
        validation_interval_minutes: 10
      })
      yield* TestClock.adjust("1 hour")
      const now = yield* Clock.currentTimeMillis
      yield* fillActivations(license, "hardware", 2, now - 11 * minute)
      yield* fillActivations(license, "hardware", 3, now - 9 * minute)
      yield* fillActivations(license, "hardware", 295, now)
      const machine = (name: string) => node.ask(license.license, activate, requestOf(license, name))
      yield* machine("m1")
      assert.strictEqual((yield* stored(license.license)).active, 299)
      yield* machine("m2")
      assert.strictEqual(yield* codeOf(machine("m3")), "ACTIVATION_LIMIT_REACHED")
      assert.lengthOf(Object.keys(yield* deviceStates(license.license)), 2)
      const silent = requestOf(license, `hardware${now - 11 * minute}-1`)
      assert.strictEqual(yield* codeOf(node.ask(license.license, validate, silent)), "HEARTBEAT_OVERDUE")
      // One of the devices due next validates; the other two are late.
      yield* node.ask(license.license, validate, requestOf(license, `hardware${now - 9 * minute}-1`))
      yield* TestClock.adjust("2 minutes")
      yield* machine("m3")
      assert.deepStrictEqual(yield* deviceStates(license.license), { active: [299, 299], expired: [4, 0] })
      const late = {
        ...requestOf(license, `hardware${now - 9 * minute}-2`),
        feature_code: "export",
        event_id: "e",
        amount: 1
      }
      assert.strictEqual(yield* codeOf(node.ask(license.license, consume, late)), "DEVICE_NOT_ACTIVE")
      // All others become silent, except the machine that was activated meanwhile.
      yield* TestClock.adjust("9 minutes")
      yield* machine("m4")
      assert.deepStrictEqual(yield* deviceStates(license.license), { active: [2, 2], expired: [302, 0] })
      assert.strictEqual((yield* stored(license.license)).active, 2)
      const expiredEvents = yield* eventsAbout(`${license.license}hardware${now}1`, "device.expired")
      assert.lengthOf(expiredEvents, 1)
    })
  )
})
