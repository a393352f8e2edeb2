/** Which dates a license of each type may have. Checked when a license is created and at each edit. */
import type { LicenseType } from "../../catalog/policies/Policy.ts"
import { type Refused, reject } from "./LicenseCommand.ts"

/** The dates of a license, epoch milliseconds. */
export interface Terms {
  readonly starts_at?: number | undefined
  readonly expires_at?: number | undefined
  readonly maintenance_expires_at?: number | undefined
}

/** The types of licenses that have a term: they need an expiry and can be renewed. */
export const renewable: ReadonlySet<LicenseType> = new Set(["time_limited", "subscription", "trial"])

export const refuseTerms = (type: LicenseType, terms: Terms): Refused<"VALIDATION_ERROR"> | undefined => {
  if (type === "perpetual" && terms.expires_at !== undefined) {
    return invalid("A perpetual license has no expiry: use maintenance_expires_at for its updates.", "expires_at")
  }
  if (type !== "perpetual" && terms.maintenance_expires_at !== undefined) {
    return invalid("Only a perpetual license has a maintenance cutoff: use expires_at.", "maintenance_expires_at")
  }
  if (renewable.has(type) && terms.expires_at === undefined) {
    return invalid(`A license of the type ${type} needs an expiry: give expires_at.`, "expires_at")
  }
  if (terms.starts_at !== undefined && terms.expires_at !== undefined && terms.starts_at >= terms.expires_at) {
    return invalid(
      "The license would expire before it starts: choose an earlier starts_at or a later expires_at.",
      "starts_at"
    )
  }
  return undefined
}

const invalid = (message: string, detail: string) => reject("VALIDATION_ERROR", message, { detail })

/** A new license must not be expired already. */
export const refusePast = (terms: Terms, now: number): Refused<"EXPIRY_NOT_IN_FUTURE"> | undefined =>
  terms.expires_at !== undefined && terms.expires_at <= now
    ? reject("EXPIRY_NOT_IN_FUTURE", "The license would be expired already: choose an expires_at in the future.", {
        detail: "expires_at"
      })
    : undefined
