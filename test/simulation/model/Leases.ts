/** The expected results of runtime commands on floating seats. */
import type { Code } from "../../../src/contract/api/ErrorCode.ts"
import { formatTimestamp } from "../../../src/contract/api/Timestamp.ts"
import type { CheckoutCommand, LeaseCommand } from "../../../src/licensing/rules/Floating.ts"
import { accepted, admission, bindingOf, common, deviceOf, features, refused, standing } from "./Admission.ts"
import { type Device, isBorrowed, type Lease } from "./Devices.ts"
import { begun, limitsFor } from "./Limits.ts"
import {
  type Answer,
  accessEnd,
  dayMillis,
  deviceById,
  endLease,
  liveLeaseOf,
  liveLeases,
  minuteMillis,
  replaced,
  type Situation
} from "./Model.ts"

const leaseEnd = ({ license, policy, now }: Situation): number =>
  Math.min(now + policy.floating_timeout_minutes * minuteMillis, accessEnd(license, policy))

/** The end of a lease after a heartbeat. */
export const heartbeatEnd = (situation: Situation, lease: Lease): number =>
  Math.max(leaseEnd(situation), isBorrowed(lease, situation.now) ? lease.borrowed! : 0)

/** Why a seat cannot be borrowed until an instant. */
const borrowRefusal = ({ license, now, policy }: Situation, until: number | undefined): Code | undefined => {
  if (until === undefined) return undefined
  if (until <= now) return "VALIDATION_ERROR"
  const days = (policy.borrow_days_max ?? 0) * dayMillis
  return until > Math.min(now + days, accessEnd(license, policy)) ? "BORROW_TOO_LONG" : undefined
}

const toldBorrowed = (lease: Lease, now: number) =>
  isBorrowed(lease, now) ? { borrowed_until: formatTimestamp(lease.borrowed!) } : undefined

export const checkout = (situation: Situation, command: CheckoutCommand): Answer => {
  const { license, policy } = situation
  const seats = limitsFor(license, policy).max_floating_users ?? 0
  const { until } = command
  const isForbidden = until !== undefined && !policy.borrow_days_max
  const off = seats === 0 ? "FLOATING_NOT_ENABLED" : isForbidden ? "BORROWING_NOT_ALLOWED" : undefined
  const { left, used } = begun(situation)
  const code = admission(situation, command, off) ?? borrowRefusal(used, until)
  if (code !== undefined) return refused(situation, code)
  const known = deviceOf(situation, command)
  const held = known === undefined ? undefined : liveLeaseOf(license, known.id)
  if (held === undefined && liveLeases(license).length >= seats) return refused(situation, "FLOATING_LIMIT_REACHED")
  const device: Device = {
    id: known?.id ?? command.newDeviceId,
    kind: command.binding.kind,
    status: "active",
    slot: known?.slot ?? false,
    activated: known?.slot || known?.status === "expired" ? known.activated : null,
    validated: known?.validated ?? null,
    due: known?.due ?? null,
    offline: known?.offline ?? null,
    held: known?.held ?? null
  }
  const superseded =
    held === undefined ? license.leases : replaced(license.leases, held[0], { ...held[1], status: "superseded" })
  const kept = held !== undefined && isBorrowed(held[1], situation.now) ? held[1].borrowed! : 0
  const borrowed = Math.max(until ?? 0, kept)
  const ends = until === undefined ? Math.max(leaseEnd(used), kept) : borrowed
  const lease = { id: command.newLeaseId, device: device.id, status: "live", ends, borrowed: borrowed || null }
  const after = {
    ...used.license,
    devices: replaced(license.devices, bindingOf(command), device),
    leases: replaced(superseded, command.tokenHash, lease)
  }
  const reply = {
    ...common(used, device.id),
    features: features(used),
    lease_token: command.leaseToken,
    lease_expires_at: formatTimestamp(ends),
    ...toldBorrowed(lease, situation.now)
  }
  return accepted(after, reply, "lease.checked_out", ...left)
}

const ofState: ReadonlyArray<Code> = ["LICENSE_SUSPENDED", "LICENSE_EXPIRED", "LICENSE_NOT_STARTED"]

const leaseRefusal = (
  situation: Situation,
  command: LeaseCommand,
  operation: "heartbeat" | "checkin"
): Code | undefined => {
  const code = standing(situation, command)
  const lease = situation.license.leases.get(command.tokenHash)
  // A borrowed seat can be given back unless the license is revoked, which ends it.
  const isReturned = operation === "checkin" && lease !== undefined && isBorrowed(lease, situation.now)
  if (code !== undefined && !(isReturned && ofState.includes(code))) return code
  if (lease === undefined) return "LEASE_NOT_FOUND"
  return deviceById(situation.license, lease.device)?.[1].status === "blacklisted" ? "DEVICE_BLACKLISTED" : undefined
}

export const heartbeat = (situation: Situation, command: LeaseCommand): Answer => {
  const code = leaseRefusal(situation, command, "heartbeat")
  if (code !== undefined) return refused(situation, code)
  const lease = situation.license.leases.get(command.tokenHash)!
  if (lease.status === "blacklisted") return refused(situation, "DEVICE_BLACKLISTED")
  if (lease.status === "expired") return comeBack(situation, command.tokenHash)
  const isReset = deviceById(situation.license, lease.device)?.[1].status === "reset"
  if (lease.status !== "live" || isReset) return refused(situation, "LEASE_NOT_ACTIVE")
  const ends = heartbeatEnd(situation, lease)
  const reply = {
    ...common(situation, lease.device),
    lease_expires_at: formatTimestamp(ends),
    ...toldBorrowed(lease, situation.now)
  }
  const leases = replaced(situation.license.leases, command.tokenHash, { ...lease, ends })
  return accepted({ ...situation.license, leases }, { ...reply, features: features(situation) })
}

/** A lease that lapsed within the last day takes a free seat again. */
const comeBack = (situation: Situation, token: string): Answer => {
  const { license, policy, now } = situation
  const lease = license.leases.get(token)!
  const [key, device] = deviceById(license, lease.device)!
  const isFull = liveLeases(license).length >= (limitsFor(license, policy).max_floating_users ?? 0)
  const isGone = now - lease.ends >= dayMillis || device.status === "reset"
  if (isFull || isGone || liveLeaseOf(license, device.id) !== undefined) return refused(situation, "LEASE_EXPIRED")
  const { left, used } = begun(situation)
  const ends = leaseEnd(used)
  const keepsActivation = device.slot || device.status === "expired"
  const seated = { ...device, status: "active", activated: keepsActivation ? device.activated : null }
  const after = {
    ...used.license,
    devices: replaced(license.devices, key, seated),
    leases: replaced(license.leases, token, { ...lease, status: "live", ends, borrowed: null })
  }
  const told = { ...common(used, lease.device), lease_expires_at: formatTimestamp(ends), renewed: true }
  return accepted(after, { ...told, features: features(used) }, "lease.checked_out", ...left)
}

export const checkin = (situation: Situation, command: LeaseCommand): Answer => {
  const code = leaseRefusal(situation, command, "checkin")
  if (code !== undefined) return refused(situation, code)
  const lease = situation.license.leases.get(command.tokenHash)!
  if (lease.status !== "live") return refused(situation, "LEASE_NOT_ACTIVE")
  const reply = { ...common(situation, lease.device), lease_expires_at: formatTimestamp(situation.now) }
  const after = endLease(situation.license, command.tokenHash, "checked_in", "deactivated")
  return accepted(after, reply, "lease.checked_in")
}
