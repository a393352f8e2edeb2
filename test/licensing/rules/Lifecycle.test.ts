import { assert, describe, it } from "@effect/vitest"
import { expiredFeatures } from "../../../src/licensing/model/FeatureExpiry.ts"
import type { LicenseStatus } from "../../../src/licensing/model/License.ts"
import {
  entitlementVersionAt,
  isCutOff,
  isOverdue,
  reinstate,
  revoke,
  settle,
  statusAt,
  statusUnseated,
  suspend
} from "../../../src/licensing/rules/Lifecycle.ts"
import { allowed, perform, refusedWith, viewOf } from "../../support/rules/LicenseRules.ts"
import {
  day,
  deviceOf,
  dueAfter,
  hardware,
  leaseOf,
  noon,
  type Rows,
  type RowsInput,
  rowsOf
} from "../../support/rules/Licenses.ts"

const rules = { suspend, reinstate, revoke }
const versionAt = ({ assignments, license, policy }: Rows, now: number) =>
  entitlementVersionAt(license, policy, expiredFeatures(assignments, now).length, now)
const statusOf = ({ license, policy }: Rows, now: number) => statusAt(license, policy, now)

/** What the clock makes of a license that is stored as active or suspended; grace is three days in all of them. */
const clocks = {
  active: { expires_at: noon + day },
  grace_period: { expires_at: noon - day },
  expired: { expires_at: noon - 4 * day }
} as const

const slotted = deviceOf(hardware("machine"))
const seated = deviceOf(hardware("seat holder"), { holds_slot: false })
const retired = deviceOf(hardware("retired"), { status: "deactivated" })

const rowsIn = (license: RowsInput["license"]): Rows =>
  rowsOf({ license, policy: { grace_period_days: 3 }, devices: [slotted, seated, retired], leases: [leaseOf(seated)] })

/** A license in a state: as the database says it, or by the clock alone while the database still says active. */
const written = (status: LicenseStatus) =>
  rowsIn({ status, ...(status in clocks ? clocks[status as keyof typeof clocks] : undefined) })
const byClock = (status: keyof typeof clocks) => rowsIn(clocks[status])

const clockEvents: { readonly [status in Row[3]]?: string } = {
  grace_period: "license.grace_period_started",
  expired: "license.expired"
}

type Row = readonly [from: string, rows: Rows, trigger: keyof typeof rules, to: LicenseStatus | "no-op" | "refused"]

const table: ReadonlyArray<Row> = [
  ["active", written("active"), "suspend", "suspended"],
  ["grace_period", written("grace_period"), "suspend", "suspended"],
  ["grace_period by the clock", byClock("grace_period"), "suspend", "suspended"],
  ["expired", written("expired"), "suspend", "suspended"],
  ["expired by the clock", byClock("expired"), "suspend", "suspended"],
  ["suspended", written("suspended"), "suspend", "no-op"],
  ["revoked", written("revoked"), "suspend", "refused"],
  ["suspended before its expiry", rowsIn({ status: "suspended", ...clocks.active }), "reinstate", "active"],
  ["suspended and in grace", rowsIn({ status: "suspended", ...clocks.grace_period }), "reinstate", "grace_period"],
  ["suspended past its grace", rowsIn({ status: "suspended", ...clocks.expired }), "reinstate", "expired"],
  ["suspended and perpetual", rowsIn({ status: "suspended", expires_at: undefined }), "reinstate", "active"],
  ["active", written("active"), "reinstate", "no-op"],
  ["grace_period", written("grace_period"), "reinstate", "no-op"],
  ["grace_period by the clock", byClock("grace_period"), "reinstate", "no-op"],
  ["expired", written("expired"), "reinstate", "refused"],
  ["expired by the clock", byClock("expired"), "reinstate", "refused"],
  ["revoked", written("revoked"), "reinstate", "refused"],
  ["active", written("active"), "revoke", "revoked"],
  ["grace_period", written("grace_period"), "revoke", "revoked"],
  ["grace_period by the clock", byClock("grace_period"), "revoke", "revoked"],
  ["expired", written("expired"), "revoke", "revoked"],
  ["expired by the clock", byClock("expired"), "revoke", "revoked"],
  ["suspended", written("suspended"), "revoke", "revoked"],
  ["revoked", written("revoked"), "revoke", "no-op"]
]

describe("transitions", () => {
  it.each(table)("from %s", (_, rows, trigger, to) => {
    const rule = rules[trigger]
    if (to === "refused") {
      const { refused } = refusedWith("LICENSE_STATE_CONFLICT", rows, rule, undefined)
      assert.strictEqual(refused.detail, statusOf(rows, noon))
      return
    }
    const { before, after, changes } = allowed(rows, rule, undefined)
    if (to === "no-op") {
      assert.deepStrictEqual(after, before)
      return
    }
    assert.strictEqual(after.license.status, to)
    assert.strictEqual(after.license.updated_at, noon)
    assert.strictEqual(versionAt(after, noon), versionAt(rows, noon) + 1)
    const event = { resource_type: "license", resource_id: rows.license.id }
    const ofClock = clockEvents[to]
    assert.deepStrictEqual<ReadonlyArray<unknown>>(changes.events ?? [], [
      {
        event_type: { suspend: "license.suspended", reinstate: "license.reinstated", revoke: "license.revoked" }[
          trigger
        ],
        ...event,
        metadata: { status: { old: statusOf(rows, noon), new: to } }
      },
      ...(ofClock === undefined ? [] : [{ event_type: ofClock, ...event, metadata: { status: to } }])
    ])
  })

  it.each(table)("from %s are the same where nothing has written the time down yet", (_, rows, trigger) => {
    const outcome = rules[trigger].decide(viewOf(rows), undefined, noon)
    const { changes, refused } = perform(rows, rules[trigger], undefined, noon)
    assert.strictEqual(outcome.accepted ? undefined : outcome.code, refused?.code)
    if (outcome.accepted) assert.deepStrictEqual(outcome.changes.events, changes.events)
  })

  it("ends leases and leaves slots alone when a license is suspended", () => {
    const { after } = allowed(written("active"), suspend, undefined)
    assert.deepStrictEqual(after.leases, [leaseOf(seated, { status: "ended", ended_at: noon })])
    assert.deepStrictEqual(viewOf(after).deviceById(slotted.id), slotted)
    assert.strictEqual(after.license.active_device_count, 1)
  })

  it("ends leases and deactivates every active device when a license is revoked", () => {
    const { after } = allowed(written("active"), revoke, undefined)
    assert.deepStrictEqual(after.leases, [leaseOf(seated, { status: "ended", ended_at: noon })])
    assert.deepStrictEqual(after.devices, [
      ...[slotted, seated].map((device) => ({
        ...device,
        status: "deactivated" as const,
        holds_slot: false,
        updated_at: noon
      })),
      retired
    ])
    assert.strictEqual(after.license.active_device_count, 0)
  })

  it("names the remedy for an expired license by its type", () => {
    const refusalOf = (license_type: "trial" | "consumption") => {
      const rows = rowsOf({ license: clocks.expired, policy: { license_type } })
      return refusedWith("LICENSE_STATE_CONFLICT", rows, reinstate, undefined).refused.message
    }
    assert.match(refusalOf("trial"), /: renew it instead\.$/)
    assert.match(refusalOf("consumption"), /: update its expires_at instead\.$/)
  })

  it("asks for the devices that a revocation deactivates", () => {
    assert.deepStrictEqual(revoke.needs?.(undefined), { activeDevices: true, allLeases: true })
  })
})

describe("the state of a license that a clock ahead has recorded", () => {
  const at = (status: LicenseStatus, expires_at: number) => statusOf(rowsOf({ license: { status, expires_at } }), noon)

  it("stays for a minute, unless its end has moved", () => {
    assert.strictEqual(at("expired", noon + 60_000), "expired")
    assert.strictEqual(at("expired", noon + 60_001), "active")
    const inGrace = rowsOf({
      license: { status: "grace_period", expires_at: noon + 60_000 },
      policy: { grace_period_days: 3 }
    })
    assert.strictEqual(statusOf(inGrace, noon), "grace_period")
    assert.strictEqual(statusOf(inGrace, noon - 1), "active")
  })
})

describe("a lapsed activation", () => {
  const device = deviceOf(hardware("late"), { due_at: noon - 1 })
  const isLate = (license: RowsInput["license"], due_at = noon - 1) => {
    const rows = rowsOf({ license, policy: { require_heartbeat: true } })
    return isOverdue({ ...device, due_at }, rows.license, rows.policy, noon)
  }

  it("lapses only while the runtime serves the license", () => {
    assert.isTrue(isLate({}))
    assert.isTrue(isLate({ expires_at: undefined }))
    assert.isFalse(isLate({}, noon))
    assert.isFalse(isLate({ status: "suspended" }))
    assert.isFalse(isLate({ status: "revoked" }))
    assert.isTrue(isLate({ expires_at: noon + 1 }))
    assert.isFalse(isLate({ expires_at: noon }))
    assert.isFalse(isLate({ expires_at: noon - 1 }))
  })
})

describe("a lease at the end of access", () => {
  const lease = { expires_at: noon + day }

  it("is cut off if it would last longer and is not borrowed", () => {
    const cut = (given: object, license: { readonly expires_at?: number }, now = noon) =>
      isCutOff({ ...lease, ...given }, { status: "active", ...license }, { grace_period_days: 0 }, now)
    assert.isTrue(cut({}, { expires_at: noon }))
    assert.isFalse(cut({}, { expires_at: noon + 1 }))
    assert.isFalse(cut({}, {}))
    assert.isTrue(cut({ expires_at: noon }, { expires_at: noon }))
    assert.isFalse(cut({ expires_at: noon - 1 }, { expires_at: noon }))
    assert.isFalse(cut({ borrowed_until: noon + 1 }, { expires_at: noon }))
    assert.isTrue(cut({ borrowed_until: noon }, { expires_at: noon }))
  })

  it("ends also if the end of the license was recorded before", () => {
    const rows = rowsOf({
      license: { status: "expired", expires_at: noon - day },
      devices: [seated],
      leases: [leaseOf(seated)]
    })
    const changes = settle(viewOf(rows), noon)
    assert.deepStrictEqual(changes?.leases, [leaseOf(seated, { status: "ended", ended_at: noon })])
    assert.deepStrictEqual(changes?.events, [])
  })

  it("lapses without its device, and with others in the order of their ends and ids", () => {
    const [first, second] = [leaseOf(slotted, { id: "lse_a" }), leaseOf(seated, { id: "lse_b" })]
    for (const leases of [
      [first, second],
      [second, first]
    ]) {
      const changes = settle(viewOf(rowsOf({ leases })), first.expires_at)
      assert.deepStrictEqual(changes?.devices, [])
      assert.deepStrictEqual(
        changes?.leases?.map(({ id }) => id),
        ["lse_a", "lse_b"]
      )
    }
  })
})

describe("a device after its seat", () => {
  it("is active with an activation, expired with a lapsed one, otherwise as given", () => {
    assert.strictEqual(statusUnseated(slotted, "deactivated"), "active")
    const lapsed = deviceOf(hardware("lapsed"), { holds_slot: false, activated_at: noon - day })
    assert.strictEqual(statusUnseated(lapsed, "deactivated"), "expired")
    assert.strictEqual(statusUnseated({ ...lapsed, activated_at: undefined }, "deactivated"), "deactivated")
  })
})

describe("a reinstatement", () => {
  it("gives every device a whole interval, and is refused by name for a revoked license", () => {
    const { after } = allowed(rowsIn({ status: "suspended", ...clocks.active }), reinstate, undefined)
    assert.strictEqual(after.license.not_due_before, dueAfter(noon))
    const { refused } = refusedWith("LICENSE_STATE_CONFLICT", written("revoked"), reinstate, undefined)
    assert.match(refused.message, /^The license is revoked/)
  })
})
