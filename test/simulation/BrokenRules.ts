/**
 * Rules of quotas, each broken on purpose: the simulator must find every one. A rule is replaced in the text of its module when it is
 * loaded, so nothing of the service knows of it.
 */
import { registerHooks } from "node:module"

interface BrokenRule {
  /** What the service does wrong. */
  readonly what: string
  readonly file: string
  readonly rule: string
  readonly broken: string
}

const periods = "src/licensing/rules/UsagePeriods.ts"
const quota = "src/licensing/rules/Quota.ts"
const calendar = "src/vendor/policies/ResetPeriod.ts"
const subscriptions = "src/vendor/commerce/QuotaPeriods.ts"

export const brokenRules: { readonly [name: string]: BrokenRule } = {
  "late month": {
    what: "A month from the 31st ends in the month after a shorter one.",
    file: calendar,
    rule: "Math.min(day, lastDay)",
    broken: "day"
  },
  "ended twice": {
    what: "A node whose clock is behind ends a period again.",
    file: calendar,
    rule: "Math.max(now, periodStart ?? Number.NEGATIVE_INFINITY)",
    broken: "now"
  },
  "skipped rollover": {
    what: "A skipped period rolls nothing over.",
    file: periods,
    rule: "unused + (periods - 1) * max_consumptions",
    broken: "unused"
  },
  "kept overage": {
    what: "Overage is carried over to the next period.",
    file: periods,
    rule: "      overage: undefined,\n      rolled_over",
    broken: "      rolled_over"
  },
  "late end": {
    what: "A quota begins anew after the end of the subscription.",
    file: periods,
    rule: "isRevoked || resets_at >= (end ?? Number.POSITIVE_INFINITY)",
    broken: "isRevoked"
  },
  "untold end": {
    what: "A period that the sweep closes has no event.",
    file: "src/licensing/sweeps/PeriodSweep.ts",
    rule: "eventsOf: (license, now) => renewedOf(license, now).map(",
    broken: "eventsOf: (license, now) => renewedOf(license, now).slice(1).map("
  },
  "unfenced sweep": {
    what: "The sweep closes a period although a command has changed the license since it was read.",
    file: "src/licensing/sweeps/SweepBatches.ts",
    rule: "WHERE l.ctid = target.address AND l.revision = decided.revision",
    broken: "WHERE l.ctid = target.address"
  },
  "overage first": {
    what: "Overage is used before bought credits.",
    file: quota,
    rule: "const credits = Math.min(beyond, balance.extra_credits ?? 0)",
    broken: "const credits = 0"
  },
  "lost credits": {
    what: "A reversal does not give bought credits back.",
    file: quota,
    rule: "const credits = Math.min(amount - overage, balance.credits_used ?? 0)",
    broken: "const credits = 0"
  },
  "negative rest": {
    what: "What is left becomes negative when the quota is lowered.",
    file: quota,
    rule: "quota === undefined ? undefined : Math.max(0, quota - quotaUsed(balance))",
    broken: "quota === undefined ? undefined : quota - quotaUsed(balance)"
  },
  "reversed twice": {
    what: "A consumption is taken back again after its reversal was committed.",
    file: "src/licensing/rows/ReversalMarks.ts",
    rule: "(action = 'reverse' AND reverses = ",
    broken: "(false AND reverses = "
  },
  "reversed late": {
    what: "A consumption of an earlier period is taken back.",
    file: "src/licensing/rows/ReversalMarks.ts",
    rule: "action IN ('reset', 'period_reset')",
    broken: "action = 'reset'"
  },
  "refilled quota": {
    what: "A feature that comes back with a policy has a new quota.",
    file: "src/licensing/changes/KeptCounts.ts",
    rule: "if (isUsed(assignment)) counts.set",
    broken: "if (isUsed(assignment) && assignment.reset_period === undefined) counts.set"
  },
  "unfenced subscription": {
    what: "A decision on the earlier period of a subscription is committed.",
    file: "src/licensing/engine/Fence.ts",
    rule: "WHERE NOT EXISTS (SELECT FROM subscriptions s",
    broken: "WHERE FALSE AND NOT EXISTS (SELECT FROM subscriptions s"
  },
  "unmoved licenses": {
    what: "Licenses keep their revision when the period of their subscription moves.",
    file: subscriptions,
    rule: "yield* sql`UPDATE licenses SET revision",
    broken: "if (now < 0) yield* sql`UPDATE licenses SET revision"
  },
  "unmoved end": {
    what: "A new period of the subscription leaves the end of the current one.",
    file: subscriptions,
    rule: "AND a.resets_at < coalesce(a.periods_end_at, 'infinity') THEN a.resets_at",
    broken: "OR a.resets_at IS NOT NULL THEN a.resets_at"
  }
}

export const brokenText = ({ broken, file, rule }: BrokenRule, text: string): string => {
  if (text.split(rule).length !== 2) throw new Error(`${file} does not have the rule once: ${rule}`)
  return text.replace(rule, () => broken)
}

/** Breaks a rule in all modules that are loaded afterwards. */
export const breakRule = (name: string): void => {
  const found = brokenRules[name]
  if (found === undefined) throw new Error(`There is no such rule; there are ${Object.keys(brokenRules).join(", ")}`)
  registerHooks({
    load: (url, context, next) => {
      const loaded = next(url, context)
      return url.endsWith(found.file) ? { ...loaded, source: brokenText(found, String(loaded.source)) } : loaded
    }
  })
}
