/** The expected results of management commands on the features of a license. */
import { canonicalize } from "../../../src/contract/api/CanonicalJson.ts"
import type { AssignCommand } from "../../../src/licensing/changes/Assignments.ts"
import type { UsageResetCommand } from "../../../src/licensing/changes/UsageReset.ts"
import { accepted, refused } from "./Admission.ts"
import { shownEnd } from "./Limits.ts"
import { given, isRevoked, raised, same } from "./Management.ts"
import {
  type Answer,
  type Assignment,
  type Entry,
  featureEnd,
  type License,
  replaced,
  type Situation
} from "./Model.ts"

const assignmentTold = (situation: Situation, { enabled, granted, max, used, ...assignment }: Assignment) => ({
  enabled,
  expires_at: shownEnd(situation, assignment),
  expires_with_license: assignment.follows || undefined,
  total_consumptions: used,
  max_consumptions: max ?? undefined,
  remaining: max === null ? undefined : Math.max(0, max - used),
  from_policy: granted
})

export const resetUsage = (situation: Situation, command: UsageResetCommand): Answer => {
  const { license, catalog } = situation
  if (isRevoked(situation)) return refused(situation, "LICENSE_STATE_CONFLICT")
  const feature = Array.from(license.assignments.keys()).find(
    (id) => id === command.feature_id || catalog.features.get(id) === command.feature_code
  )
  const before = feature === undefined ? undefined : license.assignments.get(feature)
  if (feature === undefined || before === undefined) return refused(situation, "NOT_FOUND")
  const ledger: Array<Entry> = []
  let { max, used } = before
  const enter = (action: string, amount: number) => ledger.push({ feature, action, amount, balance: used, max })
  if (command.max_consumptions !== undefined && command.max_consumptions !== max) {
    max = command.max_consumptions
    enter("set_limit", max)
  }
  if (command.add_credits !== undefined) {
    if (max === null || max + command.add_credits > Number.MAX_SAFE_INTEGER)
      return refused(situation, "VALIDATION_ERROR")
    max += command.add_credits
    enter("top_up", command.add_credits)
  }
  const total = command.reset_consumed === true ? 0 : command.total_consumptions
  if (total !== undefined && total !== used) {
    used = total
    enter("reset", total - before.used)
  }
  if (max === before.max && used === before.used) return accepted(license, assignmentTold(situation, before))
  const assignment = { ...before, max, used }
  const after = raised({ ...license, assignments: replaced(license.assignments, feature, assignment) })
  return { ...accepted(after, assignmentTold(situation, assignment), "license.usage_reset"), ledger }
}

/** The count of a feature that a policy took away. */
export const keptCount = ({ kept }: License, feature: string): number =>
  (JSON.parse(kept) as { readonly [feature: string]: number })[feature] ?? 0

export const assign = (situation: Situation, command: AssignCommand): Answer => {
  const { license, catalog } = situation
  if (isRevoked(situation)) return refused(situation, "LICENSE_STATE_CONFLICT")
  if (command.feature_id === "feat_foreign") return refused(situation, "LINKAGE_MISMATCH")
  if (!catalog.features.has(command.feature_id)) return refused(situation, "NOT_FOUND")
  const before = license.assignments.get(command.feature_id)
  const enabled = command.enabled ?? before?.enabled ?? true
  const follows = command.expires_with_license === true
  const isFollowing = command.expires_at === undefined && command.expires_with_license === undefined
  const expires = follows ? null : given(command.expires_at, before?.expires ?? null)
  const assignment: Assignment = {
    enabled,
    max: given(command.max_consumptions, before?.max ?? null),
    used: before?.used ?? keptCount(license, command.feature_id),
    expires,
    waiting: follows || command.expires_at !== undefined ? null : (before?.waiting ?? null),
    follows: follows || (isFollowing && before?.follows === true),
    recorded: isRecorded(situation, before, enabled, expires),
    granted: false,
    metadata: command.metadata === undefined ? (before?.metadata ?? "{}") : canonicalize(command.metadata)
  }
  const reply = assignmentTold(situation, assignment)
  if (before !== undefined && same({ ...before, recorded: assignment.recorded }, assignment))
    return accepted(license, reply)
  const { [command.feature_id]: _, ...kept } = JSON.parse(license.kept) as Record<string, number>
  const assignments = replaced(license.assignments, command.feature_id, assignment)
  const after = raised({ ...license, assignments, kept: canonicalize(kept) })
  const { max, used } = assignment
  const entry = { feature: command.feature_id, action: "set_limit", amount: max ?? 0, balance: used, max }
  const isLimited = before !== undefined && before.max !== max
  return { ...accepted(after, reply, "license.feature_assigned"), ledger: isLimited ? [entry] : [] }
}

/** A date in the past is recorded by time only if the edit ends a feature that was included. */
const isRecorded = (
  { now }: Situation,
  before: Assignment | undefined,
  enabled: boolean,
  expires: number | null
): boolean => {
  if (expires === null) return false
  if (before?.recorded && before.expires === expires) return true
  const wasIncluded = before?.enabled === true && now < featureEnd(before)
  return now >= expires && !(wasIncluded && enabled)
}

export const unassign = (situation: Situation, { feature_id }: { readonly feature_id: string }): Answer => {
  if (isRevoked(situation)) return refused(situation, "LICENSE_STATE_CONFLICT")
  const assignments = new Map(situation.license.assignments)
  const used = assignments.get(feature_id)?.used
  if (!assignments.delete(feature_id) || used === undefined) return refused(situation, "NOT_FOUND")
  const after = raised({ ...situation.license, assignments })
  const entry = { feature: feature_id, action: "reset", amount: -used, balance: 0, max: null }
  return { ...accepted(after, {}, "license.feature_removed"), ledger: used > 0 ? [entry] : [] }
}
