import { assert, describe, it } from "@effect/vitest"
import { DateTime } from "effect"
import * as fc from "fast-check"
import { activate, check, validate } from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { pendingTermEndsAt } from "../../../src/licensing/rules/Terms.ts"
import { gateVersion } from "../../../src/licensing/rules/VersionGate.ts"
import { rows as anyRows } from "../../support/rules/LicenseArbitraries.ts"
import { allowed, perform, refusedWith, viewOf } from "../../support/rules/LicenseRules.ts"
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

const cutoff = noon + day
const iso = (instant: number) => DateTime.formatIso(DateTime.makeUnsafe(instant))
const machine = hardware("machine", { app_version: "2.0" })
const command = {
  keyHash,
  binding: machine,
  newDeviceId: "dev_new",
  feature_code: "api",
  event_id: "event-1",
  amount: 1
}
const usable = { devices: [deviceOf(machine)], assignments: [assignmentOf("api")] }

const gate = (rows: RowsInput, appVersion: string | undefined) => gateVersion(viewOf(rowsOf(rows)), appVersion, noon)

const perpetual = (maintenance_expires_at?: number): RowsInput => ({
  policy: { license_type: "perpetual" },
  license: { expires_at: undefined, maintenance_expires_at }
})

const ending = (license_type: Rows["policy"]["license_type"]): RowsInput => ({
  policy: { license_type },
  license: { expires_at: cutoff, maintenance_expires_at: noon - 900 * day }
})

describe("the version gate", () => {
  it.each([
    ["perpetual", "extend the maintenance", "renew"],
    ["consumption", "ask the vendor to extend the license", "renew"],
    ["subscription", "renew the license", "vendor"],
    ["time_limited", "renew the license", "vendor"],
    ["trial", "renew the license", "vendor"]
  ] as const)("tells a license of the type %s what helps", (type, remedy, misleading) => {
    const rows = { ...(type === "perpetual" ? perpetual(cutoff) : ending(type)), ...usable }
    const { refused } = refusedWith(
      "VERSION_NOT_ENTITLED",
      rowsOf({
        ...rows,
        versions: { "2.0": cutoff + 1 },
        license: { ...rows.license, maintenance_expires_at: type === "perpetual" ? cutoff : undefined }
      }),
      check,
      command
    )
    assert.include(refused.message, remedy)
    assert.notInclude(refused.message, misleading)
  })

  it("is not asked where the request names no version", () => {
    assert.isUndefined(gate({ ...ending("trial"), versions: {} }, undefined))
    assert.isUndefined(gate({ ...ending("trial"), versions: { "2.0": cutoff + 1 } }, undefined))
  })

  it("is not enforced where the product has no versions", () => {
    assert.deepStrictEqual(gate({ ...perpetual(), versions: {} }, "2.0"), {
      app_version: "2.0",
      is_entitled: true,
      enforced: false
    })
    assert.deepStrictEqual(gate({ ...ending("trial"), versions: {} }, "2.0"), {
      app_version: "2.0",
      is_entitled: true,
      enforced: false,
      eligible_through: iso(cutoff)
    })
  })

  it("refuses a version that the catalog does not name letter by letter", () => {
    for (const appVersion of ["2", "2.0 ", "v2.0", "2.0.0", "", "2.0-RC"]) {
      assert.deepInclude(gate({ ...perpetual(), versions: { "2.0": noon, "2.0-rc": noon } }, appVersion), {
        code: "VERSION_UNKNOWN",
        detail: "app_version"
      })
    }
  })

  it.each(["time_limited", "subscription", "trial", "consumption"] as const)(
    "cuts a %s license off at expires_at",
    (type) => {
      const eligibility = (released_at: number) => gate({ ...ending(type), versions: { "2.0": released_at } }, "2.0")
      assert.deepStrictEqual(eligibility(cutoff), {
        app_version: "2.0",
        is_entitled: true,
        enforced: true,
        released_at: iso(cutoff),
        eligible_through: iso(cutoff)
      })
      assert.deepInclude(eligibility(cutoff + 1), { code: "VERSION_NOT_ENTITLED", detail: "app_version" })
    }
  )

  it("cuts a perpetual license off at maintenance_expires_at", () => {
    const eligibility = (released_at: number) => gate({ ...perpetual(cutoff), versions: { "2.0": released_at } }, "2.0")
    assert.deepInclude(eligibility(cutoff), { is_entitled: true, eligible_through: iso(cutoff) })
    assert.deepInclude(eligibility(cutoff + 1), { code: "VERSION_NOT_ENTITLED" })
  })

  it("entitles to every version where there is no cutoff", () => {
    const never = { policy: { license_type: "consumption" }, license: { expires_at: undefined } } as const
    for (const rows of [perpetual(), never]) {
      assert.deepStrictEqual(gate({ ...rows, versions: { "2.0": noon + 9000 * day } }, "2.0"), {
        app_version: "2.0",
        is_entitled: true,
        enforced: true,
        released_at: iso(noon + 9000 * day)
      })
    }
  })

  it.each(["time_limited", "perpetual"] as const)(
    "cuts a %s license off at the end of the term that the request begins",
    (license_type) => {
      const policy = { license_type, duration_days: 3, duration_starts: "first_activation" } as const
      const pending = (released_at: number) =>
        rowsOf({ policy, license: { expires_at: undefined, term_days: 3 }, versions: { "2.0": released_at } })
      const used = allowed(pending(noon + 3 * day), activate, command)
      assert.strictEqual(used.reply.version_eligibility?.eligible_through, iso(noon + 3 * day))
      allowed(used.after, validate, command)
      refusedWith("VERSION_NOT_ENTITLED", pending(noon + 3 * day + 1), activate, command)
      const later = { license: { expires_at: undefined, term_days: 3, starts_at: noon + day } }
      const eligibility = gate({ ...later, policy, versions: { "2.0": noon + 4 * day } }, "2.0")
      assert.deepInclude(eligibility, { is_entitled: true, eligible_through: iso(noon + 4 * day) })
    }
  )

  it("keeps its cutoff through grace", () => {
    const inGrace = { policy: { grace_period_days: 30 }, license: { expires_at: noon - day }, ...usable }
    allowed(rowsOf({ ...inGrace, versions: { "2.0": noon - day } }), validate, command)
    refusedWith("VERSION_NOT_ENTITLED", rowsOf({ ...inGrace, versions: { "2.0": noon - day + 1 } }), validate, command)
  })

  it.each([activate, validate, check, consume])("stands before $name", (rule) => {
    for (const [code, versions] of [
      ["VERSION_UNKNOWN", { "1.0": noon }],
      ["VERSION_NOT_ENTITLED", { "2.0": noon + 31 * day }]
    ] as const) {
      const { refused, after, before } = perform(
        rowsOf({ ...usable, versions }),
        rule as typeof activate,
        command,
        noon
      )
      assert.strictEqual(refused?.code, code)
      assert.deepStrictEqual(after, before)
    }
  })

  it.each([activate, validate, check, consume])("shows in the answer of $name whenever a version was named", (rule) => {
    const rows = rowsOf({ ...usable, versions: { "2.0": noon } })
    assert.deepInclude(allowed(rows, rule as typeof activate, command).reply.version_eligibility, {
      app_version: "2.0",
      is_entitled: true
    })
    const { app_version: _, ...versionless } = machine
    assert.notProperty(
      allowed(rows, rule as typeof activate, { ...command, binding: versionless }).reply,
      "version_eligibility"
    )
  })

  it("entitles to exactly the versions released by the cutoff, and its refusals name the cutoff", () => {
    fc.assert(
      fc.property(
        anyRows,
        fc.option(fc.integer({ min: noon - 9 * day, max: noon + 40 * day }), { nil: undefined }),
        (given, released_at) => {
          const rows: Rows = {
            ...given,
            versions: { "1.0": noon, ...(released_at === undefined ? undefined : { "2.0": released_at }) }
          }
          const through =
            (rows.policy.license_type === "perpetual"
              ? rows.license.maintenance_expires_at
              : rows.license.expires_at) ?? pendingTermEndsAt(viewOf(rows), noon)
          const eligibility = gateVersion(viewOf(rows), "2.0", noon)
          if (released_at === undefined) assert.deepInclude(eligibility, { accepted: false, code: "VERSION_UNKNOWN" })
          else if (released_at > (through ?? released_at))
            assert.deepInclude(eligibility, { accepted: false, code: "VERSION_NOT_ENTITLED" })
          else assert.deepInclude(eligibility, { is_entitled: true, enforced: true, released_at: iso(released_at) })
        }
      )
    )
  })
})

describe("a refused version", () => {
  it("names the instant until which versions belong to the license", () => {
    const refused = gate({ ...ending("trial"), versions: { "2.0": cutoff + 1 } }, "2.0")
    assert.deepInclude(refused, { code: "VERSION_NOT_ENTITLED", facts: { eligible_through: iso(cutoff) } })
  })
})
