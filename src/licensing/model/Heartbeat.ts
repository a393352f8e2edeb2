/**
 * When a device's heartbeat is due (docs/API.md, "Devices"). A due instant is stored when it is promised; a policy edit
 * never changes it.
 */
import { heartbeatDueAt, slackMillis } from "../../vendor/policies/Policy.ts"
import type { DeviceRecord, LicenseRecord, PolicyRecord } from "./LicenseRecords.ts"

/** The due instant of a device that is activated or validated: a whole interval, and no less than its offline envelope. */
export const dueAfterContact = (
  policy: PolicyRecord,
  { offline_expires_at }: Pick<DeviceRecord, "offline_expires_at">,
  now: number
): number => Math.max(heartbeatDueAt(policy, now), (offline_expires_at ?? Number.NEGATIVE_INFINITY) + slackMillis)

type Floor = Pick<LicenseRecord, "not_due_before">

/** No device of the license is due before this instant, whatever it was promised. */
export const notDueBefore = (license: Floor, policy: Floor): number =>
  Math.max(license.not_due_before ?? Number.NEGATIVE_INFINITY, policy.not_due_before ?? Number.NEGATIVE_INFINITY)

/** Whether the device's slot depends on heartbeats. */
const needsHeartbeat = (device: DeviceRecord, policy: PolicyRecord): boolean =>
  policy.require_heartbeat && device.status === "active" && device.holds_slot

/** From when on the device may have lapsed by its own promise; infinity = never. */
export const mayLapseAt = (device: DeviceRecord, policy: PolicyRecord): number =>
  needsHeartbeat(device, policy) ? (device.due_at ?? Number.NEGATIVE_INFINITY) + 1 : Number.POSITIVE_INFINITY

/** The last instant at which the device's heartbeat is in time; infinity = it is never due. */
export const dueAt = (device: DeviceRecord, license: Floor, policy: PolicyRecord): number => {
  if (!needsHeartbeat(device, policy)) return Number.POSITIVE_INFINITY
  const due = Math.max(device.due_at ?? Number.NEGATIVE_INFINITY, notDueBefore(license, policy))
  return due === Number.NEGATIVE_INFINITY ? Number.POSITIVE_INFINITY : due
}

/** The license's bound of all due instants (`heartbeat_from`), lowered for one that is earlier. */
export const boundLoweredTo = (
  { heartbeat_from }: LicenseRecord,
  due: number
): Pick<LicenseRecord, "heartbeat_from"> | undefined =>
  heartbeat_from !== undefined && due < heartbeat_from ? { heartbeat_from: due } : undefined

/**
 * Changes of a license that is served again, or will be from `starts_at` on: every device gets a whole interval. A start
 * that has not been reached promised nothing.
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
