/** The expected result of moving a license to another policy, or to the one that it has. */
import { isDeepStrictEqual } from "node:util"
import { canonicalize } from "../../../src/contract/api/CanonicalJson.ts"
import type { PolicyChangeCommand } from "../../../src/licensing/changes/PolicyChange.ts"
import { accepted, refused } from "./Admission.ts"
import { isRecorded } from "./Assignments.ts"
import { beganAt, featuresFrom, termDays } from "./Limits.ts"
import { isRevoked, shown, wrongTerms } from "./Management.ts"
import {
  type Answer,
  type Assignment,
  clockStatus,
  dayMillis,
  type Entry,
  intervalEnd,
  type License,
  liveLeases,
  type Policy,
  type Situation,
  servedAgain,
  statusAt,
  without
} from "./Model.ts"
import { endEntry, endedMeanwhile, keptIn, keptOf, placed, type Quota, quotaIn, unused, usageIn } from "./Periods.ts"

export interface PolicyFeature extends Quota {
  readonly enabled: boolean
  /** Days after which it expires. */
  readonly days: number | null
  /** Whether it ends with the license's access. */
  readonly follows: boolean
  readonly metadata: string
}

/** The policy of another product. */
export const foreignPolicy = "pol_foreign"

const datesAfter = ({ license, policy, now }: Situation, target: Policy, given: number | undefined): License => {
  if (given === undefined && target.license_type === policy.license_type) return license
  const plain = { ...license, term: null, expires: given ?? null }
  const dated = target.license_type === policy.license_type ? plain : { ...plain, maintenance: null }
  const days = termDays(target)
  if (given !== undefined || days === null) return dated
  const isUsed = license.activations > 0 || liveLeases(license).length > 0
  if (target.duration_starts === "first_activation" && !isUsed) return { ...dated, term: days }
  const ends = Math.max(now, license.starts ?? now) + days * dayMillis
  return target.license_type === "perpetual" ? { ...dated, maintenance: ends } : { ...dated, expires: ends }
}

/**
 * The features of the new policy take the place of those that came with the old one, or are added to them. If it is the same
 * policy, what the license has keeps its date, and is only changed where the policy says something else.
 */
const featuresAfter = (situation: Situation, target: Policy, keep: boolean, dated: License) => {
  const { catalog, license, now, policy } = situation
  const isSame = target.id === policy.id
  const begins = beginOf(dated, now)
  const subscription = catalog.subscriptions.get(license.subscription ?? "")
  const begun = begins === null ? license.assignments : featuresFrom(license, begins, now)
  // The features that a move keeps are the license's own from then on.
  const isOwn = keep && !isSame
  const assignments = new Map(isOwn ? Array.from(begun, ([id, one]) => [id, { ...one, granted: false }]) : begun)
  const ledger: Array<Entry> = []
  const kept = new Map(Object.entries(JSON.parse(license.kept) as Record<string, unknown>))
  for (const [feature, one] of target.features) {
    const before = license.assignments.get(feature)
    if (before !== undefined && (keep || !before.granted)) continue
    kept.delete(feature)
    const { days, ...quota } = one
    const dates = datesOf(situation, one, isSame ? before : undefined, begins)
    const usage = before === undefined ? { ...unused, ...keptIn(license, feature) } : usageIn(before)
    const unplaced: Assignment = { ...quota, ...usage, ...dates, from: null, until: null, granted: true }
    const due = placed(unplaced, dated, subscription, now)
    const anew = before === undefined ? endedMeanwhile(due, now, keptIn(license, feature)) : undefined
    const granted = anew ?? due
    const { from, resets, start, until } = granted
    const same = { ...before, from, until, start, resets, recorded: granted.recorded }
    if (isSame && before !== undefined && isDeepStrictEqual(same, granted)) continue
    assignments.set(feature, granted)
    if (anew !== undefined) ledger.push(endEntry(feature, due, anew))
    const { max, used } = granted
    if (before !== undefined && before.max !== max)
      ledger.push({ feature, action: "set_limit", amount: max ?? 0, balance: used, max: quotaIn(granted) })
  }
  for (const [feature, one] of license.assignments) {
    if (keep || !one.granted || target.features.has(feature)) continue
    assignments.delete(feature)
    if (one.used > 0 || one.extra !== null || one.rolled !== null) kept.set(feature, keptOf(one))
  }
  const isChanged =
    assignments.size !== license.assignments.size ||
    Array.from(assignments).some(([feature, one]) => license.assignments.get(feature) !== one)
  return { assignments, ledger, isChanged, kept: canonicalize(Object.fromEntries(kept) as never) }
}

/** When the term of a license with these dates begins; null while it is pending. */
const beginOf = ({ starts, term }: License, now: number): number | null =>
  term === null ? Math.max(now, starts ?? now) : null

/** The dates of a feature that comes with a policy. If the policy is applied again, a date that is set stays. */
const datesOf = (
  situation: Situation,
  { days, enabled }: PolicyFeature,
  before: Assignment | undefined,
  begins: number | null
) => {
  const stays = days === null ? null : (before?.expires ?? null)
  if (stays !== null) return { expires: stays, waiting: null, recorded: isRecorded(situation, before, enabled, stays) }
  const expires = days === null || begins === null ? null : begins + days * dayMillis
  return { expires, waiting: begins === null ? days : null, recorded: false }
}

/** No device is due before it was promised, and heartbeats that are switched on count from now. */
const floorAfter = ({ license, policy, now }: Situation, moved: License, target: Policy): number | null => {
  const isSwitchedOn = target.require_heartbeat && !policy.require_heartbeat
  const floors = [license.floor, policy.floor, isSwitchedOn ? intervalEnd(target, now) : null]
  const known = floors.filter((floor) => floor !== null)
  const floor = known.length === 0 ? null : Math.max(...known)
  const isServedAgain = statusAt(license, policy, now) === "expired" && statusAt(moved, target, now) !== "expired"
  return isServedAgain ? servedAgain({ ...moved, floor }, target, moved.starts, now) : floor
}

export const changePolicy = (situation: Situation, command: PolicyChangeCommand): Answer => {
  const { catalog, license, now, policy } = situation
  if (isRevoked(situation)) return refused(situation, "LICENSE_STATE_CONFLICT")
  if (command.policy_id === foreignPolicy) return refused(situation, "LINKAGE_MISMATCH")
  const target = catalog.policies.get(command.policy_id)
  if (target === undefined) return refused(situation, "NOT_FOUND")
  const moved = datesAfter(situation, target, command.expires_at)
  const begins = beginOf(moved, now)
  const dated = begins === null ? moved : { ...moved, began: beganAt(license, begins) }
  const wrong = wrongTerms(target.license_type, dated)
  if (wrong !== undefined) return refused(situation, wrong)
  if (command.expires_at !== undefined && command.expires_at <= now) return refused(situation, "EXPIRY_NOT_IN_FUTURE")
  const { assignments, isChanged, kept, ledger } = featuresAfter(
    situation,
    target,
    command.keep_features === true,
    dated
  )
  if (target.id === policy.id && dated.expires === license.expires && !isChanged)
    return accepted(license, shown(situation, license))
  const version = license.version + policy.version + 1 - target.version
  const closed = ledger.filter(({ action }) => action === "period_reset").map(({ feature }) => feature)
  const open = closed.reduce((left, feature) => without(left, feature), license.open)
  const changed: License = { ...dated, policy: target.id, assignments, kept, open, version }
  const isActive = changed.status !== "suspended" && clockStatus(changed, target, now) === "active"
  const floor = floorAfter(situation, changed, target)
  const after = { ...changed, floor, status: isActive ? "active" : changed.status }
  const reply = shown({ ...situation, policy: target }, after)
  return { ...accepted(after, reply, "license.policy_changed", ...closed.map(() => "usage.period_closed")), ledger }
}
