/** A license's own limits take the place of its policy's in every rule. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { transfer } from "../../../src/licensing/changes/Transfer.ts"
import { update } from "../../../src/licensing/changes/Update.ts"
import { type LimitName, limitNames, limitsOf } from "../../../src/licensing/model/Limits.ts"
import { activate } from "../../../src/licensing/rules/Activation.ts"
import { checkout } from "../../../src/licensing/rules/Floating.ts"
import { issueOffline } from "../../../src/licensing/rules/Offline.ts"
import { sha256Hex } from "../../../src/platform/signing/Digest.ts"
import { anyStep } from "../../support/rules/CommandArbitraries.ts"
import { rows as anyRows } from "../../support/rules/LicenseArbitraries.ts"
import { allowed, perform, refusedWith } from "../../support/rules/LicenseRules.ts"
import {
  activationOf,
  container,
  day,
  deviceOf,
  hardware,
  leaseOf,
  noon,
  type Rows,
  requestOf,
  rowsOf
} from "../../support/rules/Licenses.ts"

const machine = deviceOf(hardware("A"))
const pod = deviceOf(container("pod"))
const seated = deviceOf(hardware("S"), { holds_slot: false })
const checkoutOf = (name: string) => ({
  ...activationOf(hardware(name)),
  newLeaseId: `lse_${name}`,
  leaseToken: name,
  tokenHash: sha256Hex(name)
})

describe("a license's own limit", () => {
  it("of activations replaces the policy's, and 0 is unlimited", () => {
    const rows = (own: number | undefined, ofPolicy: number) =>
      rowsOf({ license: { max_activations: own }, policy: { max_activations: ofPolicy }, devices: [machine] })
    const another = activationOf(hardware("B"))
    const { refused } = refusedWith("ACTIVATION_LIMIT_REACHED", rows(1, 0), activate, another)
    assert.deepStrictEqual([refused.detail, refused.facts], ["1", { max: 1, used: 1 }])
    allowed(rows(2, 1), activate, another)
    allowed(rows(0, 1), activate, another)
    refusedWith("ACTIVATION_LIMIT_REACHED", rows(undefined, 1), activate, another)
  })

  it("of containers counts them apart from other devices", () => {
    const rows = (own: number | undefined) =>
      rowsOf({
        license: { max_container_instances: own },
        policy: { max_activations: 2 },
        devices: [machine, pod]
      })
    const another = activationOf(container("other"))
    refusedWith("ACTIVATION_LIMIT_REACHED", rows(undefined), activate, another)
    refusedWith("CONTAINER_LIMIT_REACHED", rows(1), activate, another)
    allowed(rows(2), activate, another)
    allowed(rows(0), activate, another)
    allowed(rows(1), activate, activationOf(hardware("B")))
  })

  it("of seats switches floating on and off; a live lease stays", () => {
    const rows = (own: number | undefined, ofPolicy: number | undefined) =>
      rowsOf({
        license: { max_floating_users: own },
        policy: { max_floating_users: ofPolicy },
        devices: [seated],
        leases: [leaseOf(seated)]
      })
    refusedWith("FLOATING_NOT_ENABLED", rows(0, 5), checkout, checkoutOf("B"))
    refusedWith("FLOATING_LIMIT_REACHED", rows(1, 5), checkout, checkoutOf("B"))
    allowed(rows(2, undefined), checkout, checkoutOf("B"))
  })

  it("of transfers and of offline days replaces the policy's", () => {
    const moved = { customer_name: "Ada" }
    const transferred = { times_transferred: 1, max_transfers: 1 }
    refusedWith("TRANSFER_LIMIT_REACHED", rowsOf({ license: transferred }), transfer, moved)
    allowed(rowsOf({ license: { ...transferred, max_transfers: 0 }, policy: { max_transfers: 1 } }), transfer, moved)
    const offline = rowsOf({ license: { offline_grace_days: 1 }, devices: [machine] })
    const { reply } = allowed(offline, issueOffline, requestOf(hardware("A")))
    assert.strictEqual(reply.offline_expires_at, new Date(noon + day).toISOString())
  })

  it("is set and cleared by an edit, which ends nothing and raises no version", () => {
    const start = rowsOf({ devices: [machine, pod] })
    const { after, changes, before } = allowed(start, update, { max_activations: 1, max_floating_users: 0 })
    assert.deepStrictEqual(after.devices, before.devices)
    assert.strictEqual(after.license.entitlement_counter, before.license.entitlement_counter)
    assert.deepStrictEqual(changes.events?.[0]?.metadata, {
      changes: { max_activations: { old: null, new: 1 }, max_floating_users: { old: null, new: 0 } }
    })
    const cleared = allowed(after, update, { max_activations: null, max_floating_users: null }).after
    assert.deepStrictEqual(limitsOf(cleared.license, cleared.policy), limitsOf(start.license, start.policy))
  })
})

describe("a transfer under a policy without transfers", () => {
  const rows = rowsOf({ policy: { allow_transfer: false }, devices: [machine] })

  it("is refused if it changes the owner", () => {
    refusedWith("TRANSFER_NOT_ALLOWED", rows, transfer, { customer_name: "Ada" })
    allowed(rows, transfer, { reset_devices: true })
  })
})

/** A license and a policy that hold the same: its own limits moved into the policy. */
const merged = (rows: Rows): Rows => ({
  ...rows,
  license: { ...rows.license, ...Object.fromEntries(limitNames.map((name: LimitName) => [name, undefined])) },
  policy: { ...rows.policy, ...limitsOf(rows.license, rows.policy) }
})

describe("own limits", () => {
  it("decide every runtime command as the same limits of a policy do", () => {
    const runtime = new Set([
      "activate",
      "validate",
      "consume",
      "deactivate",
      "offline",
      "checkout",
      "heartbeat",
      "checkin"
    ])
    fc.assert(
      fc.property(anyRows, anyStep, (rows, { command, rule }) => {
        if (!runtime.has(rule.name)) return
        const own = perform(rows, rule, command, noon)
        const policys = perform(merged(rows), rule, command, noon)
        assert.deepStrictEqual(own.refused?.code, policys.refused?.code)
        assert.deepStrictEqual(own.after.devices, policys.after.devices)
        assert.deepStrictEqual(own.after.leases, policys.after.leases)
      }),
      { numRuns: 500 }
    )
  })
})
