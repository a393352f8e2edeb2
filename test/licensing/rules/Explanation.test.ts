/** What signed refusals tell about the license, and those of an exceeded quota about the quota. */
import { assert, describe, it } from "@effect/vitest"
import { formatTimestamp } from "../../../src/contract/api/Timestamp.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { explain, identify } from "../../../src/licensing/rules/Explanation.ts"
import { allowed, refusedWith, viewOf } from "../../support/rules/LicenseRules.ts"
import { day, hardware, noon, requestOf, rowsOf } from "../../support/rules/Licenses.ts"
import { at, created, monthly, used } from "../../support/rules/MonthlyQuota.ts"

describe("the facts of a refusal", () => {
  const facts = { license_id: "lic_1", product_id: "prod_1", issued_at: formatTimestamp(noon) }

  it("are the license's dates and its state by the clock", () => {
    const dates = { starts_at: noon - 9 * day, expires_at: noon - day }
    const rows = rowsOf({ license: dates, policy: { grace_period_days: 3 } })
    assert.deepStrictEqual(explain(viewOf(rows), noon), {
      ...facts,
      status: "grace_period",
      starts_at: formatTimestamp(dates.starts_at),
      expires_at: formatTimestamp(dates.expires_at),
      access_ends_at: formatTimestamp(noon + 2 * day)
    })
  })

  it("have no dates that the license does not have", () => {
    const rows = rowsOf({ license: { expires_at: undefined }, policy: { license_type: "perpetual" } })
    assert.deepStrictEqual(explain(viewOf(rows), noon), { ...facts, status: "active" })
  })

  it("are told only to the holder of the key", () => {
    const rows = rowsOf()
    const request = requestOf(hardware("machine"))
    assert.deepStrictEqual(allowed(rows, identify, request).reply, explain(viewOf(rows), noon))
    refusedWith("LICENSE_KEY_INVALID", rows, identify, { ...request, keyHash: "0".repeat(64) })
  })
})

describe("the facts of an exceeded quota", () => {
  const refused = (given: Parameters<typeof monthly>[0], amount: number) =>
    refusedWith("USAGE_LIMIT_EXCEEDED", monthly(given), consume, used(amount, "e1"), created).refused

  it("are the quota and what is used and left of it", () => {
    const { detail, facts, message } = refused({ total_consumptions: 60, resets_at: undefined }, 41)
    assert.strictEqual(detail, "40")
    assert.include(message, "at most 40 can")
    assert.deepStrictEqual(facts, {
      quota: 100,
      consumed: 60,
      remaining: 40,
      resets_at: formatTimestamp(at("2030-02-28T12:00:00Z"))
    })
  })

  it("have bought credits and overage where the assignment has them", () => {
    const { facts } = refused({ total_consumptions: 130, extra_credits: 20, overage_max: 40, overage: 10 }, 500)
    assert.deepInclude(facts, { quota: 100, consumed: 130, extra_credits: 20, overage: 10 })
  })

  it("have no reset without periods", () => {
    const { facts } = refused({ reset_period: undefined, total_consumptions: 100 }, 1)
    assert.deepStrictEqual(facts, { quota: 100, consumed: 100, remaining: 0 })
  })
})
