/**
 * Renews the maintenance of a perpetual license (docs/API.md, "Maintenance"). Days are added to the stored end if it is
 * in the future, otherwise to now. A pending maintenance begins with the renewal. The end never moves to an earlier date.
 */
import { dayMillis, formatTimestamp } from "../../contract/api/Timestamp.ts"
import { changesOf } from "../../ledger/events/Changes.ts"
import { type LicenseSnapshot, snapshot } from "../model/LicenseRecords.ts"
import type { LicenseMaintenance } from "../model/RenewalRequests.ts"
import { accept, licenseEvent, type Rule, reject } from "../rules/LicenseCommand.ts"
import {
  begunFeatures,
  changesOfBegun,
  pendingTermEndsAt,
  refuseTerms,
  termBeginsAt,
  termBegun
} from "../rules/Terms.ts"
import { refuseRevoked } from "./Assignments.ts"
import { namedLinks } from "./Linkage.ts"
import { paidFor } from "./Renewal.ts"

export type MaintenanceCommand = typeof LicenseMaintenance.Type

type MaintenanceCode =
  | "LICENSE_STATE_CONFLICT"
  | "NOT_FOUND"
  | "LINKAGE_MISMATCH"
  | "EXPIRY_NOT_IN_FUTURE"
  | "RENEWAL_NOT_LATER"
  | "VALIDATION_ERROR"

export const renewMaintenance: Rule<MaintenanceCommand, LicenseSnapshot, MaintenanceCode> = {
  name: "renew maintenance",
  needs: ({ order_id, subscription_id }) => ({ links: { order: order_id, subscription: subscription_id } }),
  decide: (view, command, now) => {
    const revoked = refuseRevoked(view, now)
    if (revoked !== undefined) return revoked
    const { license, policy } = view
    const stored = license.maintenance_expires_at
    const end = policy.license_type === "perpetual" ? (stored ?? pendingTermEndsAt(view, now)) : undefined
    if (end === undefined) return withoutMaintenance
    const links = namedLinks(view, command)
    if ("accepted" in links) return links
    const { extend_by_days = 0, maintenance_expires_at = Math.max(end, now) + extend_by_days * dayMillis } = command
    const detail = { detail: "maintenance_expires_at" }
    if (maintenance_expires_at <= now)
      return reject("EXPIRY_NOT_IN_FUTURE", "The maintenance would end in the past: choose a later end.", detail)
    if (stored !== undefined && maintenance_expires_at <= stored) {
      const message = `The maintenance already lasts until ${formatTimestamp(stored)}: choose a later end, or update the license to shorten it.`
      return reject("RENEWAL_NOT_LATER", message, detail)
    }
    const refused = refuseTerms(policy.license_type, { ...license, maintenance_expires_at })
    if (refused !== undefined) return refused
    const begins = termBeginsAt({ ...license, maintenance_expires_at }, now) ?? now
    const begun = begunFeatures(view, begins, now)
    return accept(
      {
        license: { maintenance_expires_at, term_days: undefined, ...termBegun(license, begins), updated_at: now },
        entitlement: true,
        assignments: begun.map(({ after }) => after),
        events: [
          licenseEvent("license.maintenance_renewed", license.id, {
            ...changesOf({ maintenance_expires_at: stored }, { maintenance_expires_at }, ["maintenance_expires_at"]),
            ...changesOfBegun(begun),
            ...paidFor(command, links)
          })
        ]
      },
      snapshot
    )
  }
}

const withoutMaintenance = reject(
  "VALIDATION_ERROR",
  "The license has no end of maintenance to renew: update its maintenance_expires_at first, if it is perpetual.",
  { detail: "maintenance_expires_at" }
)
