/**
 * Changes the quota and the consumption of a feature by hand: first the limit, then added credits, then the count. Each
 * change is a row of the ledger. The license's lifetime consumption does not change. A maximum that is set by hand stays
 * when a policy is applied.
 */
import { changesOf } from "../../ledger/events/Changes.ts"
import type { LicenseFeature, LicenseUsageReset } from "../model/LicenseFeature.ts"
import type { Assignment, LicenseView } from "../model/LicenseRecords.ts"
import type { LedgerEntry } from "../model/Usage.ts"
import { accept, licenseEvent, type Refused, type Rule, reject } from "../rules/LicenseCommand.ts"
import { quotaOf } from "../rules/Quota.ts"
import { refuseQuota } from "./AssignedQuota.ts"
import { featureOf, refuseRevoked } from "./Assignments.ts"

export type UsageResetCommand = typeof LicenseUsageReset.Type

type UsageResetCode = "LICENSE_STATE_CONFLICT" | "NOT_FOUND" | "VALIDATION_ERROR"

export const resetUsage: Rule<UsageResetCommand, LicenseFeature, UsageResetCode> = {
  name: "reset usage",
  decide: (view, command, now) => {
    const revoked = refuseRevoked(view, now)
    if (revoked !== undefined) return revoked
    const before = targetOf(view, command)
    if ("accepted" in before) return before
    const refused = refuseCredits(before, command)
    if (refused !== undefined) return refused
    const { assignment, ledger } = applySteps(before, command)
    const invalid = refuseQuota(view, assignment, command)
    if (invalid !== undefined) return invalid
    const { feature_id, feature_code } = assignment
    const changes = changesOf(before, assignment, [
      "max_consumptions",
      "total_consumptions",
      "extra_credits",
      "overage",
      "from_policy"
    ])
    const reply = (after: LicenseView) => featureOf(after, assignment)
    if (Object.keys(changes).length === 0) return accept({}, reply)
    return accept(
      {
        license: { updated_at: now },
        entitlement: true,
        assignments: [{ ...assignment, updated_at: now }],
        ledger,
        events: [licenseEvent("license.usage_reset", view.license.id, { feature_id, feature_code, changes })]
      },
      reply
    )
  }
}

const targetOf = (
  view: LicenseView,
  { feature_id, feature_code = "" }: UsageResetCommand
): Assignment | Refused<"NOT_FOUND"> => {
  const assignment = feature_id === undefined ? view.assignmentByCode(feature_code) : view.assignmentById(feature_id)
  return (
    assignment ??
    reject("NOT_FOUND", "The license does not have this feature: assign it first.", {
      detail: feature_id === undefined ? "feature_code" : "feature_id"
    })
  )
}

const refuseCredits = (before: Assignment, { max_consumptions, add_credits }: UsageResetCommand) => {
  if (add_credits === undefined) return undefined
  const limit = max_consumptions ?? before.max_consumptions
  const detail = { detail: "add_credits" }
  if (limit === undefined) {
    return reject(
      "VALIDATION_ERROR",
      "The feature is unlimited: leave out add_credits, or give max_consumptions.",
      detail
    )
  }
  // Reversals give used credits back.
  const { credits_used = 0, extra_credits = 0, reset_period } = before
  const credited = reset_period === undefined ? limit : extra_credits + credits_used
  return credited > Number.MAX_SAFE_INTEGER - add_credits
    ? reject(
        "VALIDATION_ERROR",
        `The maximum would exceed ${Number.MAX_SAFE_INTEGER}, the largest count: add fewer credits.`,
        detail
      )
    : undefined
}

/** The assignment after all requested changes, and a ledger row for each step that changed it. */
const applySteps = (before: Assignment, command: UsageResetCommand) => {
  const ledger: Array<LedgerEntry> = []
  let assignment = before
  const step = (
    action: LedgerEntry["action"],
    amount: number,
    next: Partial<Assignment>,
    beside?: Pick<LedgerEntry, "credits" | "overage">
  ) => {
    assignment = { ...assignment, ...next }
    const { feature_id, total_consumptions } = assignment
    ledger.push({
      feature_id,
      action,
      amount,
      balance_after: total_consumptions,
      max_after: quotaOf(assignment),
      ...beside
    })
  }
  const { max_consumptions: limit, add_credits: credits } = command
  if (limit !== undefined && limit !== before.max_consumptions) step("set_limit", limit, { max_consumptions: limit })
  if (credits !== undefined && before.reset_period === undefined)
    step("top_up", credits, { max_consumptions: (assignment.max_consumptions ?? 0) + credits })
  // Of a quota with periods the credits stay when the period ends.
  else if (credits !== undefined)
    step("top_up", credits, { extra_credits: (assignment.extra_credits ?? 0) + credits }, { credits })
  const total = command.reset_consumed === true ? 0 : command.total_consumptions
  if (total !== undefined && total !== before.total_consumptions) {
    const { credits_used, overage } = before
    step(
      "reset",
      total - before.total_consumptions,
      {
        total_consumptions: total,
        ...(credits_used === undefined ? undefined : { credits_used: undefined }),
        ...(overage === undefined ? undefined : { overage: undefined })
      },
      overage === undefined ? undefined : { overage: -overage }
    )
  }
  const from_policy = before.from_policy && assignment.max_consumptions === before.max_consumptions
  return { assignment: { ...assignment, from_policy }, ledger }
}
