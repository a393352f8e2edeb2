/** Edits a license: its dates, its limits, its customer's name and e-mail, its order and subscription, its metadata. */

import { changed, isUnchanged } from "../../access/preconditions/RecordTag.ts"
import { changesOf } from "../../ledger/events/Changes.ts"
import { patched } from "../../platform/postgres/queries/Sql.ts"
import { isOfSubscription } from "../../vendor/policies/ResetPeriod.ts"
import { wholeIntervals } from "../model/Heartbeat.ts"
import { LicenseUpdate } from "../model/License.ts"
import {
  type Assignment,
  type LicenseRecord,
  type LicenseSnapshot,
  type LicenseView,
  type PolicyRecord,
  snapshot
} from "../model/LicenseRecords.ts"
import { isShownAlike } from "../rules/Entitlement.ts"
import { accept, licenseEvent, type Rule, reject } from "../rules/LicenseCommand.ts"
import { statusAt, statusByClock } from "../rules/Lifecycle.ts"
import { begunFeatures, changesOfBegun, hasEnd, refuseTerms, termBeginsAt, termBegun } from "../rules/Terms.ts"
import { withPeriods } from "../rules/UsagePeriods.ts"
import { periodSource } from "./AssignedQuota.ts"
import { refuseRevoked } from "./Assignments.ts"
import { editedLinks, refuseErasing } from "./Linkage.ts"

type Edit = typeof LicenseUpdate.Type

export type UpdateCommand = Edit & {
  /** The request's If-Match. */
  readonly ifMatch?: string | undefined
}

type UpdateCode = "LICENSE_STATE_CONFLICT" | "CONFLICT" | "NOT_FOUND" | "LINKAGE_MISMATCH" | "VALIDATION_ERROR"

const fields = Object.keys(LicenseUpdate.fields) as ReadonlyArray<keyof Edit>

/** The editable fields in signed payloads: changing one raises the entitlement version. */
const signedFields = ["expires_at", "maintenance_expires_at"] as const

export const update: Rule<UpdateCommand, LicenseSnapshot, UpdateCode> = {
  name: "update",
  // An expiry moved into the past ends all leases before the next command of the same batch is decided.
  needs: ({ customer_email, customer_name, expires_at, order_id, subscription_id }) => ({
    links: { order: order_id ?? undefined, subscription: subscription_id ?? undefined },
    ownOrder: typeof subscription_id === "string" && order_id === undefined,
    allLeases: typeof expires_at === "number",
    owner: typeof customer_email === "string" || typeof customer_name === "string"
  }),
  // The containers of a license with very many devices are counted only if their number is limited.
  endsBatch: ({ max_container_instances }) => max_container_instances !== undefined,
  decide: (view, { ifMatch, ...edit }, now) => {
    const revoked = refuseRevoked(view, now)
    if (revoked !== undefined) return revoked
    if (!isUnchanged(LicenseUpdate, view.license, ifMatch)) return reject("CONFLICT", changed, { detail: "If-Match" })
    const links = editedLinks(view, edit)
    if ("accepted" in links) return links
    const edited = { ...editedBy(view.license, edit), ...links }
    // A given end begins a pending term.
    const begins = (edit.expires_at ?? edit.maintenance_expires_at) == null ? undefined : termBeginsAt(edited, now)
    const begun = begins === undefined ? [] : begunFeatures(view, begins, now)
    const changes = { ...changesOf(view.license, edited, fields), ...changesOfBegun(begun) }
    const moved: LicenseRecord = { ...edited, ...termBegun(view.license, begins) }
    if (Object.keys(changes).length === 0) return accept({}, snapshot)
    const isNamed = typeof edit.customer_email === "string" || typeof edit.customer_name === "string"
    const erasing = isNamed ? refuseErasing(view, view.license.customer_id) : undefined
    if (erasing !== undefined) return erasing
    const refused = refuseTerms(view.policy.license_type, edited)
    if (refused !== undefined) return refused
    const assignments = withMovedPeriods(
      view,
      begun.map(({ after }) => after),
      moved,
      now
    )
    return accept(
      {
        license: {
          ...Object.fromEntries(fields.map((field) => [field, edited[field]])),
          term_days: edited.term_days,
          term_began_at: moved.term_began_at,
          ...reactivated(edited, view, now),
          ...servedAnew(edited, view, now),
          updated_at: now
        },
        assignments,
        entitlement:
          signedFields.some((field) => field in changes) ||
          assignments.some(
            (after) => after.enabled && after.resets_at !== view.assignmentById(after.feature_id)?.resets_at
          ) ||
          !isShownAlike(view.license, edited, view.policy),
        events: [licenseEvent("license.updated", view.license.id, { changes })]
      },
      snapshot
    )
  }
}

/** The changed features: also those whose periods follow the edited start of the license, or its new subscription. */
const withMovedPeriods = (
  view: LicenseView,
  changed: ReadonlyArray<Assignment>,
  moved: LicenseRecord,
  now: number
): ReadonlyArray<Assignment> => {
  const { license } = view
  if (moved.starts_at === license.starts_at && moved.subscription_id === license.subscription_id) return changed
  const after = new Map(changed.map((assignment) => [assignment.feature_id, assignment]))
  for (const assignment of view.assignments)
    if (!after.has(assignment.feature_id)) after.set(assignment.feature_id, assignment)
  const source = periodSource(view, moved)
  return Array.from(after.values()).flatMap((assignment) => {
    const isFollowing = moved.subscription_id !== license.subscription_id || !isOfSubscription(assignment)
    if (assignment.reset_period === undefined || !isFollowing) return changed.includes(assignment) ? [assignment] : []
    return [{ ...withPeriods(assignment, source, now), updated_at: now }]
  })
}

/** A given end replaces a pending term. */
const editedBy = (license: LicenseRecord, edit: Edit): LicenseRecord => {
  const edited = patched<LicenseRecord>(license, edit)
  return hasEnd(edited) ? { ...edited, term_days: undefined } : edited
}

/** The license becomes active if its expiry moves into the future. All other states are set by the clock. */
const reactivated = (edited: LicenseRecord, { license, policy }: LicenseView, now: number) =>
  edited.expires_at !== license.expires_at &&
  edited.status !== "suspended" &&
  statusByClock(edited, policy, now) === "active"
    ? { status: "active" as const }
    : undefined

/** Gives whole heartbeat intervals if the runtime refuses the license before or after the change of dates. */
const servedAnew = (edited: LicenseRecord, { license, policy }: LicenseView, now: number) => {
  if (edited.starts_at === license.starts_at && edited.expires_at === license.expires_at) return undefined
  return isRefused(license, policy, now) || isRefused(edited, policy, now)
    ? wholeIntervals(license, policy, edited.starts_at, now)
    : undefined
}

const isRefused = (license: LicenseRecord, policy: PolicyRecord, now: number): boolean =>
  statusAt(license, policy, now) === "expired" || (license.starts_at ?? now) > now
