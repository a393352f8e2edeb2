/** When a device's heartbeat is due (docs/API.md, "Devices"). Policy edits never change a stored due instant. */
import { heartbeatDueAt, slackMillis } from "../../vendor/policies/Policy.ts"
import type { DeviceRecord, LicenseRecord, PolicyRecord } from "./LicenseRecords.ts"

/** The due instant after an activation or validation: a whole interval, and at least the offline envelope. */
export const dueAfterContact = (
  policy: PolicyRecord,
  { offline_expires_at }: Pick<DeviceRecord, "offline_expires_at">,
  now: number
): number => Math.max(heartbeatDueAt(policy, now), (offline_expires_at ?? Number.NEGATIVE_INFINITY) + slackMillis)

type Floor = Pick<LicenseRecord, "not_due_before">
type Started = Pick<LicenseRecord, "not_due_before" | "starts_at">

/** No device of the license is due before this instant. */
export const notDueBefore = (license: Floor, policy: Floor): number =>
  Math.max(license.not_due_before ?? Number.NEGATIVE_INFINITY, policy.not_due_before ?? Number.NEGATIVE_INFINITY)

const needsHeartbeat = (device: DeviceRecord, policy: PolicyRecord): boolean =>
  policy.require_heartbeat && device.status === "active" && device.holds_slot

/** When the device may lapse by its own promise; infinity = never. */
export const mayLapseAt = (device: DeviceRecord, policy: PolicyRecord): number =>
  needsHeartbeat(device, policy) ? (device.due_at ?? Number.NEGATIVE_INFINITY) + 1 : Number.POSITIVE_INFINITY

/**
 * A start that was moved ahead gives a whole interval of the policy as it is then, to each device without a response since.
 * `not_due_before` has the interval of the policy as it was when the start was moved.
 */
const dueAfterStart = (
  { activated_at, last_validated_at }: DeviceRecord,
  { not_due_before, starts_at }: Started,
  policy: PolicyRecord
): number =>
  starts_at !== undefined &&
  (not_due_before ?? 0) >= starts_at &&
  Math.max(activated_at ?? 0, last_validated_at ?? 0) < starts_at
    ? heartbeatDueAt(policy, starts_at)
    : Number.NEGATIVE_INFINITY

/** The last instant at which the heartbeat is in time; infinity = it is never due. */
export const dueAt = (device: DeviceRecord, license: Started, policy: PolicyRecord): number => {
  if (!needsHeartbeat(device, policy)) return Number.POSITIVE_INFINITY
  const due = Math.max(
    device.due_at ?? Number.NEGATIVE_INFINITY,
    notDueBefore(license, policy),
    dueAfterStart(device, license, policy)
  )
  return due === Number.NEGATIVE_INFINITY ? Number.POSITIVE_INFINITY : due
}

/** Lowers the license's bound of all due instants (`heartbeat_from`) if this one is earlier. */
export const boundLoweredTo = (
  { heartbeat_from }: LicenseRecord,
  due: number
): Pick<LicenseRecord, "heartbeat_from"> | undefined =>
  heartbeat_from !== undefined && due < heartbeat_from ? { heartbeat_from: due } : undefined

/**
 * Gives every device a whole interval if the license is usable again, or will be from `starts_at` on. The promise of a
 * start that was not reached is dropped.
 */
export const wholeIntervals = (
  license: LicenseRecord,
  policy: PolicyRecord,
  starts_at: number | undefined,
  now: number
): Pick<LicenseRecord, "not_due_before" | "heartbeat_from"> => {
  const due = heartbeatDueAt(policy, Math.max(now, starts_at ?? now))
  const before = (license.starts_at ?? now) <= now ? license.not_due_before : undefined
  const not_due_before = Math.max(due, before ?? due)
  return { not_due_before, ...boundLoweredTo(license, not_due_before) }
}
