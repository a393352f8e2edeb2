/**
 * Floating seats: checkout, heartbeat, checkin (docs/API.md, "Floating leases"). A seat needs no activation: the
 * machine becomes a device without a slot, which is active while its lease is live. The clock is applied before each
 * rule, so a lapsed lease takes no seat. Every change is fenced, so there are never more leases than seats.
 */
import { formatTimestamp } from "../../contract/api/Timestamp.ts"
import type { NewEvent } from "../../ledger/events/Entry.ts"
import type { DeviceRecord, LeaseRecord, LeaseStatus, LicenseView } from "../model/LicenseRecords.ts"
import type { FloatingCheckout, FloatingLease } from "../model/Payloads.ts"
import { boundDevice, runtimeNeeds } from "./Activation.ts"
import {
  type AdmissionCode,
  admit,
  blacklisted,
  type DeviceAccessCode,
  isDoneAlready,
  isRefused,
  type KeyedCommand,
  type RuntimeCommand,
  refuseLicense,
  refuseRevokedLicense
} from "./Admission.ts"
import { checkoutOf, extendedLeaseOf, leaseOf } from "./Entitlement.ts"
import { explain } from "./Explanation.ts"
import { accept, type Refused, type Rule, reject } from "./LicenseCommand.ts"
import { accessEndsAt, statusUnseated } from "./Lifecycle.ts"
import { borrowedUntil, refuseBorrowing, refuseTaken, refuseUntil, refuseWithoutSeats, seatsOf } from "./Seats.ts"
import { type BegunTerm, beginTerm, withTerm } from "./Terms.ts"

/** Contains the ids and the token of a new lease, because rules use no random numbers. */
export interface CheckoutCommand extends RuntimeCommand {
  readonly newDeviceId: string
  readonly newLeaseId: string
  /** Returned to the caller and never stored. */
  readonly leaseToken: string
  /** SHA-256 of the token, lower-case hex. */
  readonly tokenHash: string
  /** Until when the seat is to be borrowed. */
  readonly until?: number | undefined
}

export const checkout: Rule<
  CheckoutCommand,
  FloatingCheckout,
  | AdmissionCode
  | "FLOATING_NOT_ENABLED"
  | "BORROWING_NOT_ALLOWED"
  | "VALIDATION_ERROR"
  | "BORROW_TOO_LONG"
  | "FLOATING_LIMIT_REACHED"
> = {
  name: "checkout",
  explain,
  needs: (command) => ({ ...runtimeNeeds(command), seats: true, ...(command.isRepeated && leaseNeeds(command)) }),
  decide: (view, command, now) => {
    const admitted = admit(
      view,
      command,
      now,
      (view) => refuseWithoutSeats(view) ?? refuseBorrowing(view.policy, command)
    )
    if (isRefused(admitted)) return admitted
    const replyWith = (lease: LeaseRecord) => (after: LicenseView) =>
      checkoutOf(after, lease, command.leaseToken, now, admitted.eligibility)
    // A token is random: this is the same command for the second time. Its lease may have ended meanwhile.
    const taken = view.leaseByToken(command.tokenHash)
    if (taken !== undefined) return accept({}, replyWith(taken))
    const begun = beginTerm(view, now)
    const used = withTerm(view, begun)
    const refused =
      refuseUntil(used.policy, command, accessEndsAt(used.license, used.policy), now) ??
      refuseTaken(view, admitted.device)
    if (refused !== undefined) return refused
    const current = admitted.device === undefined ? undefined : view.liveLeaseOf(admitted.device.id)
    const device = seatHolder(admitted.device, command, now)
    const lease = newLease(used, device, command, current, now)
    return accept(
      {
        ...termChanges(begun),
        devices: [device],
        leases: current === undefined ? [lease] : [{ ...current, status: "superseded", ended_at: now }, lease],
        events: [
          leaseEvent(view, "lease.checked_out", lease, {
            ...command.binding.redacted(),
            binding_kind: device.binding_kind,
            ...borrowedFact(lease),
            ...(current === undefined ? undefined : { superseded: current.id })
          }),
          ...(begun === undefined ? [] : [begun.event])
        ]
      },
      replyWith(lease)
    )
  }
}

/** The device with the seat. An existing activation continues. */
const seatHolder = (existing: DeviceRecord | undefined, command: CheckoutCommand, now: number): DeviceRecord => {
  const { due_at, holds_slot = false, slot_held_until } = existing ?? {}
  const activated_at = existing === undefined ? undefined : activationBeside(existing)
  return boundDevice(existing, command, { holds_slot, activated_at, due_at, slot_held_until }, now)
}

const seatedAgain = (device: DeviceRecord, now: number): DeviceRecord => ({
  ...device,
  status: "active",
  activated_at: activationBeside(device),
  last_seen_at: now,
  updated_at: now
})

/** Keeps a current activation, and a lapsed one, which determines the status after the seat ends. */
const activationBeside = ({ activated_at, holds_slot, status }: DeviceRecord): number | undefined =>
  holds_slot || status === "expired" ? activated_at : undefined

/** The changes of a license whose pending term begins with a seat. */
const termChanges = (begun: BegunTerm | undefined) =>
  begun === undefined ? undefined : { license: begun.license, assignments: begun.assignments, entitlement: true }

type Pair = Pick<LicenseView, "license" | "policy">

/** A seat that is borrowed already stays borrowed, because its machine may use it offline. */
const newLease = (
  used: Pair,
  device: DeviceRecord,
  command: CheckoutCommand,
  current: LeaseRecord | undefined,
  now: number
): LeaseRecord => {
  const borrowed = Math.max(command.until ?? 0, borrowedUntil(current, now) ?? 0)
  return {
    id: command.newLeaseId,
    device_id: device.id,
    token_hash: command.tokenHash,
    status: "live",
    checked_out_at: now,
    heartbeat_at: now,
    expires_at: command.until === undefined ? Math.max(borrowed, endsAt(used, now)) : borrowed,
    ...(borrowed === 0 ? undefined : { borrowed_until: borrowed })
  }
}

/** The end of a lease that starts or is extended now: after the policy's timeout, but not after the end of access. */
const endsAt = ({ license, policy }: Pair, now: number): number =>
  Math.min(now + policy.floating_timeout_minutes * 60_000, accessEndsAt(license, policy) ?? Number.POSITIVE_INFINITY)

/** A command that names a lease by its token (SHA-256, lower-case hex). */
export interface LeaseCommand extends KeyedCommand {
  readonly tokenHash: string
}

type LeaseCode = DeviceAccessCode | "LEASE_NOT_FOUND" | "LEASE_NOT_ACTIVE"

const leaseNeeds = ({ tokenHash }: LeaseCommand) => ({ leaseToken: tokenHash })

/**
 * Extends a lease, without a check of the version or the number of seats. If the lease lapsed recently, because a
 * laptop slept, it takes a free seat again.
 */
export const heartbeat: Rule<LeaseCommand, FloatingLease, LeaseCode | "LEASE_EXPIRED"> = {
  name: "heartbeat",
  explain,
  needs: (command) => ({ ...leaseNeeds(command), seats: true }),
  decide: (view, command, now) => {
    const found = findLease(view, command, now)
    if (isRefused(found)) return found
    const { device, lease } = found
    if (lease.status === "blacklisted") return leaseOfBlacklistedDevice
    if (leaseStatusAt(lease, now) === "expired") return renewLapsed(view, found, now)
    if (lease.status !== "live") return refuseEnded(lease, now)
    // The borrowed seat of a device that was reset is only taken, not usable.
    if (device.status === "reset") return refuseEnded({ ...lease, status: "ended" }, now)
    const expires_at = Math.max(endsAt(view, now), borrowedUntil(lease, now) ?? 0)
    const extended = { ...lease, heartbeat_at: now, expires_at }
    return accept({ leases: [extended], seen: { ...device, last_seen_at: now } }, (after) =>
      extendedLeaseOf(after, extended, now)
    )
  }
}

/** The time after its end in which a heartbeat can renew a lapsed lease. */
const renewableMillis = 86_400_000

const renewLapsed = (view: LicenseView, { device, lease }: Seated, now: number) => {
  if (now - (lease.ended_at ?? lease.expires_at) >= renewableMillis)
    return refuseLapsed("The lease lapsed 24 hours ago or earlier: check out again.")
  if (device.status === "reset")
    return refuseLapsed("The lease has lapsed and its device was reset since: check out again.")
  const current = view.liveLeaseOf(device.id)
  if (current !== undefined && now < current.expires_at)
    return refuseLapsed("The lease has lapsed and its device has checked out again since: use the new token.")
  if (view.liveLeaseCount - view.lapsed(now).length >= seatsOf(view))
    return refuseLapsed("The lease has lapsed and all floating seats are taken: check out again later.")
  const begun = beginTerm(view, now)
  const renewed: LeaseRecord = {
    ...lease,
    status: "live",
    heartbeat_at: now,
    expires_at: endsAt(withTerm(view, begun), now),
    borrowed_until: undefined,
    ended_at: undefined
  }
  return accept(
    {
      ...termChanges(begun),
      leases: [renewed],
      devices: [seatedAgain(device, now)],
      events: [
        leaseEvent(view, "lease.checked_out", renewed, { binding_kind: device.binding_kind, renewed: true }),
        ...(begun === undefined ? [] : [begun.event])
      ]
    },
    (after) => ({ ...extendedLeaseOf(after, renewed, now), renewed: true })
  )
}

const refuseLapsed = (message: string) => reject("LEASE_EXPIRED", message)

const leaseOfBlacklistedDevice = reject(
  "DEVICE_BLACKLISTED",
  "The lease ended when its device was blacklisted: ask the vendor to remove it from the blacklist, then check out again."
)

/** Frees a seat, without a check of the version. A borrowed one is also taken back if the license's access has ended. */
export const checkin: Rule<LeaseCommand, FloatingLease, LeaseCode> = {
  name: "checkin",
  explain,
  needs: leaseNeeds,
  decide: (view, command, now) => {
    const isBorrowed = borrowedUntil(view.leaseByToken(command.tokenHash), now) !== undefined
    const found = findLease(view, command, now, isBorrowed ? refuseRevokedLicense : refuseLicense)
    if (isRefused(found)) return found
    const { device, lease } = found
    if (lease.status === "checked_in" && isDoneAlready(command, lease.ended_at, now))
      return accept({}, (after) => leaseOf(after, lease, now))
    if (leaseStatusAt(lease, now) !== "live") return refuseEnded(lease, now)
    const returned: LeaseRecord = { ...lease, status: "checked_in", ended_at: now }
    return accept(
      {
        leases: [returned],
        devices: [releaseSeat(device, now)],
        events: [leaseEvent(view, "lease.checked_in", returned, { ...(isBorrowed && borrowedFact(lease)) })]
      },
      (after) => leaseOf(after, returned, now)
    )
  }
}

const releaseSeat = (device: DeviceRecord, now: number): DeviceRecord => ({
  ...device,
  status: device.status === "reset" ? "reset" : statusUnseated(device, "deactivated"),
  last_seen_at: now,
  updated_at: now
})

interface Seated {
  readonly lease: LeaseRecord
  readonly device: DeviceRecord
}

/** The checks that heartbeat and checkin share: the key, the license's state, the lease, the blacklist. */
const findLease = (
  view: LicenseView,
  command: LeaseCommand,
  now: number,
  refuse: typeof refuseLicense = refuseLicense
): Seated | Refused<DeviceAccessCode | "LEASE_NOT_FOUND"> => {
  const refused = refuse(view, command, now)
  if (refused !== undefined) return refused
  const lease = view.leaseByToken(command.tokenHash)
  const device = lease === undefined ? undefined : view.deviceById(lease.device_id)
  if (lease === undefined || device === undefined)
    return reject("LEASE_NOT_FOUND", "The license has no lease with this token: check out first.")
  return device.status === "blacklisted" ? blacklisted : { lease, device }
}

/** The state of a lease at an instant: a lapsed lease is expired, swept or not. */
const leaseStatusAt = ({ status, expires_at }: LeaseRecord, now: number): LeaseStatus =>
  status === "live" && expires_at <= now ? "expired" : status

const refuseEnded = (lease: LeaseRecord, now: number): Refused<"LEASE_NOT_ACTIVE"> =>
  reject("LEASE_NOT_ACTIVE", "The lease has ended: check out again.", { detail: leaseStatusAt(lease, now) })

const borrowedFact = ({ borrowed_until }: LeaseRecord) =>
  borrowed_until === undefined ? undefined : { borrowed_until: formatTimestamp(borrowed_until) }

const leaseEvent = (
  { license }: LicenseView,
  event_type: "lease.checked_out" | "lease.checked_in",
  lease: LeaseRecord,
  metadata: NewEvent["metadata"]
): NewEvent => ({
  event_type,
  resource_type: "lease",
  resource_id: lease.id,
  metadata: { license_id: license.id, device_id: lease.device_id, ...metadata }
})
