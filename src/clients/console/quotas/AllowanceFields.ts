/** What a policy or a license says of a quota: its fields and its words. */
import type { Allowance, ResetPeriod } from "../../../vendor/policies/ResetPeriod.ts"
import { choice, integer, number } from "../parts/Fields.tsx"
import { capital, countOf } from "../parts/Format.ts"

const everyWords = {
  day: "each day",
  week: "each week",
  month: "each month",
  year: "each year",
  subscription: "with each period of the subscription"
} as const satisfies Readonly<Record<ResetPeriod, string>>

const periods = Object.entries(everyWords).map(([id, name]) => ({ id: id as ResetPeriod, name: capital(name) }))

const anchors = [
  { id: "license", name: "When the license starts" },
  { id: "subscription", name: "When the subscription’s period starts" }
] as const

export const allowance = {
  max_consumptions: number("Quota", { hint: "Leave empty for no limit." }),
  reset_period: choice("Begins anew", periods, { hint: "Leave empty for never." }),
  reset_anchor: choice("Its periods begin", anchors, { hint: "Leave empty for the start of the license." }),
  rollover_max: number("Carried over at most", { hint: "Of what a period leaves unused. Leave empty for nothing." }),
  overage_max: integer("Overage", {
    hint: "What may be used beyond quota and extra credits. Leave empty for nothing; −1 means unlimited."
  })
}

/** “10,000 each month”. */
export const quotaWords = ({ max_consumptions, reset_period }: Allowance): string => {
  if (max_consumptions == null) return "no limit"
  return reset_period == null ? countOf(max_consumptions) : `${countOf(max_consumptions)} ${everyWords[reset_period]}`
}

/** “up to 500 carried over, overage of 100”. */
export const beyondWords = ({ overage_max, rollover_max }: Allowance): string =>
  [
    rollover_max == null ? "" : `up to ${countOf(rollover_max)} carried over`,
    overage_max == null ? "" : overage_max === -1 ? "any overage" : `overage up to ${countOf(overage_max)}`
  ]
    .filter(Boolean)
    .join(", ")
