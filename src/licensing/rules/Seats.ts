/** Floating seats: which are taken, and which may be borrowed for a time without a connection (docs/API.md, "Borrowed seats"). */
import { dayMillis, formatTimestamp } from "../../contract/api/Timestamp.ts"
import type { DeviceRecord, LeaseRecord, LicenseView, PolicyRecord } from "../model/LicenseRecords.ts"
import { type Refused, reject } from "./LicenseCommand.ts"

export const seatsOf = ({ limits }: LicenseView): number => limits.max_floating_users ?? 0

export const refuseWithoutSeats = (view: LicenseView): Refused<"FLOATING_NOT_ENABLED"> | undefined =>
  seatsOf(view) === 0
    ? reject("FLOATING_NOT_ENABLED", "The license has no floating seats: activate the device instead.")
    : undefined

/** A device with a live lease gets its own seat again. */
export const refuseTaken = (
  view: LicenseView,
  device: DeviceRecord | undefined
): Refused<"FLOATING_LIMIT_REACHED"> | undefined => {
  const [seats, used] = [seatsOf(view), view.liveLeaseCount]
  if (used < seats || (device !== undefined && view.liveLeaseOf(device.id) !== undefined)) return undefined
  return reject(
    "FLOATING_LIMIT_REACHED",
    `All floating seats of the license are taken (${seats} of ${seats}): try again when one is free.`,
    { detail: String(seats), facts: { max: seats, used } }
  )
}

interface Borrowing {
  /** Until when the seat is to be borrowed; absent: it is not. */
  readonly until?: number | undefined
}

type Borrowable = Pick<PolicyRecord, "borrow_days_max">

export const refuseBorrowing = (
  policy: Borrowable,
  { until }: Borrowing
): Refused<"BORROWING_NOT_ALLOWED"> | undefined =>
  until === undefined || (policy.borrow_days_max ?? 0) > 0
    ? undefined
    : reject(
        "BORROWING_NOT_ALLOWED",
        "The license does not allow borrowed seats: check out without `until`, and stay connected.",
        { detail: "until" }
      )

/** Refuses a time in the past, longer than the policy's days, or longer than the license's access. */
export const refuseUntil = (
  policy: Borrowable,
  { until }: Borrowing,
  accessEnds: number | undefined,
  now: number
): Refused<"VALIDATION_ERROR" | "BORROW_TOO_LONG"> | undefined => {
  if (until === undefined) return undefined
  if (until <= now)
    return reject("VALIDATION_ERROR", "The seat would be borrowed until a time in the past: choose a later `until`.", {
      detail: "until"
    })
  const days = now + (policy.borrow_days_max ?? 0) * dayMillis
  const last = Math.min(days, accessEnds ?? Number.POSITIVE_INFINITY)
  if (until <= last) return undefined
  const until_max = formatTimestamp(last)
  return reject("BORROW_TOO_LONG", `A seat can be borrowed until ${until_max} at most: choose an earlier \`until\`.`, {
    detail: "until",
    facts: { until_max }
  })
}

/** Until when a lease is borrowed, if it is live and borrowed. */
export const borrowedUntil = (lease: LeaseRecord | undefined, now: number): number | undefined => {
  const until = lease?.status === "live" ? lease.borrowed_until : undefined
  return until !== undefined && now < until ? until : undefined
}

/**
 * Ends live leases. A borrowed seat stays taken until its machine has to bring it back, because the machine may use it
 * offline: heartbeats no longer count.
 */
export const endUnborrowed = (
  leases: Iterable<LeaseRecord>,
  status: "ended" | "blacklisted",
  now: number
): ReadonlyArray<LeaseRecord> =>
  Array.from(leases).flatMap((lease) => {
    const until = borrowedUntil(lease, now)
    if (until === undefined) return [{ ...lease, status, ended_at: now }]
    return until < lease.expires_at ? [{ ...lease, expires_at: until }] : []
  })
