/**
 * Floating seats: checkout, heartbeat, checkin (contract, "Runtime shapes"). A seat needs no activation: whoever checks out
 * appears as a device that takes no slot and is active as long as its lease lives. Rules run after time was applied, so a
 * lapsed lease counts no seat; and every change is fenced, so there are never more leases than seats.
 */
import type { NewEvent } from "../../events/EventLog.ts"
import type { DeviceRecord, LeaseRecord, LeaseStatus, LicenseView } from "../model/LicenseRecords.ts"
import type { FloatingCheckout, FloatingLease } from "../model/Payloads.ts"
import { runtimeNeeds } from "./Activation.ts"
import {
  type AdmissionCode,
  admit,
  blacklisted,
  isRefused,
  type KeyedCommand,
  licenseStanding,
  type RuntimeCommand,
  type StandingCode
} from "./Admission.ts"
import { checkoutOf, extendedLeaseOf, leaseOf } from "./Entitlement.ts"
import { accept, type Refused, type Rule, reject } from "./LicenseCommand.ts"
import { accessEndsAt, statusUnseated } from "./Lifecycle.ts"

/** The ids and the token of a lease to be, made by the caller: rules draw no random numbers. */
export interface CheckoutCommand extends RuntimeCommand {
  readonly newDeviceId: string
  readonly newLeaseId: string
  /** Answered to the caller and stored nowhere. */
  readonly leaseToken: string
  /** SHA-256 of the token, lower-case hex. */
  readonly tokenHash: string
}

export const checkout: Rule<
  CheckoutCommand,
  FloatingCheckout,
  AdmissionCode | "FLOATING_NOT_ENABLED" | "FLOATING_LIMIT_REACHED"
> = {
  name: "checkout",
  needs: (command) => ({ ...runtimeNeeds(command), seats: true }),
  decide: (view, command, now) => {
    const admitted = admit(view, command, now, floatingOff)
    if (isRefused(admitted)) return admitted
    const held = admitted.device === undefined ? undefined : view.liveLeaseOf(admitted.device.id)
    if (held === undefined && view.liveLeaseCount >= seatsOf(view)) return full(seatsOf(view))
    const device = holder(admitted.device, command, now)
    const lease = newLease(view, device, command, now)
    return accept(
      {
        devices: [device],
        leases: held === undefined ? [lease] : [{ ...held, status: "superseded", ended_at: now }, lease],
        events: [
          leaseEvent(view, "lease.checked_out", lease, {
            ...command.binding.redacted(),
            binding_kind: device.binding_kind,
            ...(held === undefined ? undefined : { superseded: held.id })
          })
        ]
      },
      (after) => checkoutOf(after, lease, command.leaseToken, now, admitted.eligibility)
    )
  }
}

/** Absent or 0 = floating is off. */
const seatsOf = ({ policy }: LicenseView): number => policy.max_floating_users ?? 0

const floatingOff = (view: LicenseView): Refused<"FLOATING_NOT_ENABLED"> | undefined =>
  seatsOf(view) === 0
    ? reject("FLOATING_NOT_ENABLED", "The policy has no floating seats: activate the device instead.")
    : undefined

const full = (seats: number): Refused<"FLOATING_LIMIT_REACHED"> =>
  reject("FLOATING_LIMIT_REACHED", `All ${seats} floating seats of the license are taken: try again later.`, {
    detail: String(seats)
  })

/** The device that holds the seat. An activation that it has goes on beside the seat. */
const holder = (known: DeviceRecord | undefined, command: CheckoutCommand, now: number): DeviceRecord => {
  const { kind, key, redacted: _, app_version: __, ...described } = command.binding
  // What is kept is an activation that goes on beside the seat, or one that lapsed and shows again when the seat is gone.
  const keepsActivation = known?.holds_slot === true || known?.status === "expired"
  return {
    id: known?.id ?? command.newDeviceId,
    binding_kind: kind,
    binding_key: key,
    ...described,
    status: "active",
    holds_slot: known?.holds_slot ?? false,
    activated_at: keepsActivation ? known.activated_at : undefined,
    first_seen_at: known?.first_seen_at ?? now,
    last_seen_at: now,
    last_validated_at: known?.last_validated_at,
    metadata: known?.metadata ?? {},
    created_at: known?.created_at ?? now,
    updated_at: now
  }
}

const newLease = (view: LicenseView, device: DeviceRecord, command: CheckoutCommand, now: number): LeaseRecord => ({
  id: command.newLeaseId,
  device_id: device.id,
  token_hash: command.tokenHash,
  status: "live",
  checked_out_at: now,
  heartbeat_at: now,
  expires_at: endsAt(view, now)
})

/** The end of a lease that begins or goes on now: after the policy's time, never past the end of access. */
const endsAt = ({ license, policy }: LicenseView, now: number): number =>
  Math.min(now + policy.floating_timeout_minutes * 60_000, accessEndsAt(license, policy) ?? Number.POSITIVE_INFINITY)

/** What speaks of a lease by its token (SHA-256, lower-case hex). */
export interface LeaseCommand extends KeyedCommand {
  readonly tokenHash: string
}

type LeaseCode = StandingCode | "LEASE_NOT_FOUND" | "LEASE_NOT_ACTIVE"

const leaseNeeds = ({ tokenHash }: LeaseCommand) => ({ leaseToken: tokenHash })

/** Moves the end of a lease. Neither version nor seats are asked: whoever holds a seat keeps it. */
export const heartbeat: Rule<LeaseCommand, FloatingLease, LeaseCode | "LEASE_EXPIRED"> = {
  name: "heartbeat",
  needs: leaseNeeds,
  decide: (view, command, now) => {
    const lease = knownLease(view, command, now)
    if (isRefused(lease)) return lease
    if (lease.status === "blacklisted") return liftedSince
    if (stateOf(lease, now) === "expired") {
      return reject("LEASE_EXPIRED", "The lease has lapsed and its seat is free: check out again.")
    }
    if (lease.status !== "live") return notActive(lease, now)
    const extended = { ...lease, heartbeat_at: now, expires_at: endsAt(view, now) }
    const device = view.deviceById(lease.device_id)
    return accept(
      { leases: [extended], ...(device === undefined ? undefined : { seen: { ...device, last_seen_at: now } }) },
      (after) => extendedLeaseOf(after, extended, now)
    )
  }
}

const liftedSince = reject(
  "DEVICE_BLACKLISTED",
  "The lease ended when its device was blacklisted: check out again once that is lifted."
)

/** Gives a seat back. It asks no version: what was taken can always be given back. */
export const checkin: Rule<LeaseCommand, FloatingLease, LeaseCode> = {
  name: "checkin",
  needs: leaseNeeds,
  decide: (view, command, now) => {
    const lease = knownLease(view, command, now)
    if (isRefused(lease)) return lease
    if (stateOf(lease, now) !== "live") return notActive(lease, now)
    const returned: LeaseRecord = { ...lease, status: "checked_in", ended_at: now }
    const device = view.deviceById(lease.device_id)
    return accept(
      {
        leases: [returned],
        devices: device === undefined ? [] : [withoutSeat(device, now)],
        events: [leaseEvent(view, "lease.checked_in", returned, {})]
      },
      (after) => leaseOf(after, returned, now)
    )
  }
}

const withoutSeat = (device: DeviceRecord, now: number): DeviceRecord => ({
  ...device,
  status: statusUnseated(device, "deactivated"),
  last_seen_at: now,
  updated_at: now
})

/** The rungs that heartbeat and checkin share: the key, the license's state, the lease, the blacklist. */
const knownLease = (
  view: LicenseView,
  command: LeaseCommand,
  now: number
): LeaseRecord | Refused<StandingCode | "LEASE_NOT_FOUND"> => {
  const refused = licenseStanding(view, command, now)
  if (refused !== undefined) return refused
  const lease = view.leaseByToken(command.tokenHash)
  if (lease === undefined)
    return reject("LEASE_NOT_FOUND", "The license has no lease with this token: check out first.")
  return view.deviceById(lease.device_id)?.status === "blacklisted" ? blacklisted : lease
}

/** The state of a lease at an instant: one that has lapsed is expired, whether or not that was written down already. */
const stateOf = ({ status, expires_at }: LeaseRecord, now: number): LeaseStatus =>
  status === "live" && expires_at <= now ? "expired" : status

const notActive = (lease: LeaseRecord, now: number): Refused<"LEASE_NOT_ACTIVE"> =>
  reject("LEASE_NOT_ACTIVE", "The lease has ended: check out again.", { detail: stateOf(lease, now) })

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
