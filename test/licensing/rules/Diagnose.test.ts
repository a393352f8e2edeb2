import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { Code } from "../../../src/contract/api/ErrorCode.ts"
import { activate, check, validate } from "../../../src/licensing/rules/Activation.ts"
import type { RuntimeCommand } from "../../../src/licensing/rules/Admission.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { type DiagnoseCommand, diagnose } from "../../../src/licensing/rules/Diagnose.ts"
import { checkout } from "../../../src/licensing/rules/Floating.ts"
import type { Rule } from "../../../src/licensing/rules/LicenseCommand.ts"
import { issueOffline } from "../../../src/licensing/rules/Offline.ts"
import { activations, checkouts, consumptions, requests } from "../../support/rules/CommandArbitraries.ts"
import { rows as anyRows, mostly } from "../../support/rules/LicenseArbitraries.ts"
import { allowed, perform } from "../../support/rules/LicenseRules.ts"
import {
  activationOf,
  assignmentOf,
  container,
  day,
  deviceOf,
  hardware,
  keyHash,
  leaseOf,
  minute,
  noon,
  productCode,
  type Rows,
  type RowsInput,
  rowsOf
} from "../../support/rules/Licenses.ts"

const refusalOf = <Command, Reply, C extends Code>(
  rows: Rows,
  rule: Rule<Command, Reply, C>,
  command: NoInfer<Command>
) => {
  const { refused } = perform(rows, rule, command, noon)
  return refused === undefined ? { admitted: true } : { admitted: false, code: refused.code, message: refused.message }
}

/** The operation, asked right after the diagnosis, decides as the diagnosis says; so does an activation. */
const agrees = <Command extends RuntimeCommand, Reply, C extends Code>(
  operation: DiagnoseCommand["operation"],
  rule: Rule<Command, Reply, C>,
  commands: fc.Arbitrary<
    Command & { readonly feature_code?: string; readonly amount?: number; readonly until?: number | undefined }
  >
) =>
  it(`decides as ${operation} does`, () => {
    fc.assert(
      fc.property(
        anyRows,
        commands,
        mostly<string | undefined>(undefined, productCode, "other"),
        (rows, any, named) => {
          const command = { ...any, keyHash, productCode: named }
          const { binding, feature_code, amount = 1, until } = command
          const question = {
            operation,
            activate: "activation" in command,
            binding,
            product_code: named,
            app_version: binding.app_version,
            feature_code,
            amount,
            until
          }
          const { changes, reply } = perform(rows, diagnose, question, noon)
          assert.deepStrictEqual(changes, {})
          const { activation, admitted, checks, code, message } = reply!
          const decided = code === undefined ? { admitted } : { admitted, code, message }
          assert.deepStrictEqual(decided, refusalOf(rows, rule, command))
          assert.strictEqual(checks.find(({ passed }) => !passed)?.code, code)
          if (operation === "validate" && admitted) assert.isUndefined(activation)
          if (activation === undefined) return
          const activating = { ...activationOf(binding), keyHash, productCode: named, binding }
          assert.deepStrictEqual({ ...activation }, refusalOf(rows, activate, activating))
        }
      ),
      { numRuns: 400 }
    )
  })

describe("a diagnosis", () => {
  agrees("activate", activate, activations)
  agrees("validate", validate, requests)
  agrees("check", check, requests)
  agrees(
    "consume",
    consume,
    consumptions.map((command) => ({ ...command, event_id: "new" }))
  )
  agrees("checkout", checkout, checkouts(requests))
  agrees("offline", issueOffline, requests)
  agrees(
    "offline",
    issueOffline,
    requests.map((command) => ({ ...command, activation: activationOf(command.binding) }))
  )
})

const machine = hardware("machine", { app_version: "1.0" })
const device = deviceOf(machine)
const usable = {
  devices: [device],
  assignments: [assignmentOf("api", { max_consumptions: 5 })],
  versions: { "1.0": noon }
}

const asked = (rows: RowsInput, question: Partial<DiagnoseCommand> = {}) =>
  allowed(rowsOf(rows), diagnose, { operation: "validate", amount: 1, activate: false, ...question }).reply

const namesOf = (rows: RowsInput, question: Partial<DiagnoseCommand>) =>
  asked(rows, question).checks.map(({ name }) => name)

/** The codes of the failed checks, by their names. */
const failed = (rows: RowsInput, question: Partial<DiagnoseCommand> = {}) =>
  Object.fromEntries(asked(rows, question).checks.flatMap(({ code, name, passed }) => (passed ? [] : [[name, code]])))

describe("the checks of a diagnosis", () => {
  const everything = { product_code: productCode, binding: machine, app_version: "1.0", feature_code: "api" }
  const license = ["product", "license_status", "license_start"]
  const binding = ["device_blacklist", "virtual_machine", "container"]
  const feature = ["feature_entitled", "feature_enabled", "feature_expiry", "feature_quota"]

  it.each([
    ["validate", {}, [], [], "device_active"],
    ["check", { activate: true }, [], [], "device_active"],
    ["consume", {}, [], [], "device_active"],
    ["activate", {}, [], [], "activation_limit"],
    ["offline", {}, ["offline_allowed"], [], "device_active"],
    ["offline", { activate: true }, ["offline_allowed"], [], "activation_limit"],
    ["checkout", {}, ["floating_enabled"], [], "floating_limit"],
    ["checkout", { until: noon + day }, ["floating_enabled", "borrowing_allowed"], ["borrowed_time"], "floating_limit"]
  ] as const)("are in the order of refusals for %s with %j", (operation, given, permissions, times, last) => {
    const rows = { ...usable, policy: { borrow_days_max: 30 } }
    const { admitted, checks } = asked(rows, { operation, ...everything, ...given })
    const names = [...license, ...binding, ...permissions, "app_version", ...times, last, ...feature]
    assert.deepStrictEqual(
      checks,
      names.map((name) => ({ name, passed: true }))
    )
    assert.isTrue(admitted)
  })

  it("are only those of the license where the request says nothing else", () => {
    assert.deepStrictEqual(asked({}), {
      admitted: true,
      status: "active",
      checks: [
        { name: "license_status", passed: true },
        { name: "license_start", passed: true }
      ]
    })
    const checkout = ["license_status", "license_start", "floating_enabled"]
    assert.deepStrictEqual(namesOf({}, { operation: "checkout" }), checkout)
    const until = [...checkout, "borrowing_allowed", "borrowed_time"]
    assert.deepStrictEqual(namesOf({}, { operation: "checkout", until: noon + day }), until)
    assert.deepStrictEqual(namesOf({}, { operation: "activate", until: noon }), ["license_status", "license_start"])
  })

  it("fail each for its own reason", () => {
    const reasons: ReadonlyArray<readonly [RowsInput, Partial<DiagnoseCommand>, object]> = [
      [{}, { product_code: "another" }, { product: "PRODUCT_MISMATCH" }],
      [{ license: { status: "suspended" } }, {}, { license_status: "LICENSE_SUSPENDED" }],
      [{ license: { starts_at: noon + 1 } }, {}, { license_start: "LICENSE_NOT_STARTED" }],
      [
        { license: { status: "suspended", starts_at: noon + 1 } },
        {},
        { license_status: "LICENSE_SUSPENDED", license_start: "LICENSE_NOT_STARTED" }
      ],
      [
        { devices: [deviceOf(machine, { status: "blacklisted" })] },
        { binding: machine },
        { device_blacklist: "DEVICE_BLACKLISTED", device_active: "DEVICE_NOT_ACTIVE" }
      ],
      [
        { policy: { allow_offline_activation: false } },
        { operation: "offline" },
        { offline_allowed: "OFFLINE_NOT_ALLOWED" }
      ],
      [{ policy: { max_floating_users: 0 } }, { operation: "checkout" }, { floating_enabled: "FLOATING_NOT_ENABLED" }],
      [
        { policy: { borrow_days_max: 1 } },
        { operation: "checkout", until: noon + 2 * day },
        { borrowed_time: "BORROW_TOO_LONG" }
      ],
      [{ versions: { "1.0": noon } }, { app_version: "2.0" }, { app_version: "VERSION_UNKNOWN" }],
      [{}, { feature_code: "api" }, { feature_entitled: "FEATURE_NOT_ENTITLED" }],
      [
        { assignments: [assignmentOf("api", { enabled: false })] },
        { feature_code: "api" },
        { feature_enabled: "FEATURE_DISABLED" }
      ],
      [
        { assignments: [assignmentOf("api", { expires_at: noon })] },
        { feature_code: "api" },
        { feature_expiry: "FEATURE_EXPIRED" }
      ],
      [usable, { feature_code: "api", amount: 6 }, { feature_quota: "USAGE_LIMIT_EXCEEDED" }]
    ]
    for (const [rows, question, codes] of reasons) assert.deepStrictEqual(failed(rows, question), codes)
  })

  it("of a feature that the license lacks end there", () => {
    assert.deepStrictEqual(namesOf({}, { feature_code: "api" }), [
      "license_status",
      "license_start",
      "feature_entitled"
    ])
  })

  it("do not refuse the device its own slot, also while that is only held for it", () => {
    const full = { policy: { max_activations: 1 } }
    const question = { operation: "activate", binding: machine } as const
    assert.deepStrictEqual(failed({ ...full, devices: [device] }, question), {})
    const held = deviceOf(machine, { status: "deactivated", slot_held_until: noon + 1 })
    const license = { slots_held_until: noon + 1 }
    assert.deepStrictEqual(failed({ ...full, license, devices: [held] }, question), {})
    const other = deviceOf(hardware("other"))
    const seated = deviceOf(machine, { holds_slot: false })
    for (const devices of [[other], [other, seated], [other, deviceOf(machine, { status: "reset" })]])
      assert.deepStrictEqual(failed({ ...full, devices }, question), { activation_limit: "ACTIVATION_LIMIT_REACHED" })
  })

  it("give a device with a seat its own seat again", () => {
    const seated = deviceOf(machine, { holds_slot: false })
    const rows = { policy: { max_floating_users: 1 }, devices: [seated], leases: [leaseOf(seated)] }
    assert.deepStrictEqual(failed(rows, { operation: "checkout", binding: machine }), {})
    assert.deepStrictEqual(failed(rows, { operation: "checkout", binding: hardware("other") }), {
      floating_limit: "FLOATING_LIMIT_REACHED"
    })
    assert.deepStrictEqual(failed(rows, { operation: "offline", binding: machine }), {
      device_active: "DEVICE_NOT_ACTIVE"
    })
  })

  it("let a borrowed seat last as long as the term that the checkout begins", () => {
    const rows = {
      license: { expires_at: undefined, term_days: 10 },
      policy: { duration_days: 10, duration_starts: "first_activation", borrow_days_max: 30 }
    } as const
    const borrowing = (until: number) => failed(rows, { operation: "checkout", until })
    assert.deepStrictEqual(borrowing(noon + 10 * day), {})
    assert.deepStrictEqual(borrowing(noon + 10 * day + 1), { borrowed_time: "BORROW_TOO_LONG" })
  })

  it("tell an overdue heartbeat apart for validate only", () => {
    const late = deviceOf(machine, { due_at: noon - minute })
    const rows = { policy: { require_heartbeat: true }, devices: [late] }
    const activeOf = (operation: "validate" | "check" | "consume") => failed(rows, { operation, binding: machine })
    assert.deepStrictEqual(activeOf("validate"), { device_active: "HEARTBEAT_OVERDUE" })
    for (const operation of ["check", "consume"] as const)
      assert.deepStrictEqual(activeOf(operation), { device_active: "DEVICE_NOT_ACTIVE" })
  })
})

describe("a failed check", () => {
  it("tells the vendor what the vendor can do, while the message tells the customer to ask", () => {
    const diagnosed = (rows: RowsInput, question?: Partial<DiagnoseCommand>) => {
      const { checks, code, message } = asked(rows, question)
      const { detail } = checks.find((check) => check.code === code)!
      return { detail, message }
    }
    assert.deepStrictEqual(diagnosed({ license: { status: "suspended" } }), {
      message: "The license is suspended: ask the vendor to reinstate it.",
      detail: "The license is suspended: reinstate it."
    })
    assert.deepStrictEqual(diagnosed({ license: { status: "revoked" } }), {
      message: "The license is revoked and cannot be used again: ask the vendor for a new one.",
      detail: "The license is revoked and cannot be used again: issue a new one."
    })
  })
})

describe("a diagnosis of a device that is not active", () => {
  it("says what an activation would decide, which no feature can refuse", () => {
    const question = { binding: machine, feature_code: "unknown" }
    const { activation } = asked({}, question)
    assert.deepStrictEqual(activation, { admitted: true })
    const rows = { policy: { max_activations: 1 }, devices: [deviceOf(hardware("other"))] }
    assert.deepInclude(asked(rows, question).activation, { admitted: false, code: "ACTIVATION_LIMIT_REACHED" })
    assert.notProperty(asked(usable, question), "activation")
    assert.notProperty(asked({}), "activation")
  })
})

describe("what a diagnosis reads first", () => {
  it("is the device and the version, and for a checkout the seats", () => {
    const question = { operation: "validate", amount: 1, activate: false, app_version: "1.0" } as const
    const pod = container("pod")
    assert.deepStrictEqual(diagnose.needs?.(question), { seats: false, appVersion: "1.0" })
    assert.deepStrictEqual(diagnose.needs?.({ ...question, operation: "checkout", binding: pod }), {
      binding: { kind: "container", key: pod.key },
      activeContainers: true,
      seats: true,
      appVersion: "1.0"
    })
  })
})
