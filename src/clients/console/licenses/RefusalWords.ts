/** What a refused call means for the people who support customers. */
import type { Activity } from "../../../insight/activities/Activity.ts"
import { sentenceOf } from "../parts/Format.ts"

type Code = NonNullable<Activity["code"]>

const words: Partial<Record<Code, string>> = {
  LICENSE_SUSPENDED: "The license is suspended",
  LICENSE_EXPIRED: "The license has expired",
  LICENSE_REVOKED: "The license is revoked",
  LICENSE_NOT_STARTED: "The license has not started yet",
  DEVICE_BLACKLISTED: "The device is blocked",
  DEVICE_NOT_FOUND: "The device was never activated",
  DEVICE_NOT_ACTIVE: "The device is no longer active",
  HEARTBEAT_OVERDUE: "The device was silent for too long",
  VM_NOT_ALLOWED: "Virtual machines are not allowed",
  CONTAINER_NOT_ALLOWED: "Containers are not allowed",
  OFFLINE_NOT_ALLOWED: "Offline use is not allowed",
  FLOATING_NOT_ENABLED: "The license has no floating seats",
  BORROWING_NOT_ALLOWED: "Seats cannot be borrowed",
  BORROW_TOO_LONG: "The seat was to be borrowed for too long",
  ACTIVATION_LIMIT_REACHED: "All device slots are taken",
  CONTAINER_LIMIT_REACHED: "All container slots are taken",
  FLOATING_LIMIT_REACHED: "All floating seats are taken",
  USAGE_LIMIT_EXCEEDED: "The quota is used up",
  FEATURE_NOT_ENTITLED: "The feature is not part of the license",
  FEATURE_DISABLED: "The feature is switched off",
  FEATURE_EXPIRED: "The feature has expired",
  VERSION_UNKNOWN: "The version of the application is not in the product’s list",
  VERSION_NOT_ENTITLED: "The version was released after the license’s updates ended",
  LEASE_EXPIRED: "The floating seat was given to somebody else",
  PRODUCT_MISMATCH: "The key belongs to another product"
}

export const wordsOfRefusal = (code: Code): string => words[code] ?? sentenceOf(code.toLowerCase())

export interface RefusalGroup {
  readonly key: string
  /** The newest of them. */
  readonly latest: Activity & { readonly code: Code }
  readonly count: number
}

/** Refused calls with the same reason together, in the order of the newest. */
export const groupsOf = (refused: ReadonlyArray<Activity>): ReadonlyArray<RefusalGroup> => {
  const groups = new Map<string, RefusalGroup>()
  for (const activity of refused) {
    if (activity.code === undefined) continue
    const { code, feature_code: feature, ...others } = activity
    const isOfFeature = feature !== undefined && /^(?:FEATURE|USAGE)_/.test(code)
    const key = isOfFeature ? `${code} ${feature}` : code
    const before = groups.get(key)
    const latest = before?.latest ?? { ...others, code, ...(isOfFeature ? { feature_code: feature } : {}) }
    groups.set(key, { key, latest, count: (before?.count ?? 0) + 1 })
  }
  return [...groups.values()]
}
