/** The events of changes by the clock, for the license's actor and for the sweeps. */
import { formatTimestamp } from "../../contract/api/Timestamp.ts"
import type { NewEvent } from "../../ledger/events/Entry.ts"
import type { LicenseStatus } from "../model/License.ts"
import type { Assignment, LeaseRecord } from "../model/LicenseRecords.ts"
import { licenseEvent } from "./LicenseCommand.ts"

const statusEventTypes = { grace_period: "license.grace_period_started", expired: "license.expired" } as const

export const statusEvents = (
  licenseId: string,
  passedStatuses: ReadonlyArray<LicenseStatus>
): ReadonlyArray<NewEvent> =>
  passedStatuses
    .filter((to) => to === "grace_period" || to === "expired")
    .map((to) => licenseEvent(statusEventTypes[to], licenseId, { status: to }))

export const featureExpiredEvent = (
  licenseId: string,
  { expires_at, feature_code, feature_id }: Pick<Assignment, "feature_id" | "feature_code" | "expires_at">
): NewEvent =>
  licenseEvent("license.feature_expired", licenseId, {
    feature_id,
    feature_code,
    ...(expires_at === undefined ? undefined : { expires_at: formatTimestamp(expires_at) })
  })

export const leaseExpiredEvent = (
  license_id: string,
  { id, device_id }: Pick<LeaseRecord, "id" | "device_id">
): NewEvent => ({
  event_type: "lease.expired",
  resource_type: "lease",
  resource_id: id,
  metadata: { license_id, device_id, status: { old: "live", new: "expired" } }
})

/** The event of a lapsed activation; the device may keep a floating seat. */
export const deviceExpiredEvent = (license_id: string, deviceId: string): NewEvent => ({
  event_type: "device.expired",
  resource_type: "device",
  resource_id: deviceId,
  metadata: { license_id, status: { old: "active", new: "expired" } }
})
