/**
 * The counters of a license against a second telling of the contract, in other words and on other data: after any sequence of
 * commands both accept the same, and times_activated, active_device_count, times_transferred, total_consumptions and
 * entitlement_version are equal.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { Code } from "../../../src/contract/api/ErrorCode.ts"
import { assign, unassign } from "../../../src/licensing/changes/Assignments.ts"
import { blacklist, reset, unblacklist } from "../../../src/licensing/changes/DeviceActions.ts"
import { renew } from "../../../src/licensing/changes/Renewal.ts"
import { transfer } from "../../../src/licensing/changes/Transfer.ts"
import { resetUsage } from "../../../src/licensing/changes/UsageReset.ts"
import { activate, deactivate } from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import type { Rule } from "../../../src/licensing/rules/LicenseCommand.ts"
import { entitlementVersionAt, reinstate, revoke, suspend } from "../../../src/licensing/rules/Lifecycle.ts"
import { perform } from "../../support/rules/LicenseRules.ts"
import {
  activationOf,
  assignmentOf,
  day,
  deviceOf,
  featureOf,
  hardware,
  noon,
  requestOf,
  rowsOf
} from "../../support/rules/Licenses.ts"

const machines = ["A", "B", "C"].map((name) => hardware(name))
const [activationsMax, transfersMax, graceDays] = [2, 2, 3]

/** A license as the contract tells it. */
class Told {
  ends = noon + 10 * day
  halted: "suspended" | "revoked" | undefined
  stage = 0
  owner = ""
  readonly machines = new Map<number, string>()
  readonly quotas = new Map<string, { max: number | undefined; used: number }>([["api", { max: 10, used: 0 }]])
  activated = 0
  transferred = 0
  consumed = 0
  version = 1

  /** 0 active, 1 in grace, 2 expired. */
  stageAt(now: number): number {
    return Number(now >= this.ends) + Number(now >= this.ends + graceDays * day)
  }

  pass(now: number): void {
    if (this.halted !== undefined) return
    this.version += Math.max(0, this.stageAt(now) - this.stage)
    this.stage = this.stageAt(now)
  }

  get inUse(): number {
    return Array.from(this.machines.values()).filter((state) => state === "active").length
  }

  get serves(): boolean {
    return this.halted === undefined && this.stage < 2
  }
}

/** A command to the rules, and what the contract says that it does: false where it refuses. */
interface Step {
  readonly name: string
  readonly rule: Rule<never, unknown, Code>
  readonly command: unknown
  readonly tell: (told: Told, now: number) => boolean
}

const step = <Command, C extends Code>(
  rule: Rule<Command, unknown, C>,
  command: Command,
  tell: Step["tell"]
): Step => ({
  name: `${rule.name} ${JSON.stringify(command)}`,
  rule,
  command,
  tell
})

const machine = fc.nat(machines.length - 1)
const usable = (told: Told, index: number) => told.serves && told.machines.get(index) !== "blacklisted"

const activating = machine.map((index) =>
  step(activate, activationOf(machines[index]!), (told) => {
    if (!usable(told, index)) return false
    if (told.machines.get(index) === "active") return true
    if (told.inUse === activationsMax) return false
    told.machines.set(index, "active")
    told.activated++
    return true
  })
)

const deactivating = machine.map((index) =>
  step(deactivate, requestOf(machines[index]!), (told) => {
    if (told.halted === "revoked" || told.machines.get(index) !== "active") return false
    told.machines.set(index, "deactivated")
    return true
  })
)

const consuming = fc
  .tuple(machine, fc.constantFrom("api", "export"), fc.integer({ min: 1, max: 6 }), fc.uuid())
  .map(([index, feature_code, amount, event_id]) =>
    step(consume, { ...requestOf(machines[index]!), feature_code, amount, event_id }, (told) => {
      const quota = told.quotas.get(feature_code)
      if (!usable(told, index) || told.machines.get(index) !== "active" || quota === undefined) return false
      if (quota.max !== undefined && quota.used + amount > quota.max) return false
      quota.used += amount
      told.consumed += amount
      return true
    })
  )

const halting = fc.constantFrom<Step>(
  step(suspend, undefined, (told) => {
    if (told.halted === undefined) [told.halted, told.version] = ["suspended", told.version + 1]
    return told.halted !== "revoked"
  }),
  step(reinstate, undefined, (told, now) => {
    if (told.halted === undefined) return told.stage < 2
    if (told.halted === "revoked") return false
    ;[told.halted, told.stage, told.version] = [undefined, told.stageAt(now), told.version + 1]
    return true
  })
)

const revoking = fc.constant<Step>(
  step(revoke, undefined, (told) => {
    if (told.halted === "revoked") return true
    ;[told.halted, told.version] = ["revoked", told.version + 1]
    for (const [index, state] of told.machines) if (state === "active") told.machines.set(index, "deactivated")
    return true
  })
)

const extend = (told: Told, ends: number, now: number): boolean => {
  if (told.halted === "revoked" || ends <= now || ends <= told.ends) return false
  ;[told.ends, told.version] = [ends, told.version + 1]
  if (told.halted === undefined) told.stage = 0
  return true
}

const renewing = fc.oneof(
  fc
    .constantFrom(1, 20)
    .map((days) =>
      step(renew, { extend_by_days: days }, (told, now) => extend(told, Math.max(told.ends, now) + days * day, now))
    ),
  fc
    .constantFrom(noon - day, noon + 5 * day, noon + 40 * day)
    .map((expires_at) => step(renew, { expires_at }, (told, now) => extend(told, expires_at, now)))
)

const transferring = fc
  .tuple(fc.constantFrom(undefined, "Ada", "Bob"), fc.boolean())
  .map(([customer_name, reset_devices]) =>
    step(transfer, { reset_devices, ...(customer_name === undefined ? undefined : { customer_name }) }, (told) => {
      if (told.halted === "revoked") return false
      const moves = customer_name !== undefined && customer_name !== told.owner
      if (moves && told.transferred === transfersMax) return false
      const resets = Array.from(told.machines).filter(
        ([, state]) => reset_devices && state !== "reset" && state !== "blacklisted"
      )
      for (const [index] of resets) told.machines.set(index, "reset")
      if (moves) [told.owner, told.transferred] = [customer_name, told.transferred + 1]
      if (moves || resets.length > 0) told.version++
      return true
    })
  )

const features = fc.constantFrom("api", "export")

const resetting = fc
  .tuple(features, fc.constantFrom(undefined, 5, 30), fc.constantFrom(undefined, 4), fc.constantFrom(undefined, 0, 3))
  .filter(([, ...amounts]) => amounts.some((amount) => amount !== undefined))
  .map(([feature_code, max, credits, total]) =>
    step(
      resetUsage,
      {
        feature_code,
        ...(max === undefined ? undefined : { max_consumptions: max }),
        ...(credits === undefined ? undefined : { add_credits: credits }),
        ...(total === undefined ? undefined : { total_consumptions: total })
      },
      (told) => {
        const quota = told.quotas.get(feature_code)
        if (told.halted === "revoked" || quota === undefined) return false
        if (credits !== undefined && max === undefined && quota.max === undefined) return false
        const before = `${quota.max} ${quota.used}`
        if (max !== undefined) quota.max = max
        if (credits !== undefined) quota.max = (quota.max ?? 0) + credits
        if (total !== undefined) quota.used = total
        told.version += Number(before !== `${quota.max} ${quota.used}`)
        return true
      }
    )
  )

const assigning = fc.tuple(features, fc.constantFrom(null, 8)).map(([code, max]) =>
  step(assign, { feature_id: `feat_${code}`, max_consumptions: max }, (told) => {
    if (told.halted === "revoked") return false
    const before = told.quotas.get(code)
    told.quotas.set(code, { max: max ?? undefined, used: before?.used ?? 0 })
    told.version += Number(before === undefined || before.max !== (max ?? undefined))
    return true
  })
)

const unassigning = features.map((code) =>
  step(unassign, { feature_id: `feat_${code}` }, (told) => {
    if (told.halted === "revoked" || !told.quotas.delete(code)) return false
    told.version++
    return true
  })
)

const ruling = fc.tuple(machine, fc.constantFrom(reset, blacklist, unblacklist)).map(([index, rule]) =>
  step(rule, { device_id: deviceOf(machines[index]!).id }, (told) => {
    const state = told.machines.get(index)
    if (state === undefined || told.halted === "revoked") return false
    if (rule === blacklist) told.machines.set(index, "blacklisted")
    else if ((rule === reset) === (state === "blacklisted")) return false
    else told.machines.set(index, "reset")
    return true
  })
)

const steps = fc.oneof(
  { weight: 8, arbitrary: activating },
  { weight: 2, arbitrary: deactivating },
  { weight: 6, arbitrary: consuming },
  { weight: 3, arbitrary: halting },
  { weight: 4, arbitrary: renewing },
  { weight: 4, arbitrary: transferring },
  { weight: 4, arbitrary: resetting },
  { weight: 2, arbitrary: assigning },
  { weight: 1, arbitrary: unassigning },
  { weight: 5, arbitrary: ruling },
  { weight: 1, arbitrary: fc.oneof({ weight: 4, arbitrary: halting }, { weight: 1, arbitrary: revoking }) }
)

const waits = fc.constantFrom(0, 0, 0, 1, day, 4 * day, 13 * day)

const start = rowsOf({
  license: { expires_at: noon + 10 * day },
  policy: { max_activations: activationsMax, max_transfers: transfersMax, grace_period_days: graceDays },
  assignments: [assignmentOf("api", { max_consumptions: 10 })],
  features: [featureOf("api"), featureOf("export")]
})

describe("the counters of a license", () => {
  it("follow the contract after any sequence of commands", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(waits, steps), { minLength: 1, maxLength: 40 }), (sequence) => {
        const told = new Told()
        let [rows, now] = [start, noon]
        for (const [wait, { name, rule, command, tell }] of sequence) {
          now += wait
          told.pass(now)
          const { after, refused } = perform(rows, rule, command as never, now)
          assert.strictEqual(refused === undefined, tell(told, now), `${name} ${refused?.code}`)
          rows = after
          const { license, policy } = rows
          assert.deepStrictEqual(
            [
              license.times_activated,
              license.active_device_count,
              license.times_transferred,
              license.total_consumptions,
              entitlementVersionAt(license, policy, 0, now)
            ],
            [told.activated, told.inUse, told.transferred, told.consumed, told.version],
            name
          )
        }
      }),
      { numRuns: 400 }
    )
  })
})
