/** Licenses with more devices than an actor caches: operations on all of them, and on an uncached one. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { blacklist, reset, unblacklist } from "../../../src/licensing/changes/DeviceActions.ts"
import { transfer } from "../../../src/licensing/changes/Transfer.ts"
import { activate, check, validate } from "../../../src/licensing/rules/Activation.ts"
import { Database } from "../../support/database/Database.ts"
import { makeNode } from "../../support/database/LicenseNodes.ts"
import {
  deviceIdOf,
  deviceStates,
  eventsAbout,
  fillDevices,
  makeLicense,
  requestOf,
  stored
} from "../../support/database/StoredLicenses.ts"

layer(Database.layer, { timeout: 60_000 })("a license with very many devices", (it) => {
  it.effect("a transfer resets thousands of devices, cached and uncached", () =>
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
      assert.deepStrictEqual(yield* deviceStates(license.license), counts)
      const { license: answered } = yield* other.ask(license.license, transfer, { reset_devices: true })
      assert.strictEqual(answered.active_device_count, 0)
      assert.deepStrictEqual(yield* deviceStates(license.license), { blacklisted: [1000, 0], reset: [4001, 0] })
      const { revision, ...after } = yield* stored(license.license)
      assert.deepInclude(after, { active: 0, transferred: 0 })
      yield* one.ask(license.license, transfer, { reset_devices: true })
      assert.strictEqual((yield* stored(license.license)).revision, revision)
      const transferEvents = yield* eventsAbout(license.license, "license.transferred")
      assert.deepStrictEqual(
        transferEvents.map(({ metadata }) => metadata),
        [{ devices_reset: 3001 }]
      )
      const refused = yield* Effect.flip(one.ask(license.license, validate, requestOf(license, "known")))
      assert.strictEqual(refused.code, "DEVICE_NOT_ACTIVE")
      yield* one.ask(license.license, activate, requestOf(license, "f5"))
      assert.deepStrictEqual((yield* deviceStates(license.license))["active"], [1, 1])
      yield* one.ask(bystander.license, check, requestOf(bystander, "m"))
    })
  )

  it.effect("a decision on a device during or after a transfer is preserved", () =>
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
      assert.deepStrictEqual(yield* deviceStates(license.license), counts)
      assert.strictEqual((yield* stored(license.license)).active, 1)
      const transferEvents = yield* eventsAbout(license.license, "license.transferred")
      assert.deepStrictEqual(
        transferEvents.map(({ metadata }) => metadata["devices_reset"]),
        [300, 1]
      )
    })
  )

  it.effect("actions on a device apply at its next use on the other node, also for uncached devices", () =>
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
        (yield* Effect.forEach(types, (type) => eventsAbout(device_id, type))).map(({ length }) => length),
        [1, 1]
      )
    })
  )
})
