/** What the address of the customer list names. */
import { Schema } from "effect"

const text = Schema.optionalKey(Schema.String)

export const CustomerSearch = Schema.Struct({
  email: text,
  code: text,
  sort: Schema.optionalKey(Schema.Literals(["created_at", "-created_at", "code", "-code", "name", "-name"])),
  cursor: text
})
export type CustomerSearch = typeof CustomerSearch.Type

export const SummaryPeriod = Schema.Literals(["last_30_days", "last_12_months"])
export type SummaryPeriod = typeof SummaryPeriod.Type

/** What the address of one customer names. */
export const CustomerPageSearch = Schema.Struct({ period: Schema.optionalKey(SummaryPeriod) })
export type CustomerPageSearch = typeof CustomerPageSearch.Type
