/** Borrowed seats: who may borrow until when, and what ends them. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { formatTimestamp } from "../../../src/contract/api/Timestamp.ts"
import { blacklist, reset, unblacklist } from "../../../src/licensing/changes/DeviceActions.ts"
import { transfer } from "../../../src/licensing/changes/Transfer.ts"
import { update } from "../../../src/licensing/changes/Update.ts"
import { validate } from "../../../src/licensing/rules/Activation.ts"
import { type CheckoutCommand, checkin, checkout, heartbeat } from "../../../src/licensing/rules/Floating.ts"
import { accessEndsAt, reinstate, revoke, suspend } from "../../../src/licensing/rules/Lifecycle.ts"
import { sha256Hex } from "../../../src/platform/signing/Digest.ts"
import { rows as anyRows } from "../../support/rules/LicenseArbitraries.ts"
import { allowed, eventTypes, perform, refusedWith, settled } from "../../support/rules/LicenseRules.ts"
import {
  day,
  deviceOf,
  hardware,
  keyHash,
  minute,
  noon,
  type Rows,
  requestOf,
  rowsOf
} from "../../support/rules/Licenses.ts"
import { afterEachStep } from "../../support/rules/Steps.ts"

const machine = hardware("machine")
const other = hardware("other machine")
const device_id = deviceOf(machine).id

const borrowing = (binding: typeof machine, token: string, until?: number): CheckoutCommand => ({
  ...requestOf(binding),
  newDeviceId: deviceOf(binding).id,
  newLeaseId: `lse_${token}`,
  leaseToken: `lease_${token}`,
  tokenHash: sha256Hex(`lease_${token}`),
  until
})
const lease = (token: string) => ({ keyHash, tokenHash: sha256Hex(`lease_${token}`) })

/** One seat that may be borrowed for a week. */
const one = rowsOf({ policy: { max_floating_users: 1, borrow_days_max: 7 } })
const until = noon + 3 * day
/** The machine has borrowed it for three days. */
const borrowed = allowed(one, checkout, borrowing(machine, "1", until)).after

const leaseStates = ({ leases }: Rows) => Object.fromEntries(leases.map(({ id, status }) => [id, status]))
const takes = (rows: Rows, now: number) =>
  refusedWith("FLOATING_LIMIT_REACHED", rows, checkout, borrowing(other, "2"), now)
const isFree = (rows: Rows, now = noon) => allowed(rows, checkout, borrowing(other, "2"), now)

describe("a checkout with until", () => {
  it("borrows the seat until then, and says so in the response and the event", () => {
    const { changes, reply } = allowed(one, checkout, borrowing(machine, "1", until))
    const borrowed_until = formatTimestamp(until)
    assert.deepInclude(reply, { borrowed_until, lease_expires_at: borrowed_until })
    assert.deepInclude(changes.events?.[0]?.metadata, { borrowed_until })
    takes(borrowed, until - 1)
    assert.deepStrictEqual(leaseStates(isFree(borrowed, until).after), { lse_1: "expired", lse_2: "live" })
    assert.notProperty(allowed(one, checkout, borrowing(machine, "1")).reply, "borrowed_until")
  })

  it("lends for at most borrow_days_max, and says until when", () => {
    const last = noon + 7 * day
    allowed(one, checkout, borrowing(machine, "1", last))
    const { refused } = refusedWith("BORROW_TOO_LONG", one, checkout, borrowing(machine, "1", last + 1))
    assert.deepStrictEqual(refused.facts, { until_max: formatTimestamp(last) })
    for (const borrow_days_max of [undefined, 0])
      refusedWith(
        "BORROWING_NOT_ALLOWED",
        rowsOf({ policy: { borrow_days_max } }),
        checkout,
        borrowing(machine, "1", noon + 1)
      )
  })

  it("lends until the end of access, also of a term that begins with it", () => {
    const ending = {
      ...one,
      license: { ...one.license, expires_at: noon + day },
      policy: { ...one.policy, grace_period_days: 1 }
    }
    allowed(ending, checkout, borrowing(machine, "1", noon + 2 * day))
    refusedWith("BORROW_TOO_LONG", ending, checkout, borrowing(machine, "1", noon + 2 * day + 1))
    const pending = { ...one, license: { ...one.license, expires_at: undefined, term_days: 2 } }
    const { after } = allowed(pending, checkout, borrowing(machine, "1", noon + 2 * day))
    assert.strictEqual(after.license.expires_at, noon + 2 * day)
    refusedWith("BORROW_TOO_LONG", pending, checkout, borrowing(machine, "1", noon + 2 * day + 1))
  })

  it("refuses a time that is not ahead, and takes no seat then", () => {
    for (const past of [noon, noon - day]) {
      const { after } = refusedWith("VALIDATION_ERROR", one, checkout, borrowing(machine, "1", past))
      isFree(after)
    }
  })

  it("takes two seats for two machines", () => {
    takes(borrowed, noon)
    refusedWith("FLOATING_LIMIT_REACHED", borrowed, checkout, borrowing(other, "2", until))
  })

  it("keeps the later end if the same machine checks out again", () => {
    const ends = (again: number | undefined, now = noon) => {
      const { after, reply } = allowed(borrowed, checkout, borrowing(machine, "2", again), now)
      assert.strictEqual(leaseStates(after)["lse_2"], "live")
      return [reply.borrowed_until, reply.lease_expires_at]
    }
    const three = formatTimestamp(until)
    assert.deepStrictEqual(ends(undefined), [three, three])
    assert.deepStrictEqual(ends(noon + day), [three, three])
    const five = formatTimestamp(noon + 5 * day)
    assert.deepStrictEqual(ends(noon + 5 * day), [five, five])
    assert.deepStrictEqual(ends(undefined, until - minute), [three, formatTimestamp(until + 29 * minute)])
    assert.deepStrictEqual(ends(undefined, until), [undefined, formatTimestamp(until + 30 * minute)])
  })

  it("keeps what was lent if the policy or the license lends less later", () => {
    const less = { ...borrowed, policy: { ...borrowed.policy, borrow_days_max: undefined } }
    const again = allowed(less, checkout, borrowing(machine, "2")).after
    assert.strictEqual(again.leases.find(({ id }) => id === "lse_2")?.borrowed_until, until)
  })
})

describe("a borrowed seat", () => {
  it("is given back early by checkin", () => {
    const { after, changes, reply } = allowed(borrowed, checkin, lease("1"), noon + minute)
    assert.deepInclude(changes.events?.[0]?.metadata, { borrowed_until: formatTimestamp(until) })
    assert.notProperty(reply, "borrowed_until")
    assert.strictEqual(reply.lease_expires_at, formatTimestamp(noon + minute))
    isFree(after, noon + minute)
  })

  it("is extended by heartbeats, but never shortened", () => {
    const { reply } = allowed(borrowed, heartbeat, lease("1"), noon + minute)
    assert.deepInclude(reply, { borrowed_until: formatTimestamp(until), lease_expires_at: formatTimestamp(until) })
    const { after, reply: late } = allowed(borrowed, heartbeat, lease("1"), until - minute)
    assert.strictEqual(late.lease_expires_at, formatTimestamp(until + 29 * minute))
    takes(after, until + minute)
    const { reply: last } = allowed(after, heartbeat, lease("1"), until + minute)
    assert.notProperty(last, "borrowed_until")
  })

  it("lapses like others, and a heartbeat that takes it again borrows nothing", () => {
    const lapsed = settled(borrowed, until)
    assert.deepStrictEqual(eventTypes(lapsed).slice(-1), ["lease.expired"])
    const { reply } = allowed(lapsed, heartbeat, lease("1"), until + day - 1)
    assert.deepInclude(reply, { renewed: true, lease_expires_at: formatTimestamp(until + day - 1 + 30 * minute) })
    assert.notProperty(reply, "borrowed_until")
  })

  it("stays taken while the license is suspended, and can be given back then", () => {
    const suspended = allowed(borrowed, suspend, undefined).after
    assert.strictEqual(suspended.devices[0]?.status, "active")
    refusedWith("LICENSE_SUSPENDED", suspended, heartbeat, lease("1"))
    takes(allowed(suspended, reinstate, undefined).after, until - 1)
    const { after } = allowed(suspended, checkin, lease("1"))
    isFree(allowed(after, reinstate, undefined).after)
    assert.deepStrictEqual(leaseStates(settled(suspended, until)), { lse_1: "expired" })
  })

  it("loses what heartbeats added if the license is suspended or the device reset", () => {
    const extended = allowed(borrowed, heartbeat, lease("1"), until - minute).after
    const suspended = allowed(extended, suspend, undefined, until - minute).after
    isFree(allowed(suspended, reinstate, undefined, until).after, until)
    isFree(allowed(extended, reset, { device_id }, until - minute).after, until)
  })

  it("stays taken after an earlier end of access, and can be given back then", () => {
    const expired = allowed(borrowed, update, { expires_at: noon + day }).after
    const later = settled(expired, noon + 2 * day)
    assert.deepStrictEqual(leaseStates(later), { lse_1: "live" })
    assert.deepStrictEqual(settled(later, noon + 2 * day), later)
    refusedWith("LICENSE_EXPIRED", later, heartbeat, lease("1"), noon + 2 * day)
    takes(allowed(later, update, { expires_at: noon + 9 * day }, noon + 2 * day).after, until - 1)
    assert.deepStrictEqual(leaseStates(allowed(later, checkin, lease("1"), noon + 2 * day).after), {
      lse_1: "checked_in"
    })
    const over = settled(later, until)
    assert.deepStrictEqual(leaseStates(over), { lse_1: "ended" })
    assert.strictEqual(over.devices[0]?.status, "deactivated")
  })

  it("stays taken when the device is reset, which may only give it back", () => {
    const { after, changes } = allowed(borrowed, reset, { device_id })
    assert.deepInclude(changes.events?.[0]?.metadata, { borrowed_until: formatTimestamp(until) })
    assert.strictEqual(after.devices[0]?.status, "reset")
    takes(after, until - 1)
    refusedWith("LEASE_NOT_ACTIVE", after, heartbeat, lease("1"))
    refusedWith("DEVICE_NOT_ACTIVE", after, validate, requestOf(machine))
    const returned = allowed(after, checkin, lease("1")).after
    assert.strictEqual(returned.devices[0]?.status, "reset")
    isFree(returned)
    assert.strictEqual(settled(after, until).devices[0]?.status, "reset")
    const again = allowed(after, checkout, borrowing(machine, "2")).after
    assert.deepStrictEqual(leaseStates(again), { lse_1: "superseded", lse_2: "live" })
    assert.strictEqual(again.leases[1]?.borrowed_until, until)
  })

  it("is free at once if the reset releases it, also that of a device that was reset before", () => {
    for (const rows of [borrowed, allowed(borrowed, reset, { device_id }).after]) {
      const { after, changes } = allowed(rows, reset, { device_id, release_borrowed: true })
      assert.deepStrictEqual(eventTypes(changes), ["device.reset"])
      assert.deepInclude(changes.events?.[0]?.metadata, { released_borrowed: true })
      isFree(after)
      assert.deepStrictEqual(allowed(after, reset, { device_id, release_borrowed: true }).changes, {})
    }
  })

  it("stays taken when the device is blacklisted", () => {
    const { after, changes } = allowed(borrowed, blacklist, { device_id })
    assert.deepInclude(changes.events?.[0]?.metadata, { borrowed_until: formatTimestamp(until) })
    takes(after, until - 1)
    refusedWith("DEVICE_BLACKLISTED", after, heartbeat, lease("1"))
    refusedWith("DEVICE_BLACKLISTED", after, checkin, lease("1"))
    const lifted = allowed(after, unblacklist, { device_id }).after
    takes(lifted, until - 1)
    isFree(allowed(lifted, reset, { device_id, release_borrowed: true }).after)
  })

  it("ends when the license is revoked", () => {
    assert.deepStrictEqual(leaseStates(allowed(borrowed, revoke, undefined).after), { lse_1: "ended" })
  })

  it("outlasts a transfer that resets devices, unless that releases it, too", () => {
    const kept = allowed(borrowed, transfer, { reset_devices: true }).after
    takes(kept, until - 1)
    for (const rows of [borrowed, kept]) {
      const { after, changes } = allowed(rows, transfer, { reset_devices: true, release_borrowed: true })
      assert.deepInclude(changes.events?.[0]?.metadata, { seats_released: 1 })
      isFree(after)
      assert.deepStrictEqual(allowed(after, transfer, { reset_devices: true, release_borrowed: true }).changes, {})
    }
  })

  it("is never lent beyond what the policy or the access allow, however many commands there are", () => {
    afterEachStep(({ before, after, changes, now, rule }) => {
      if (rule !== "checkout") return
      for (const { borrowed_until, device_id, id } of changes.leases ?? []) {
        if (borrowed_until === undefined || before.leases.some((known) => known.id === id)) continue
        const kept = before.leases.find((known) => known.device_id === device_id && known.status === "live")
        const days = (after.policy.borrow_days_max ?? 0) * day
        const last = Math.min(now + days, accessEndsAt(after.license, after.policy) ?? Number.POSITIVE_INFINITY)
        assert.isAtMost(borrowed_until, Math.max(last, kept?.borrowed_until ?? 0))
      }
    }, 400)
  })

  it("stays taken until its time has passed, unless it is given back, released or revoked", () => {
    afterEachStep(({ found, before, after, changes, now, rule }) => {
      for (const { id, device_id, borrowed_until = now, status } of found.leases) {
        if (status !== "live" || borrowed_until <= now) continue
        assert.strictEqual(before.leases.find((lease) => lease.id === id)?.status, "live")
        const is = after.leases.find((lease) => lease.id === id)
        if (is?.status === "live") {
          assert.strictEqual(is.borrowed_until, borrowed_until)
          assert.isAtLeast(is.expires_at, borrowed_until)
        } else if (rule === "checkout") {
          const next = after.leases.find((lease) => lease.device_id === device_id && lease.status === "live")
          assert.isAtLeast(next?.borrowed_until ?? 0, borrowed_until)
        } else if (rule !== "checkin" && rule !== "revoke") {
          const { released_borrowed, seats_released } = changes.events?.[0]?.metadata ?? {}
          assert.isTrue(released_borrowed === true || Number(seats_released) > 0, rule)
        }
      }
    }, 400)
  })

  it("is freed by a reset or a transfer if and only if they release it, whatever the license is", () => {
    fc.assert(
      fc.property(anyRows, fc.boolean(), fc.boolean(), (rows, release_borrowed, isTransfer) => {
        const { before, after, refused } = isTransfer
          ? perform(rows, transfer, { reset_devices: true, release_borrowed }, noon)
          : perform(rows, reset, { device_id: rows.devices[0]?.id ?? "none", release_borrowed }, noon)
        const isReached = (id: string) => refused === undefined && (isTransfer || id === rows.devices[0]?.id)
        for (const { borrowed_until = noon, device_id, id, status } of before.leases) {
          if (status !== "live" || borrowed_until <= noon) continue
          const ends = release_borrowed && isReached(device_id)
          assert.strictEqual(after.leases.find((lease) => lease.id === id)?.status, ends ? "ended" : "live")
        }
      }),
      { numRuns: 500 }
    )
  })
})
