/** What the address of the customer list names. */
import { Schema } from "effect"
import { startOfDay } from "../parts/Days.ts"

const text = Schema.optionalKey(Schema.String)

export const CustomerSearch = Schema.Struct({
  email: text,
  code: text,
  sort: Schema.optionalKey(Schema.Literals(["created_at", "-created_at", "code", "-code", "name", "-name"])),
  cursor: text
})
export type CustomerSearch = typeof CustomerSearch.Type

export const SummaryPeriod = Schema.Literals(["last_30_days", "last_365_days"])
export type SummaryPeriod = typeof SummaryPeriod.Type

/** What the address of one customer names. */
export const CustomerPageSearch = Schema.Struct({ period: Schema.optionalKey(SummaryPeriod) })
export type CustomerPageSearch = typeof CustomerPageSearch.Type

const days: Readonly<Record<SummaryPeriod, number>> = { last_30_days: 30, last_365_days: 365 }

/** The beginning of a period. */
export const beginOf = (period: SummaryPeriod): number => startOfDay(-days[period])
