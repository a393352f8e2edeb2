import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { Assignment } from "../../../src/licensing/model/LicenseRecords.ts"
import { type ConsumeCommand, consume } from "../../../src/licensing/rules/Consumption.ts"
import { allowed, eventTypes, perform, refusedWith } from "../../support/rules/LicenseRules.ts"
import {
  assignmentOf,
  day,
  deviceOf,
  hardware,
  keyHash,
  noon,
  type Rows,
  type RowsInput,
  rowsOf
} from "../../support/rules/Licenses.ts"

const machine = hardware("machine")
const device = deviceOf(machine)

const usage = (given: Partial<ConsumeCommand> = {}): ConsumeCommand => ({
  keyHash,
  binding: machine,
  feature_code: "api",
  event_id: "event-1",
  amount: 1,
  ...given
})

/** A license with one active device and the feature `api`. */
const metered = (api: Partial<Assignment> = {}, rest: RowsInput = {}): Rows =>
  rowsOf({ devices: [device], assignments: [assignmentOf("api", api), assignmentOf("export")], ...rest })

const assigned = ({ assignments }: Rows) => assignments.find(({ feature_code }) => feature_code === "api") as Assignment

/** What one license recorded of a kind. */
const count = (rows: Rows, type: string) => eventTypes(rows).filter((recorded) => recorded === type).length

describe("consume", () => {
  it("counts an amount on the feature and the license, with a ledger row that tells all of it", () => {
    const start = metered({ max_consumptions: 100, total_consumptions: 7 }, { license: { total_consumptions: 20 } })
    const { after, changes, reply } = allowed(start, consume, usage({ amount: 5 }))
    assert.deepStrictEqual(changes.license, { total_consumptions: 25, updated_at: noon })
    assert.deepStrictEqual(assigned(after), { ...assigned(start), total_consumptions: 12, updated_at: noon })
    assert.deepStrictEqual(after.ledger, [
      {
        feature_id: "feat_api",
        feature_code: "api",
        action: "consume",
        event_id: "event-1",
        amount: 5,
        balance_after: 12,
        max_after: 100,
        device_id: device.id
      }
    ])
    assert.deepStrictEqual(changes.events, [])
    assert.deepStrictEqual(eventTypes(changes), ["usage.consumed"])
    assert.deepStrictEqual(reply.features[0], { code: "api", enabled: true, quota: 100, consumed: 12, remaining: 88 })
    assert.strictEqual(reply.entitlement_version, 1)
  })

  it("has no end where the assignment has no maximum", () => {
    const { after, changes } = allowed(
      metered({ total_consumptions: 1_000_000 }),
      consume,
      usage({ amount: 1_000_000 })
    )
    assert.strictEqual(assigned(after).total_consumptions, 2_000_000)
    assert.deepStrictEqual(eventTypes(changes), ["usage.consumed"])
    assert.isUndefined(changes.ledger?.[0]?.max_after)
  })

  it("takes all of an amount or nothing", () => {
    const start = metered({ max_consumptions: 10, total_consumptions: 7 })
    const { refused } = refusedWith("USAGE_LIMIT_EXCEEDED", start, consume, usage({ amount: 4 }))
    assert.strictEqual(refused.detail, "3")
    assert.isUndefined(refused.recorded)
    allowed(start, consume, usage({ amount: 3 }))
  })

  it("refuses an amount beyond the quota, bought credits and overage, and says how much can be used", () => {
    const start = metered({ max_consumptions: 100, total_consumptions: 60, extra_credits: 100, overage_max: 10 })
    const { refused } = refusedWith("USAGE_LIMIT_EXCEEDED", start, consume, usage({ amount: 151 }))
    assert.strictEqual(refused.detail, "150")
    assert.include(refused.message, "at most 150 can be used now")
    allowed(start, consume, usage({ amount: 150 }))
  })

  it("leaves no remaining quota if the maximum is lowered below the consumption", () => {
    const { refused } = refusedWith(
      "USAGE_LIMIT_EXCEEDED",
      metered({ max_consumptions: 5, total_consumptions: 7 }),
      consume,
      usage()
    )
    assert.strictEqual(refused.detail, "0")
  })

  it("asks for an assigned, enabled feature before its expiry", () => {
    refusedWith("FEATURE_NOT_ENTITLED", metered(), consume, usage({ feature_code: "reports" }))
    refusedWith("FEATURE_DISABLED", metered({ enabled: false }), consume, usage())
    const ended = refusedWith("FEATURE_EXPIRED", metered({ expires_at: noon }), consume, usage()).refused
    assert.strictEqual(ended.detail, "feature_code")
    allowed(metered({ expires_at: noon + 1 }), consume, usage())
  })

  it("counts nothing past the largest safe integer, neither on the feature nor on the license", () => {
    const largest = Number.MAX_SAFE_INTEGER
    const feature = metered({ total_consumptions: largest - 2 })
    const license = metered({}, { license: { total_consumptions: largest - 2 } })
    for (const rows of [feature, license]) {
      allowed(rows, consume, usage({ amount: 2 }))
      for (const amount of [3, 4, largest]) {
        const { refused } = refusedWith("VALIDATION_ERROR", rows, consume, usage({ amount }))
        assert.strictEqual(refused.detail, "amount")
      }
    }
  })
})

describe("an event id", () => {
  const once = allowed(metered({ max_consumptions: 3 }), consume, usage({ amount: 2 })).after

  it("counts once, however often it is sent", () => {
    const { before, after, changes, reply } = allowed(once, consume, usage({ amount: 2 }), noon + day)
    assert.deepStrictEqual(changes, {})
    assert.deepStrictEqual(after, before)
    assert.strictEqual(reply.features[0]?.consumed, 2)
  })

  it("is not to be had for another amount or feature", () => {
    for (const other of [
      usage({ amount: 1 }),
      usage({ amount: 2, feature_code: "export" }),
      usage({ amount: 2, feature_code: "unheard-of" })
    ]) {
      const { refused } = refusedWith("EVENT_ID_CONFLICT", once, consume, other)
      assert.strictEqual(refused.detail, "event_id")
    }
  })

  it("is answered again whatever has become of the feature since", () => {
    const since: ReadonlyArray<ReadonlyArray<Assignment>> = [
      [{ ...assigned(once), enabled: false }],
      [{ ...assigned(once), expires_at: noon - 1 }],
      [{ ...assigned(once), max_consumptions: 0 }],
      []
    ]
    for (const assignments of since) {
      assert.deepStrictEqual(allowed({ ...once, assignments }, consume, usage({ amount: 2 })).changes, {})
    }
  })

  it("is answered only where the license and the device are admitted", () => {
    const { license } = once
    refusedWith(
      "LICENSE_SUSPENDED",
      { ...once, license: { ...license, status: "suspended" } },
      consume,
      usage({ amount: 2 })
    )
    refusedWith(
      "DEVICE_NOT_ACTIVE",
      { ...once, devices: [deviceOf(machine, { status: "reset" })] },
      consume,
      usage({ amount: 2 })
    )
  })

  it("is not used up by a refusal", () => {
    const { after } = refusedWith("USAGE_LIMIT_EXCEEDED", once, consume, usage({ event_id: "event-2", amount: 2 }))
    allowed(after, consume, usage({ event_id: "event-2", amount: 1 }))
  })
})

describe("many consumptions", () => {
  const amounts = fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 30 })
  const quotas = fc.oneof(fc.integer({ min: 0, max: 200 }), fc.constant(undefined))

  const runAll = (start: Rows, sequence: ReadonlyArray<number>) =>
    sequence.reduce(
      (rows, amount, index) => perform(rows, consume, usage({ amount, event_id: `event-${index}` }), noon).after,
      start
    )

  it("add up: the ledger, the feature and the license say the same, and never more than the maximum", () => {
    fc.assert(
      fc.property(quotas, fc.nat(50), amounts, (max_consumptions, total_consumptions, sequence) => {
        const start = metered({ max_consumptions, total_consumptions }, { license: { total_consumptions: 1000 } })
        const end = runAll(start, sequence)
        const sum = end.ledger.reduce((total, { amount }) => total + amount, 0)
        assert.strictEqual(assigned(end).total_consumptions - total_consumptions, sum)
        assert.strictEqual(end.license.total_consumptions - 1000, sum)
        assert.isAtMost(
          assigned(end).total_consumptions,
          Math.max(max_consumptions ?? Number.POSITIVE_INFINITY, total_consumptions)
        )
        let balance = total_consumptions
        for (const entry of end.ledger) {
          balance += entry.amount
          assert.strictEqual(entry.balance_after, balance)
          assert.strictEqual(entry.max_after, max_consumptions)
        }
      }),
      { numRuns: 200 }
    )
  })

  it("record the threshold and the exhaustion once, at the consumption that reaches them", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 200 }), fc.nat(200), amounts, (quota, used, sequence) => {
        const start = metered({ max_consumptions: quota, total_consumptions: Math.min(used, quota) })
        const end = runAll(start, sequence)
        const [first, last] = [assigned(start).total_consumptions, assigned(end).total_consumptions]
        assert.strictEqual(
          count(end, "usage.threshold_reached"),
          first * 5 < quota * 4 && last * 5 >= quota * 4 ? 1 : 0
        )
        assert.strictEqual(count(end, "usage.exhausted"), first < quota && last === quota ? 1 : 0)
        for (const { event_type, metadata } of end.events) {
          const [amount, balance] = [Number(metadata["amount"]), Number(metadata["balance_after"])]
          const before = balance - amount
          if (event_type === "usage.threshold_reached")
            assert.isTrue(before * 5 < quota * 4 && balance * 5 >= quota * 4)
          if (event_type === "usage.exhausted") assert.isTrue(before < quota && balance === quota)
        }
      }),
      { numRuns: 300 }
    )
  })

  it("reach 80 % exactly, not a consumption earlier or later", () => {
    for (let quota = 5; quota <= 5000; quota += 5) {
      const start = metered({ max_consumptions: quota, total_consumptions: quota * 0.8 - 2 })
      const short = allowed(start, consume, usage())
      assert.deepStrictEqual(eventTypes(short.changes), ["usage.consumed"], `${quota}`)
      const reached = allowed(short.after, consume, usage({ event_id: "event-2" }))
      assert.include(eventTypes(reached.changes), "usage.threshold_reached", `${quota}`)
    }
  })

  it("record nothing again after the threshold, and the first overage only", () => {
    const typesAt = (given: Partial<Assignment>) =>
      eventTypes(allowed(metered({ max_consumptions: 10, ...given }), consume, usage()).changes).slice(1)
    assert.deepStrictEqual(typesAt({ total_consumptions: 7 }), ["usage.threshold_reached"])
    assert.deepStrictEqual(typesAt({ total_consumptions: 8 }), [])
    assert.deepStrictEqual(typesAt({ total_consumptions: 10, overage_max: 9 }), ["usage.overage_started"])
    assert.deepStrictEqual(typesAt({ total_consumptions: 11, overage_max: 9, overage: 1 }), [])
  })

  it("may reach both thresholds at once", () => {
    const { changes } = allowed(metered({ max_consumptions: 10 }), consume, usage({ amount: 10 }))
    assert.deepStrictEqual(eventTypes(changes), ["usage.consumed", "usage.threshold_reached", "usage.exhausted"])
    const metadata = {
      feature_id: "feat_api",
      feature_code: "api",
      amount: 10,
      event_id: "event-1",
      balance_after: 10,
      max_after: 10,
      device_id: device.id
    }
    for (const event of changes.events ?? []) {
      const { event_type } = event
      assert.deepStrictEqual(event, { event_type, resource_type: "license", resource_id: "lic_1", metadata })
    }
  })
})
