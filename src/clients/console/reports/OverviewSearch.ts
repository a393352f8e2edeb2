/** What the address of the overview names. */
import { Schema } from "effect"
import { now } from "../service/Service.ts"
import { mondayBefore, zone } from "./Zone.ts"

export const Span = Schema.Literals(["4_weeks", "13_weeks", "26_weeks", "52_weeks"])
export const Unit = Schema.Literals(["day", "week"])
export type Unit = typeof Unit.Type

export const OverviewSearch = Schema.Struct({
  product_id: Schema.optionalKey(Schema.String),
  span: Schema.optionalKey(Span),
  by: Schema.optionalKey(Unit)
})
export type OverviewSearch = typeof OverviewSearch.Type

export const spanOf = ({ span = "13_weeks" }: OverviewSearch) => span
export const unitOf = ({ by = "week" }: OverviewSearch) => by

/** The report's request: whole weeks and the current one. */
export const requestOf = (search: OverviewSearch) => ({
  query: {
    from: mondayBefore(now(), Number.parseInt(spanOf(search), 10) - 1),
    bucket: "1d" as const,
    tz: zone,
    ...(search.product_id === undefined ? {} : { product_id: search.product_id })
  }
})
