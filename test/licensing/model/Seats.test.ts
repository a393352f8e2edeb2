/** Floating seats at their boundaries: what refusals tell, borrowed time, and leases that no sweep has ended yet. */
import { assert, describe, it } from "@effect/vitest"
import { reset } from "../../../src/licensing/changes/DeviceActions.ts"
import type { LeaseRecord } from "../../../src/licensing/model/LicenseRecords.ts"
import { validate } from "../../../src/licensing/rules/Activation.ts"
import { checkin, checkout, heartbeat } from "../../../src/licensing/rules/Floating.ts"
import { suspend } from "../../../src/licensing/rules/Lifecycle.ts"
import { borrowedUntil, endUnborrowed } from "../../../src/licensing/rules/Seats.ts"
import { allowed, refusedWith, viewOf } from "../../support/rules/LicenseRules.ts"
import {
  activationOf,
  day,
  deviceOf,
  hardware,
  keyHash,
  leaseOf,
  minute,
  noon,
  type RowsInput,
  requestOf,
  rowsOf
} from "../../support/rules/Licenses.ts"

const machine = hardware("machine")
const seated = deviceOf(machine, { holds_slot: false, activated_at: undefined })
const lease = leaseOf(seated)
const named = { keyHash, tokenHash: lease.token_hash }
const end = lease.expires_at

const checkoutOf = (name: string, until?: number) => ({
  ...activationOf(hardware(name)),
  ...{ newLeaseId: `lse_${name}`, leaseToken: `token ${name}`, tokenHash: `hash ${name}`, until }
})

const one = (rows: RowsInput = {}) =>
  rowsOf({ devices: [seated], leases: [lease], ...rows, policy: { max_floating_users: 1, ...rows.policy } })

describe("a refused checkout", () => {
  it("tells how many seats there are", () => {
    const { refused } = refusedWith("FLOATING_LIMIT_REACHED", one(), checkout, checkoutOf("other"))
    assert.deepStrictEqual([refused.detail, refused.facts], ["1", { max: 1, used: 1 }])
  })

  it("names `until`, and until when a seat can be borrowed", () => {
    const refusedUntil = (
      code: "BORROWING_NOT_ALLOWED" | "VALIDATION_ERROR" | "BORROW_TOO_LONG",
      days: number,
      until: number
    ) => refusedWith(code, rowsOf({ policy: { borrow_days_max: days } }), checkout, checkoutOf("a", until)).refused
    assert.strictEqual(refusedUntil("BORROWING_NOT_ALLOWED", 0, noon + 1).detail, "until")
    assert.strictEqual(refusedUntil("VALIDATION_ERROR", 1, noon).detail, "until")
    const long = refusedUntil("BORROW_TOO_LONG", 1, noon + day + 1)
    assert.deepStrictEqual([long.detail, long.facts], ["until", { until_max: new Date(noon + day).toISOString() }])
  })
})

describe("a checkout", () => {
  it("that is repeated gets the lease that it made, also if that has ended", () => {
    const first = allowed(one({ devices: [], leases: [] }), checkout, checkoutOf("a"))
    const again = allowed(first.after, checkout, checkoutOf("a"), noon + minute)
    assert.deepStrictEqual(again.changes, {})
    assert.strictEqual(again.reply.lease_expires_at, first.reply.lease_expires_at)
    const late = allowed(first.after, checkout, checkoutOf("a"), noon + 31 * minute)
    assert.deepStrictEqual(late.changes, {})
  })

  it("that borrows for less than the usual time ends then", () => {
    const rows = rowsOf({ policy: { borrow_days_max: 1 } })
    const { after, reply } = allowed(rows, checkout, checkoutOf("a", noon + 10 * minute))
    assert.strictEqual(reply.lease_expires_at, new Date(noon + 10 * minute).toISOString())
    assert.deepInclude(after.leases[0], { expires_at: noon + 10 * minute, borrowed_until: noon + 10 * minute })
  })
})

describe("a lapsed lease that no sweep has ended yet", () => {
  const beatAt = (now: number) => heartbeat.decide(viewOf(one()), named, now)

  it("takes its own seat again with a heartbeat, from its last instant on", () => {
    for (const now of [end, end + minute, end + day - 1]) assert.isTrue(beatAt(now).accepted, `${now - end}`)
  })

  it("makes its device active until its last instant", () => {
    const validateAt = (now: number) => validate.decide(viewOf(one()), requestOf(machine), now).accepted
    assert.deepStrictEqual([validateAt(end - 1), validateAt(end)], [true, false])
  })

  it("comes too late after 24 hours", () => {
    const outcome = beatAt(end + day)
    if (outcome.accepted) return assert.fail("accepted")
    assert.strictEqual(outcome.code, "LEASE_EXPIRED")
    assert.include(outcome.message, "24 hours ago")
  })
})

describe("a lease", () => {
  it("without its device is unknown", () => {
    const rows = one({ devices: [] })
    refusedWith("LEASE_NOT_FOUND", rows, heartbeat, named)
    refusedWith("LEASE_NOT_FOUND", rows, checkin, named)
  })

  it("that is borrowed by a device that was reset is taken, but has ended for the device", () => {
    const borrowed = { ...lease, borrowed_until: noon + day, expires_at: noon + day }
    const { after } = allowed(one({ leases: [borrowed] }), reset, { device_id: seated.id })
    assert.strictEqual(after.leases[0]?.status, "live")
    assert.strictEqual(refusedWith("LEASE_NOT_ACTIVE", after, heartbeat, named).refused.detail, "ended")
  })
})

describe("a borrowed seat", () => {
  const borrowed = (given: Partial<LeaseRecord>): LeaseRecord => ({ ...lease, borrowed_until: noon + day, ...given })

  it("is one until its last instant, while its lease is live", () => {
    assert.strictEqual(borrowedUntil(borrowed({}), noon + day - 1), noon + day)
    assert.isUndefined(borrowedUntil(borrowed({}), noon + day))
    assert.isUndefined(borrowedUntil(borrowed({ status: "ended" }), noon))
    assert.isUndefined(borrowedUntil(lease, noon))
    assert.isUndefined(borrowedUntil(undefined, noon))
  })

  it("stays when others end, but not longer than borrowed", () => {
    const longer = borrowed({ expires_at: noon + 2 * day })
    const exact = borrowed({ expires_at: noon + day })
    assert.deepStrictEqual(endUnborrowed([lease, longer, exact], "ended", noon), [
      { ...lease, status: "ended", ended_at: noon },
      { ...longer, expires_at: noon + day }
    ])
  })

  it("keeps its device active when the license is suspended", () => {
    const other = deviceOf(hardware("other"), { holds_slot: false, activated_at: undefined })
    const leases = [borrowed({ expires_at: noon + 2 * day }), leaseOf(other)]
    const { after } = allowed(rowsOf({ devices: [seated, other], leases }), suspend, undefined)
    assert.deepStrictEqual(
      after.devices.map(({ status }) => status),
      ["active", "deactivated"]
    )
    assert.strictEqual(after.leases[0]?.expires_at, noon + day)
  })
})
