/** What a refused call means for the people who support customers. Other codes say it themselves. */
import type { Activity } from "../../../insight/activities/Activity.ts"
import { sentenceOf } from "../parts/Format.ts"

type Code = NonNullable<Activity["code"]>

const words: Partial<Record<Code, string>> = {
  BAD_REQUEST: "The request could not be read",
  INVALID_JSON: "The request’s body was not the JSON object that the operation expects",
  INVALID_QUERY: "A parameter in the request’s address was wrong",
  VALIDATION_ERROR: "A value in the request was not allowed",
  PAYLOAD_TOO_LARGE: "The request’s body was too large",
  UNSUPPORTED_MEDIA_TYPE: "The request’s body was not declared as JSON",
  METHOD_NOT_ALLOWED: "The path does not accept this method",
  NOT_FOUND: "What the request named does not exist",
  RATE_LIMITED: "Too many requests came at once",
  NOT_READY: "The service was not ready",
  INTERNAL_ERROR: "The service failed",
  IDEMPOTENCY_KEY_REQUIRED: "The renewal had no Idempotency-Key",
  IDEMPOTENCY_KEY_REUSED: "The Idempotency-Key belongs to another request",
  IDEMPOTENCY_IN_PROGRESS: "The same request was still running",
  TOKEN_MISSING: "The request had no API token",
  TOKEN_MALFORMED: "The API token was incomplete or mistyped",
  TOKEN_INVALID: "The API token is unknown or was deleted",
  TOKEN_EXPIRED: "The API token has expired",
  TOKEN_INACTIVE: "The API key is switched off",
  TOKEN_ADDRESS_BLOCKED: "The API key does not allow this network",
  TOKEN_SCOPE_DENIED: "The API token may not do this",
  LICENSE_KEY_MISSING: "The request had no license key",
  LICENSE_KEY_INVALID: "No license has this key",
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
  PRODUCT_MISMATCH: "The key belongs to another product",
  LICENSE_STATE_CONFLICT: "The license’s state does not allow the change",
  DEVICE_STATE_CONFLICT: "The device’s state does not allow the change",
  LEASE_NOT_FOUND: "No floating seat has this token",
  SELF_DEACTIVATION_LIMIT_REACHED: "The customer has deactivated as many devices as allowed",
  TRANSFER_LIMIT_REACHED: "The license was transferred as often as allowed",
  LINKAGE_MISMATCH: "The records belong to different products",
  CUSTOM_FIELD_TYPE_MISMATCH: "The value has another type than the custom field"
}

export const wordsOfRefusal = (code: string): string => words[code as Code] ?? sentenceOf(code.toLowerCase())

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
