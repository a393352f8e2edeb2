/**
 * Moves a license to another policy of its product, or applies the one that it has (docs/API.md, "Change of policy"). Devices and
 * leases stay, and no heartbeat is due earlier than promised.
 */
import { unknownId } from "../../contract/api/Failure.ts"
import { changesOf } from "../../ledger/events/Changes.ts"
import { heartbeatDueAt } from "../../vendor/policies/Policy.ts"
import { wholeIntervals } from "../model/Heartbeat.ts"
import type { LicensePolicyChange } from "../model/License.ts"
import {
  type LicenseRecord,
  type LicenseSnapshot,
  type LicenseView,
  type PolicyRecord,
  snapshot,
  type TargetPolicy
} from "../model/LicenseRecords.ts"
import { accept, licenseEvent, type Refused, type Rule, reject } from "../rules/LicenseCommand.ts"
import { statusAt, statusByClock } from "../rules/Lifecycle.ts"
import { refusePast, refuseTerms, termBeginsAt, termBegun, termOf } from "../rules/Terms.ts"
import { refuseRevoked } from "./Assignments.ts"
import { featuresAfterMove } from "./GrantedFeatures.ts"

export type PolicyChangeCommand = typeof LicensePolicyChange.Type

type PolicyChangeCode =
  | "LICENSE_STATE_CONFLICT"
  | "NOT_FOUND"
  | "LINKAGE_MISMATCH"
  | "EXPIRY_NOT_IN_FUTURE"
  | "VALIDATION_ERROR"

export const changePolicy: Rule<PolicyChangeCommand, LicenseSnapshot, PolicyChangeCode> = {
  name: "change policy",
  // The number of leases shows whether the license is in use; then a pending term begins with the move.
  needs: ({ policy_id }) => ({ policyId: policy_id, seats: true, ownSubscription: true }),
  // The cached state belongs to the old policy.
  endsBatch: () => true,
  decide: (view, command, now) => {
    const revoked = refuseRevoked(view, now)
    if (revoked !== undefined) return revoked
    const target = targetOf(view, command)
    if ("accepted" in target) return target
    const moved = movedLicense(view, target.policy, command, now)
    const refused =
      refuseTerms(target.policy.license_type, moved) ?? refusePast({ expires_at: command.expires_at }, now)
    if (refused !== undefined) return refused
    const begins = termBeginsAt(moved, now)
    const features = featuresAfterMove(view, target, moved, command.keep_features === true, now)
    const changes = {
      ...changesOf<Partial<LicenseRecord>>(view.license, moved, ["policy_id", "expires_at", "maintenance_expires_at"]),
      ...changesOf(view.policy, target.policy, ["license_type"]),
      ...features.changes
    }
    // Metadata of features is in no event.
    const isSame = Object.keys(changes).length === 0 && features.assignments.length === 0
    if (isSame && moved.term_days === view.license.term_days) return accept({}, snapshot)
    return accept(
      {
        license: {
          policy_id: moved.policy_id,
          expires_at: moved.expires_at,
          maintenance_expires_at: moved.maintenance_expires_at,
          term_days: moved.term_days,
          ...termBegun(view.license, begins),
          kept_counts: features.kept_counts,
          entitlement_counter: counterAfter(view, target.policy),
          ...reactivated(moved, target.policy, now),
          ...promisesKept(view, moved, target.policy, now),
          updated_at: now
        },
        ...(target.policy.id === view.policy.id ? undefined : { policy: target.policy }),
        assignments: features.assignments,
        removedAssignments: features.removed,
        ledger: features.ledger,
        events: [licenseEvent("license.policy_changed", view.license.id, { changes }), ...features.events]
      },
      snapshot
    )
  }
}

const targetOf = (
  view: LicenseView,
  { policy_id }: PolicyChangeCommand
): TargetPolicy | Refused<"NOT_FOUND" | "LINKAGE_MISMATCH"> => {
  const target = view.targetPolicy(policy_id)
  const detail = { detail: "policy_id" }
  if (target === undefined) return reject("NOT_FOUND", unknownId("policy", policy_id), detail)
  return target.product_id === view.license.product_id
    ? target
    : reject(
        "LINKAGE_MISMATCH",
        "The policy belongs to another product than the license: use a policy of the license's product.",
        detail
      )
}

/**
 * The license with its new policy and dates. With another license type it gets the term of a new license, otherwise it
 * keeps its term. A given expiry takes precedence.
 */
const movedLicense = (
  { license, liveLeaseCount, policy }: LicenseView,
  target: PolicyRecord,
  { expires_at }: PolicyChangeCommand,
  now: number
): LicenseRecord => {
  const moved = { ...license, policy_id: target.id }
  if (target.license_type === policy.license_type)
    return expires_at === undefined ? moved : { ...moved, expires_at, term_days: undefined }
  // Devices in use are not activated again, so the term cannot wait for a first activation.
  const isUsed = license.times_activated > 0 || liveLeaseCount > 0
  const duration = isUsed ? { ...target, duration_starts: "creation" as const } : target
  return {
    ...moved,
    ...termOf(duration, { expires_at, starts_at: license.starts_at }, now)
  }
}

/** The published entitlement version is the sum of two counters. It rises by one, whatever the new policy's counter. */
const counterAfter = ({ license, policy }: LicenseView, target: PolicyRecord): number =>
  license.entitlement_counter + policy.entitlement_counter + 1 - target.entitlement_counter

/** The license becomes active if the new policy and expiry permit it. All other states are set by the clock. */
const reactivated = (moved: LicenseRecord, target: PolicyRecord, now: number) =>
  moved.status !== "suspended" && statusByClock(moved, target, now) === "active"
    ? { status: "active" as const }
    : undefined

/**
 * No device is due before its promised instant. If the new policy requires heartbeats for the first time, or makes an
 * expired license usable again, every device gets a whole interval.
 */
const promisesKept = (
  { license, policy }: LicenseView,
  moved: LicenseRecord,
  target: PolicyRecord,
  now: number
): Pick<LicenseRecord, "not_due_before" | "heartbeat_from"> => {
  const promised = [
    license.not_due_before,
    policy.not_due_before,
    target.require_heartbeat && !policy.require_heartbeat ? heartbeatDueAt(target, now) : undefined
  ].filter((instant) => instant !== undefined)
  const not_due_before = promised.length === 0 ? undefined : Math.max(...promised)
  const isServedAnew = statusAt(license, policy, now) === "expired" && statusAt(moved, target, now) !== "expired"
  return isServedAnew ? wholeIntervals({ ...moved, not_due_before }, target, moved.starts_at, now) : { not_due_before }
}
