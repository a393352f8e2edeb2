import { assert, describe, it } from "@effect/vitest"
import { DateTime, Schema } from "effect"
import * as fc from "fast-check"
import { canonicalize } from "../../../src/contract/api/CanonicalJson.ts"
import { DeactivationPayload, type Entitlement, EntitlementPayload } from "../../../src/licensing/model/Payloads.ts"
import { activate, check, deactivate, validate } from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { entitlementOf } from "../../../src/licensing/rules/Entitlement.ts"
import { activations, consumptions, requests } from "../../support/rules/CommandArbitraries.ts"
import { rows as anyRows } from "../../support/rules/LicenseArbitraries.ts"
import { allowed, perform, viewOf } from "../../support/rules/LicenseRules.ts"
import {
  assignmentOf,
  day,
  deviceOf,
  hardware,
  minute,
  noon,
  productCode,
  type Rows,
  type RowsInput,
  requestOf,
  rowsOf
} from "../../support/rules/Licenses.ts"

const iso = (instant: number) => DateTime.formatIso(DateTime.makeUnsafe(instant))
const strict = { onExcessProperty: "error" } as const
const decodeEntitlement = Schema.decodeUnknownSync(EntitlementPayload, strict)
const decodeDeactivation = Schema.decodeUnknownSync(DeactivationPayload, strict)

const machine = hardware("machine")
const device = deviceOf(machine)
const checked = (rows: RowsInput, now = noon) =>
  allowed(rowsOf({ devices: [device], ...rows }), check, requestOf(machine), now).reply

/** The features of a payload, built a second time from the contract's words. */
const features = ({ assignments }: Rows, now: number): Entitlement["features"] => {
  const shown = new Map(
    assignments
      .filter(({ enabled, expires_at }) => enabled && (expires_at === undefined || expires_at > now))
      .map(({ feature_code: code, max_consumptions: quota, total_consumptions: consumed, expires_at }) => [
        code,
        {
          code,
          enabled: true,
          ...(quota !== undefined && { quota, consumed, remaining: quota > consumed ? quota - consumed : 0 }),
          ...(expires_at !== undefined && { expires_at: iso(expires_at) })
        }
      ])
  )
  return Array.from(shown.keys())
    .toSorted()
    .flatMap((code) => shown.get(code) ?? [])
}

/** When features that are included now expire. */
const featureEnds = ({ assignments }: Rows): ReadonlyArray<number> =>
  assignments.flatMap(({ enabled, expires_at = noon }) => (enabled && expires_at > noon ? [expires_at] : []))

describe("an entitlement", () => {
  it("has these members and no other for a license that lasts", () => {
    const rows = {
      license: { expires_at: undefined, entitlement_counter: 3 },
      policy: { license_type: "perpetual", entitlement_counter: 4 }
    } as const
    assert.deepStrictEqual(checked(rows), {
      kind: "entitlement",
      license_id: "lic_1",
      product_id: "prod_1",
      product_code: productCode,
      policy_id: "pol_1",
      binding_kind: "hardware",
      binding_hash: machine.hash(),
      status: "active",
      license_type: "perpetual",
      entitlement_version: 7,
      issued_at: "2030-01-15T12:00:00.000Z",
      next_check_at: "2030-01-16T12:00:00.000Z",
      device_id: device.id,
      features: []
    })
  })

  it("tells the expiry, the state that the clock says, and its version", () => {
    const rows = { license: { expires_at: noon - minute }, policy: { grace_period_days: 2 } }
    assert.deepInclude(checked(rows), {
      status: "grace_period",
      expires_at: "2030-01-15T11:59:00.000Z",
      access_ends_at: "2030-01-17T11:59:00.000Z",
      entitlement_version: 2,
      next_check_at: "2030-01-16T12:00:00.000Z"
    })
  })

  it("lists the enabled and unexpired features by code, with a quota only where there is one", () => {
    const assignments = [
      assignmentOf("reports", { max_consumptions: 10, total_consumptions: 4 }),
      assignmentOf("b.2", { total_consumptions: 9 }),
      assignmentOf("disabled", { enabled: false, max_consumptions: 10 }),
      assignmentOf("expired", { expires_at: noon }),
      assignmentOf("b-10", { expires_at: noon + 1 }),
      assignmentOf("lowered", { max_consumptions: 3, total_consumptions: 8 }),
      assignmentOf("none", { max_consumptions: 0 })
    ]
    assert.deepStrictEqual(checked({ assignments }).features, [
      { code: "b-10", enabled: true, expires_at: "2030-01-15T12:00:00.001Z" },
      { code: "b.2", enabled: true },
      { code: "lowered", enabled: true, quota: 3, consumed: 8, remaining: 0 },
      { code: "none", enabled: true, quota: 0, consumed: 0, remaining: 0 },
      { code: "reports", enabled: true, quota: 10, consumed: 4, remaining: 6 }
    ])
  })

  it("lists features as of the moment, of the same assignments at one moment after the other", () => {
    const assignments = [
      assignmentOf("early", { expires_at: noon + minute }),
      assignmentOf("late", { expires_at: noon + 2 * minute }),
      assignmentOf("lasting"),
      // What is shown of few is made anew each time.
      ...Array.from({ length: 16 }, (_, index) => assignmentOf(`other-${index}`))
    ]
    const view = { ...viewOf(rowsOf({ assignments, devices: [device] })), cachedViews: {} }
    const codes = (now: number) =>
      entitlementOf(view, device, now, undefined)
        .features.map(({ code }) => code)
        .filter((code) => !code.startsWith("other"))
    const moments: ReadonlyArray<readonly [number, ReadonlyArray<string>]> = [
      [noon, ["early", "lasting", "late"]],
      [noon + minute - 1, ["early", "lasting", "late"]],
      [noon + minute, ["lasting", "late"]],
      [noon + 2 * minute - 1, ["lasting", "late"]],
      [noon + 2 * minute, ["lasting"]],
      // Clocks are set back.
      [noon + minute, ["lasting", "late"]],
      [noon, ["early", "lasting", "late"]]
    ]
    for (const [now, expected] of moments) assert.deepStrictEqual(codes(now), expected)
    const again = entitlementOf(view, device, noon, undefined)
    assert.strictEqual(canonicalize(again), canonicalize(structuredClone(again)))
  })

  it.each([
    ["the interval, where access ends later", noon + 90 * minute + 1, 0, noon + 90 * minute],
    ["the end of access, where that comes first", noon + 90 * minute - 1, 0, noon + 90 * minute - 1],
    ["the interval, where expiry comes first and grace follows", noon + minute, 1, noon + 90 * minute],
    ["the end of grace, where that comes first", noon - day + minute, 1, noon + minute]
  ])("asks for the next check after %s", (_, expires_at, grace_period_days, next) => {
    const rows = { license: { expires_at }, policy: { grace_period_days, validation_interval_minutes: 90 } }
    assert.strictEqual(checked(rows).next_check_at, iso(next))
  })

  it("stays within the calendar at its end", () => {
    const last = Date.UTC(9999, 11, 31, 23, 59, 59, 999)
    const rows = {
      license: { expires_at: last },
      policy: { grace_period_days: 36_500, validation_interval_minutes: 525_600 }
    }
    assert.deepInclude(checked(rows), {
      expires_at: "9999-12-31T23:59:59.999Z",
      access_ends_at: "9999-12-31T23:59:59.999Z",
      next_check_at: iso(noon + 365 * day)
    })
  })

  it.each([0, 16])("asks for the next check when the next included feature ends, beside %i others", (others) => {
    const assignments = [
      assignmentOf("past", { expires_at: noon }),
      assignmentOf("disabled", { expires_at: noon + 1, enabled: false }),
      assignmentOf("early", { expires_at: noon + minute }),
      assignmentOf("late", { expires_at: noon + 2 * minute }),
      ...Array.from({ length: others }, (_, index) => assignmentOf(`other-${index}`))
    ]
    const view = { ...viewOf(rowsOf({ assignments, devices: [device] })), cachedViews: {} }
    for (const [now, next] of [
      [noon, noon + minute],
      [noon + 1, noon + minute],
      [noon + minute, noon + 2 * minute],
      [noon + 2 * minute, noon + 2 * minute + day]
    ] as const) {
      assert.strictEqual(entitlementOf(view, device, now, undefined).next_check_at, iso(next))
    }
  })

  it("follows the contract for any admitted license", () => {
    fc.assert(
      fc.property(anyRows, requests, (rows, request) => {
        const { after, reply } = perform(rows, check, request, noon)
        if (reply === undefined) return
        const { license, policy } = after
        const isActive = rows.license.status === "active"
        const access = (license.expires_at ?? Number.POSITIVE_INFINITY) + policy.grace_period_days * day
        const interval = policy.validation_interval_minutes * minute
        const { id, due_at, holds_slot } = after.devices.find((one) => one.id === deviceOf(request.binding).id)!
        const { version_eligibility, ...rest } = reply
        assert.deepStrictEqual(rest, {
          kind: "entitlement",
          license_id: license.id,
          product_id: license.product_id,
          product_code: productCode,
          policy_id: license.policy_id,
          binding_kind: request.binding.kind,
          binding_hash: request.binding.hash(),
          // An expiry that a clock ahead has recorded is kept for a minute.
          status:
            (license.expires_at ?? Number.POSITIVE_INFINITY) <= (isActive ? noon : noon + minute)
              ? "grace_period"
              : "active",
          license_type: policy.license_type,
          entitlement_version: license.entitlement_counter + policy.entitlement_counter,
          issued_at: iso(noon),
          device_id: id,
          next_check_at: iso(
            Math.min(
              noon + (interval * (policy.require_heartbeat ? 2 : 3)) / 3,
              policy.require_heartbeat && holds_slot ? Math.max(noon, due_at! - interval / 3) : access,
              access,
              ...featureEnds(after)
            )
          ),
          features: features(after, noon),
          ...(license.expires_at !== undefined && {
            expires_at: iso(license.expires_at),
            access_ends_at: iso(access)
          })
        })
        assert.strictEqual(version_eligibility?.app_version, request.binding.app_version)
      }),
      { numRuns: 800 }
    )
  })

  it("is answered alike by every operation, and read by its own schema", () => {
    fc.assert(
      fc.property(anyRows, activations, consumptions, (rows, activation, consumption) => {
        const performed = [
          perform(rows, activate, activation, noon),
          perform(rows, validate, activation, noon),
          perform(rows, check, activation, noon),
          perform(rows, consume, consumption, noon)
        ]
        for (const { after, reply } of performed) {
          if (reply === undefined) continue
          const decoded = decodeEntitlement(reply)
          assert.strictEqual(decoded.issued_at, noon)
          assert.strictEqual(decoded.expires_at, after.license.expires_at)
          assert.deepStrictEqual(reply.features, features(after, noon))
          for (const { remaining } of decoded.features) assert.isAtLeast(remaining ?? 0, 0)
          assert.deepStrictEqual(JSON.parse(JSON.stringify(reply)), reply)
        }
      }),
      { numRuns: 400 }
    )
  })
})

describe("a deactivation", () => {
  it("has these members and no other", () => {
    const { reply } = allowed(
      rowsOf({ devices: [device], assignments: [assignmentOf("api")] }),
      deactivate,
      requestOf(machine)
    )
    assert.deepStrictEqual(reply, {
      kind: "deactivation",
      license_id: "lic_1",
      product_id: "prod_1",
      product_code: productCode,
      policy_id: "pol_1",
      binding_kind: "hardware",
      binding_hash: machine.hash(),
      status: "active",
      license_type: "time_limited",
      entitlement_version: 1,
      issued_at: "2030-01-15T12:00:00.000Z",
      device_id: device.id,
      expires_at: "2030-02-14T12:00:00.000Z",
      access_ends_at: "2030-02-14T12:00:00.000Z"
    })
    decodeDeactivation(reply)
    const lasting = allowed(
      rowsOf({ devices: [device], license: { expires_at: undefined } }),
      deactivate,
      requestOf(machine)
    )
    assert.notProperty(lasting.reply, "expires_at")
  })

  it("is read by its own schema for any license", () => {
    fc.assert(
      fc.property(anyRows, requests, (rows, request) => {
        const { reply } = perform(rows, deactivate, request, noon)
        if (reply !== undefined) assert.strictEqual(decodeDeactivation(reply).device_id, deviceOf(request.binding).id)
      }),
      { numRuns: 300 }
    )
  })
})
