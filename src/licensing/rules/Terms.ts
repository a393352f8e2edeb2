/**
 * The valid dates for each license type, and the terms of policies: a license without a given expiry gets one at its
 * creation or with its first use.
 */
import { dayMillis, formatTimestamp, latest } from "../../contract/api/Timestamp.ts"
import type { NewEvent } from "../../ledger/events/Entry.ts"
import type { LicenseType } from "../../vendor/policies/Policy.ts"
import type { Assignment, LicenseRecord, LicenseView, PolicyRecord } from "../model/LicenseRecords.ts"
import { changeOfFeature } from "../model/RecordedAssignment.ts"
import { licenseEvent, type Refused, reject } from "./LicenseCommand.ts"
import { beginPeriods, periodsWait } from "./UsagePeriods.ts"

/** The dates of a license, and the days of a term that begins with its first use. */
export type Terms = Pick<LicenseRecord, "starts_at" | "expires_at" | "maintenance_expires_at" | "term_days">

/** The license types with a term: they need an expiry and can be renewed. */
export const renewable: ReadonlySet<LicenseType> = new Set(["time_limited", "subscription", "trial"])

export const refuseTerms = (type: LicenseType, terms: Terms): Refused<"VALIDATION_ERROR"> | undefined => {
  if (type === "perpetual" && terms.expires_at !== undefined) {
    return invalid("A perpetual license has no expiry: use maintenance_expires_at for its updates.", "expires_at")
  }
  if (type !== "perpetual" && terms.maintenance_expires_at !== undefined) {
    return invalid("Only a perpetual license has a maintenance cutoff: use expires_at.", "maintenance_expires_at")
  }
  if (renewable.has(type) && terms.expires_at === undefined && terms.term_days === undefined) {
    return invalid(
      `A license of the type ${type} needs an expiry: give expires_at, or use a policy with duration_days.`,
      "expires_at"
    )
  }
  if (terms.starts_at !== undefined && terms.expires_at !== undefined && terms.starts_at >= terms.expires_at) {
    return invalid(
      "The license would expire before it starts: choose an earlier starts_at or a later expires_at.",
      "starts_at"
    )
  }
  if ((terms.expires_at ?? 0) > latest)
    return invalid("The license would expire after the year 9999: choose an earlier starts_at.", "starts_at")
  return (terms.maintenance_expires_at ?? 0) > latest
    ? invalid("The maintenance would end after the year 9999: choose an earlier end.", "maintenance_expires_at")
    : undefined
}

const invalid = (message: string, detail: string) => reject("VALIDATION_ERROR", message, { detail })

export const refusePast = (terms: Terms, now: number): Refused<"EXPIRY_NOT_IN_FUTURE"> | undefined =>
  terms.expires_at !== undefined && terms.expires_at <= now
    ? reject("EXPIRY_NOT_IN_FUTURE", "The license would be expired already: choose an expires_at in the future.", {
        detail: "expires_at"
      })
    : undefined

type Duration = Pick<PolicyRecord, "license_type" | "duration_days" | "duration_starts">

type Ends = Pick<Terms, "expires_at" | "maintenance_expires_at">

/** The end of a term: the expiry, or of a perpetual license the end of maintenance. */
const endField = ({ license_type }: Pick<PolicyRecord, "license_type">) =>
  license_type === "perpetual" ? "maintenance_expires_at" : "expires_at"

export const hasEnd = ({ expires_at, maintenance_expires_at }: Ends): boolean =>
  expires_at !== undefined || maintenance_expires_at !== undefined

/**
 * The term of a license that gets the policy now. A given end takes precedence. A term that begins with the creation
 * begins at the license's start if that is later.
 */
export const termOf = (
  { duration_days, duration_starts, ...policy }: Duration,
  { expires_at, maintenance_expires_at, starts_at }: Pick<Terms, "starts_at"> & Ends,
  now: number
): Ends & Pick<Terms, "term_days"> => {
  const given = { expires_at, maintenance_expires_at, term_days: undefined }
  if (hasEnd(given) || duration_days === undefined) return given
  if (duration_starts === "first_activation") return { ...given, term_days: duration_days }
  return { ...given, [endField(policy)]: Math.max(now, starts_at ?? now) + duration_days * dayMillis }
}

/** When the term of a license with these dates begins: now, or at a later start. Undefined for a pending term. */
export const termBeginsAt = (terms: Terms, now: number): number | undefined =>
  terms.term_days !== undefined && !hasEnd(terms) ? undefined : Math.max(now, terms.starts_at ?? now)

/** The end of a feature's days, at most the latest instant that a response can contain. */
export const daysEndAt = (begins: number, days: number): number => Math.min(begins + days * dayMillis, latest)

interface BegunFeature {
  readonly before: Assignment
  readonly after: Assignment
}

/** The features with pending days or periods, after the term begins at this instant. */
export const begunFeatures = (
  { assignments }: Pick<LicenseView, "assignments">,
  begins: number,
  now: number
): ReadonlyArray<BegunFeature> =>
  assignments.flatMap((before) => {
    const { expires_after_days, expires_at } = before
    // A node of the previous version may have set an expiry and kept the days.
    const isPending = expires_after_days !== undefined && expires_at === undefined
    const isWaiting = periodsWait(before)
    if (!isPending && !isWaiting) return []
    const ends = isPending
      ? { expires_at: daysEndAt(begins, expires_after_days), expires_after_days: undefined }
      : undefined
    const after = { ...before, ...ends, updated_at: now }
    return [{ before, after: isWaiting ? beginPeriods(after, begins, now) : after }]
  })

/** A license whose pending term begins. */
export const termBegun = (license: Terms, begins: number | undefined) =>
  license.term_days === undefined || hasEnd(license) || begins === undefined ? undefined : { term_began_at: begins }

/** The changes of these features, for the event of the command that began the term. */
export const changesOfBegun = (features: ReadonlyArray<BegunFeature>): ReturnType<typeof changeOfFeature> =>
  Object.assign({}, ...features.map(({ after, before }) => changeOfFeature(after.feature_code, before, after)))

/**
 * The end of a pending term that begins now, or at the license's start if that is later; undefined if none is pending. The
 * policy's current days count, otherwise those at the license's creation.
 */
export const pendingTermEndsAt = ({ license, policy }: LicenseView, now: number): number | undefined => {
  // A node of the previous version may have set an expiry without ending the term.
  if (license.term_days === undefined || hasEnd(license)) return undefined
  const days = policy.duration_starts === "first_activation" ? policy.duration_days : undefined
  return Math.max(now, license.starts_at ?? now) + (days ?? license.term_days) * dayMillis
}

/** The changes of a license whose pending term begins. */
export interface BegunTerm {
  readonly license: Partial<Ends & Pick<LicenseRecord, "term_days" | "term_began_at" | "updated_at">>
  readonly assignments: ReadonlyArray<Assignment>
  readonly event: NewEvent
}

/** What the access of a license depends on, once its pending term has begun. */
export const withTerm = (
  { license, policy }: Pick<LicenseView, "license" | "policy">,
  begun: BegunTerm | undefined
): Pick<LicenseView, "license" | "policy"> => ({
  license: begun === undefined ? license : { ...license, ...begun.license },
  policy
})

/**
 * The first activation or seat of a license begins its pending term and the pending days of its features. Also begins
 * features that a node of the previous version left pending.
 */
export const beginTerm = (view: LicenseView, now: number): BegunTerm | undefined => {
  const ends = pendingTermEndsAt(view, now)
  const features = begunFeatures(view, now, now)
  if (ends === undefined && features.length === 0) return undefined
  const field = endField(view.policy)
  return {
    license: {
      ...(ends === undefined ? undefined : { [field]: ends, term_days: undefined, term_began_at: now }),
      updated_at: now
    },
    assignments: features.map(({ after }) => after),
    event: licenseEvent("license.updated", view.license.id, {
      changes: {
        ...(ends === undefined ? undefined : { [field]: { old: null, new: formatTimestamp(ends) } }),
        ...changesOfBegun(features)
      }
    })
  }
}
