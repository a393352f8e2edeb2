/** What signed payloads show of a license: its owner, its metadata, and the usage of its features. */
import { assert, describe, it } from "@effect/vitest"
import type { Assignment } from "../../../src/licensing/model/LicenseRecords.ts"
import { check } from "../../../src/licensing/rules/Activation.ts"
import { isShownAlike } from "../../../src/licensing/rules/Entitlement.ts"
import { checkout } from "../../../src/licensing/rules/Floating.ts"
import { listOwnDevices } from "../../../src/licensing/rules/OwnDevices.ts"
import { allowed } from "../../support/rules/LicenseRules.ts"
import {
  activationOf,
  assignmentOf,
  day,
  deviceOf,
  hardware,
  keyHash,
  noon,
  type RowsInput,
  requestOf,
  rowsOf
} from "../../support/rules/Licenses.ts"

const machine = hardware("machine")
const shown = (rows: RowsInput) =>
  allowed(rowsOf({ devices: [deviceOf(machine)], ...rows }), check, requestOf(machine)).reply

describe("a signed payload", () => {
  const license = { customer_name: "Ada", metadata: { note: "a", seats: 3, secret: "b" } }

  it("names the licensee only if the policy shows it and the license has one", () => {
    const policy = { show_licensee: true }
    assert.deepStrictEqual(shown({ license, policy }).licensee, { name: "Ada" })
    assert.notProperty(shown({ license, policy }), "metadata")
    assert.notProperty(shown({ policy }), "licensee")
    assert.notProperty(shown({ license }), "licensee")
  })

  it("has the members of metadata that the policy shows and the license has", () => {
    const policy = { show_metadata: ["note", "seats", "toString", "other"] }
    assert.deepStrictEqual(shown({ license, policy }).metadata, { note: "a", seats: 3 })
    assert.notProperty(shown({ license, policy }), "licensee")
    assert.notProperty(shown({ policy }), "metadata")
    assert.notProperty(shown({ license }), "metadata")
  })

  it("is alike if no shown part changes", () => {
    const policy = { show_licensee: true, show_metadata: ["note"] }
    const hidden = { show_licensee: false, show_metadata: [] }
    assert.isTrue(isShownAlike(license, { ...license, metadata: { note: "a" } }, policy))
    for (const after of [
      { ...license, customer_name: "Bob" },
      { ...license, metadata: { note: "b" } },
      { ...license, metadata: {} }
    ]) {
      assert.isFalse(isShownAlike(license, after, policy))
      assert.isTrue(isShownAlike(license, after, hidden))
    }
  })
})

describe("the usage of a feature in a payload", () => {
  const usage = { quota: 10, consumed: 4, remaining: 6 }
  const cases: ReadonlyArray<readonly [Partial<Assignment>, object]> = [
    [{}, usage],
    [
      { reset_period: "day", period_anchor: noon, period_start: noon, resets_at: noon + day },
      { ...usage, extra_credits: 0, resets_at: new Date(noon + day).toISOString() }
    ],
    [{ reset_period: "subscription" }, { ...usage, extra_credits: 0 }],
    [{ extra_credits: 7 }, { ...usage, extra_credits: 7 }],
    [{ overage_max: 5 }, { ...usage, overage: 0 }],
    [
      { total_consumptions: 12, overage_max: 5, overage: 2 },
      { quota: 10, consumed: 12, remaining: 0, overage: 2 }
    ],
    [
      { total_consumptions: 12, overage: 2 },
      { quota: 10, consumed: 12, remaining: 0, overage: 2 }
    ],
    [
      { extra_credits: 3, credits_used: 2, total_consumptions: 9, overage_max: -1 },
      { quota: 10, consumed: 9, remaining: 3, extra_credits: 3, overage: 0 }
    ],
    [{ max_consumptions: undefined }, {}]
  ]
  it.each(cases)("with %j is %j", (given, expected) => {
    const api = assignmentOf("api", { max_consumptions: 10, total_consumptions: 4, ...given })
    assert.deepStrictEqual(shown({ assignments: [api] }).features, [{ code: "api", enabled: true, ...expected }])
  })
})

describe("the facts of a list of own devices", () => {
  it("are those of the license, of their own kind", () => {
    const rows = rowsOf({ license: { self_deactivated_at: [noon - day] } })
    const { reply } = allowed(rows, listOwnDevices, { keyHash })
    assert.deepInclude(reply, { kind: "devices", license_id: "lic_1", self_deactivations_remaining: 2 })
    const used = allowed(rowsOf({ policy: { self_deactivations_per_month: 2 } }), listOwnDevices, { keyHash }).reply
    assert.strictEqual(used.self_deactivations_remaining, 2)
  })
})

describe("the payload of a checkout", () => {
  const lease = { newLeaseId: "lse_1", leaseToken: "token", tokenHash: "hash" }
  const checkedOut = (app_version?: string) =>
    allowed(rowsOf({ versions: { "1.0": noon } }), checkout, {
      ...activationOf(app_version === undefined ? machine : { ...machine, app_version }),
      ...lease
    }).reply

  it("says whether the version is entitled if the request names one", () => {
    assert.deepInclude(checkedOut("1.0").version_eligibility, { app_version: "1.0", is_entitled: true })
    assert.notProperty(checkedOut(), "version_eligibility")
  })
})
