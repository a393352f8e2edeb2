/** What the address of a license's audit names. */
import { Schema } from "effect"

export const AuditPeriod = Schema.Literals(["last_30_days", "last_90_days", "last_12_months"])
export type AuditPeriod = typeof AuditPeriod.Type

export const AuditSearch = Schema.Struct({
  period: Schema.optionalKey(AuditPeriod),
  /** The page of the events. */
  before: Schema.optionalKey(Schema.Number)
})
export type AuditSearch = typeof AuditSearch.Type
