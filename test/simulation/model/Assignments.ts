/** The expected results of management commands on the features of a license. */
import { canonicalize } from "../../../src/contract/api/CanonicalJson.ts"
import type { AssignCommand } from "../../../src/licensing/changes/Assignments.ts"
import type { UsageResetCommand } from "../../../src/licensing/changes/UsageReset.ts"
import { accepted, refused } from "./Admission.ts"
import { shownEnd } from "./Limits.ts"
import { given, isRevoked, raised, same } from "./Management.ts"
import { type Answer, type Assignment, type Entry, featureEnd, replaced, type Situation, without } from "./Model.ts"
import { endEntry, ended, endedMeanwhile, keptIn, placed, type Quota, quotaIn, quotaTold, unused } from "./Periods.ts"

const assignmentTold = (situation: Situation, assignment: Assignment) => ({
  enabled: assignment.enabled,
  expires_at: shownEnd(situation, assignment),
  expires_with_license: assignment.follows || undefined,
  total_consumptions: assignment.used,
  from_policy: assignment.granted,
  ...quotaTold(assignment)
})

/** Whether the fields of a quota contradict each other. */
const isImpossible = ({ anchor, beyond, max, period, rollover }: Quota): boolean =>
  (period === null && (anchor !== null || rollover !== null)) ||
  (max === null && (period !== null || beyond !== null)) ||
  (rollover !== null && max !== null && rollover > max)

export const resetUsage = (situation: Situation, command: UsageResetCommand): Answer => {
  const { license, catalog } = situation
  if (isRevoked(situation)) return refused(situation, "LICENSE_STATE_CONFLICT")
  const feature = Array.from(license.assignments.keys()).find(
    (id) => id === command.feature_id || catalog.features.get(id) === command.feature_code
  )
  const before = feature === undefined ? undefined : license.assignments.get(feature)
  if (feature === undefined || before === undefined) return refused(situation, "NOT_FOUND")
  const ledger: Array<Entry> = []
  let after = before
  const enter = (action: string, amount: number, changes: Partial<Assignment>, beside: Partial<Entry> = {}) => {
    after = { ...after, ...changes }
    ledger.push({ feature, action, amount, balance: after.used, max: quotaIn(after), ...beside })
  }
  const { add_credits: credits, max_consumptions: limit } = command
  if (limit !== undefined && limit !== before.max) enter("set_limit", limit, { max: limit })
  if (credits !== undefined) {
    const had = before.period === null ? after.max : (before.extra ?? 0)
    const returnable = before.period === null ? 0 : (before.credited ?? 0)
    if (after.max === null || had! + returnable + credits > Number.MAX_SAFE_INTEGER)
      return refused(situation, "VALIDATION_ERROR")
    if (before.period === null) enter("top_up", credits, { max: had! + credits })
    else enter("top_up", credits, { extra: had! + credits }, { credits })
  }
  const total = command.reset_consumed === true ? 0 : command.total_consumptions
  const isCounted = total !== undefined && total !== before.used
  if (isCounted) {
    const beside = before.overage === null ? {} : { overage: -before.overage }
    enter("reset", total - before.used, { used: total, credited: null, overage: null }, beside)
  }
  if (isImpossible(after)) return refused(situation, "VALIDATION_ERROR")
  if ((["max", "used", "extra"] as const).every((one) => after[one] === before[one]))
    return accepted(license, assignmentTold(situation, before))
  // A maximum that is set by hand stays when a policy is applied.
  after = { ...after, granted: before.granted && after.max === before.max }
  const assignments = replaced(license.assignments, feature, after)
  const open = isCounted ? without(license.open, feature) : license.open
  const reply = assignmentTold(situation, after)
  return { ...accepted(raised({ ...license, assignments, open }), reply, "license.usage_reset"), ledger }
}

/** What an assignment says of the quota; without periods nothing about periods stays. */
const quotaAfter = (command: AssignCommand, before: Assignment | undefined): Quota => {
  const period = given(command.reset_period, before?.period ?? null)
  const periodic = period === null ? undefined : before
  return {
    max: given(command.max_consumptions, before?.max ?? null),
    period,
    anchor: given(command.reset_anchor, periodic?.anchor ?? null),
    rollover: given(command.rollover_max, periodic?.rollover ?? null),
    beyond: given(command.overage_max, before?.beyond ?? null)
  }
}

const withoutBoundaries = (one: Assignment) => ({
  ...one,
  from: null,
  until: null,
  start: null,
  resets: null,
  rolled: null
})

export const assign = (situation: Situation, command: AssignCommand): Answer => {
  const { license, catalog, now } = situation
  if (isRevoked(situation)) return refused(situation, "LICENSE_STATE_CONFLICT")
  if (command.feature_id === "feat_foreign") return refused(situation, "LINKAGE_MISMATCH")
  if (!catalog.features.has(command.feature_id)) return refused(situation, "NOT_FOUND")
  const before = license.assignments.get(command.feature_id)
  const quota = quotaAfter(command, before)
  const namesSubscription = command.reset_period === "subscription" || command.reset_anchor === "subscription"
  if (isImpossible(quota) || (namesSubscription && license.subscription === null))
    return refused(situation, "VALIDATION_ERROR")
  const subscription = catalog.subscriptions.get(license.subscription ?? "")
  const due = placed({ ...assigned(situation, command, before), ...quota }, license, subscription, now)
  const anew = before === undefined ? endedMeanwhile(due, now, keptIn(license, command.feature_id)) : undefined
  const assignment = anew ?? due
  const reply = assignmentTold(situation, ended(assignment, license, now)?.after ?? assignment)
  if (
    before !== undefined &&
    same({ ...withoutBoundaries(before), recorded: assignment.recorded }, withoutBoundaries(assignment))
  )
    return accepted(license, reply)
  const { [command.feature_id]: _, ...kept } = JSON.parse(license.kept) as Record<string, never>
  const assignments = replaced(license.assignments, command.feature_id, assignment)
  const open = anew === undefined ? license.open : without(license.open, command.feature_id)
  const after = raised({ ...license, assignments, kept: canonicalize(kept), open })
  const entry = {
    feature: command.feature_id,
    action: "set_limit",
    amount: assignment.max ?? 0,
    balance: assignment.used,
    max: quotaIn(assignment)
  }
  const isLimited = before !== undefined && before.max !== assignment.max
  if (anew !== undefined) {
    const ledger = [endEntry(command.feature_id, due, anew)]
    return { ...accepted(after, reply, "license.feature_assigned", "usage.period_closed"), ledger }
  }
  return { ...accepted(after, reply, "license.feature_assigned"), ledger: isLimited ? [entry] : [] }
}

const assigned = (situation: Situation, command: AssignCommand, before: Assignment | undefined) => {
  const enabled = command.enabled ?? before?.enabled ?? true
  const follows = command.expires_with_license === true
  const isFollowing = command.expires_at === undefined && command.expires_with_license === undefined
  const expires = follows ? null : given(command.expires_at, before?.expires ?? null)
  return {
    ...(before ?? { ...unused, ...keptIn(situation.license, command.feature_id), from: null, until: null }),
    enabled,
    expires,
    waiting: follows || command.expires_at !== undefined ? null : (before?.waiting ?? null),
    follows: follows || (isFollowing && before?.follows === true),
    recorded: isRecorded(situation, before, enabled, expires),
    granted: false,
    metadata: command.metadata === undefined ? (before?.metadata ?? "{}") : canonicalize(command.metadata)
  }
}

/** A date in the past is recorded by time only if the edit ends a feature that was included. */
export const isRecorded = (
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
  const { assignments, open } = situation.license
  const before = assignments.get(feature_id)
  if (before === undefined) return refused(situation, "NOT_FOUND")
  const entry: Entry = {
    feature: feature_id,
    action: "reset",
    amount: 0 - before.used,
    balance: 0,
    max: null,
    ...(before.extra === null ? undefined : { credits: -before.extra }),
    ...(before.overage === null ? undefined : { overage: -before.overage })
  }
  const isUsed = before.used > 0 || before.extra !== null
  const left = { assignments: without(assignments, feature_id), open: isUsed ? without(open, feature_id) : open }
  const after = raised({ ...situation.license, ...left })
  return { ...accepted(after, {}, "license.feature_removed"), ledger: isUsed ? [entry] : [] }
}
