/** The expected result of moving a license to another policy, or to the one that it has. */
import { isDeepStrictEqual } from "node:util"
import { canonicalize } from "../../../src/contract/api/CanonicalJson.ts"
import type { PolicyChangeCommand } from "../../../src/licensing/changes/PolicyChange.ts"
import { accepted, refused } from "./Admission.ts"
import { keptCount } from "./Assignments.ts"
import { featuresFrom, termDays } from "./Limits.ts"
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
  statusAt
} from "./Model.ts"

export interface PolicyFeature {
  readonly enabled: boolean
  readonly max: number | null
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
 * The features of the new policy take the place of those that came with the old one. If it is the same policy, what the license has
 * keeps its date, and is only changed where the policy says something else.
 */
const featuresAfter = ({ license, now, policy }: Situation, target: Policy, keep: boolean, dated: License) => {
  const isSame = target.id === policy.id
  const begins = dated.term === null ? Math.max(now, dated.starts ?? now) : null
  const assignments = new Map(begins === null ? license.assignments : featuresFrom(license, begins))
  const ledger: Array<Entry> = []
  const counts = new Map(Object.entries(JSON.parse(license.kept) as Record<string, number>))
  for (const [feature, { days, enabled, follows, max, metadata }] of target.features) {
    const before = license.assignments.get(feature)
    if (before !== undefined && (keep || !before.granted)) continue
    const used = before?.used ?? keptCount(license, feature)
    counts.delete(feature)
    const isDated = isSame && days !== null && (before?.expires ?? null) !== null
    const expires = isDated ? before!.expires : days === null || begins === null ? null : begins + days * dayMillis
    const waiting = begins === null && !isDated ? days : null
    const recorded = isDated && before!.recorded
    const granted: Assignment = { enabled, max, used, expires, waiting, follows, recorded, granted: true, metadata }
    if (isSame && before !== undefined && isDeepStrictEqual({ ...before, recorded }, granted)) continue
    assignments.set(feature, granted)
    if (before !== undefined && before.max !== max)
      ledger.push({ feature, action: "set_limit", amount: max ?? 0, balance: used, max })
  }
  for (const [feature, { granted, used }] of license.assignments) {
    if (keep || !granted || target.features.has(feature)) continue
    assignments.delete(feature)
    if (used > 0) counts.set(feature, used)
  }
  const isChanged =
    assignments.size !== license.assignments.size ||
    Array.from(assignments).some(([feature, one]) => license.assignments.get(feature) !== one)
  return { assignments, ledger, isChanged, kept: canonicalize(Object.fromEntries(counts)) }
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
  const dated = datesAfter(situation, target, command.expires_at)
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
  const moved: License = {
    ...dated,
    policy: target.id,
    assignments,
    kept,
    version: license.version + policy.version + 1 - target.version
  }
  const isActive = moved.status !== "suspended" && clockStatus(moved, target, now) === "active"
  const floor = floorAfter(situation, moved, target)
  const after = { ...moved, floor, status: isActive ? "active" : moved.status }
  const reply = shown({ ...situation, policy: target }, after)
  return { ...accepted(after, reply, "license.policy_changed"), ledger }
}
