/** What the address of a license's audit names. */
import { Schema } from "effect"
import { startOfDay } from "../parts/Days.ts"

export const AuditPeriod = Schema.Literals(["last_30_days", "last_90_days", "last_365_days"])
export type AuditPeriod = typeof AuditPeriod.Type

export const AuditSearch = Schema.Struct({
  period: Schema.optionalKey(AuditPeriod),
  /** The page of the events. */
  before: Schema.optionalKey(Schema.Number)
})
export type AuditSearch = typeof AuditSearch.Type

const days: Readonly<Record<AuditPeriod, number>> = { last_30_days: 30, last_90_days: 90, last_365_days: 365 }

/** The beginning of a period. */
export const beginOf = (period: AuditPeriod): number => startOfDay(-days[period])
