/** What the addresses of the usage reports name. */
import { Schema } from "effect"
import { groupings, ReportKind, UsageAction } from "../../../insight/reports/model/Filter.ts"
import { afterInputDay, startOfInputDay } from "../parts/Format.ts"

const text = Schema.optionalKey(Schema.String)
export const InputDay = Schema.optionalKey(Schema.String.check(Schema.isPattern(/^\d{4}-\d\d-\d\d$/)))

const scope = {
  from: InputDay,
  to: InputDay,
  product_id: text,
  feature_code: text,
  license_id: text,
  customer_id: text,
  order_id: text,
  subscription_id: text
}
const Grouping = Schema.Literals(groupings)

export const SummarySearch = Schema.Struct({
  ...scope,
  group: Schema.optionalKey(Grouping),
  subgroup: Schema.optionalKey(Grouping)
})
export type SummarySearch = typeof SummarySearch.Type

export const LedgerSearch = Schema.Struct({
  ...scope,
  action: Schema.optionalKey(UsageAction),
  cursor: Schema.optionalKey(Schema.Int)
})
export type LedgerSearch = typeof LedgerSearch.Type

export const ExportsSearch = Schema.Struct({ kind: Schema.optionalKey(ReportKind) })

interface Days {
  readonly from?: string
  readonly to?: string
}

/** Whole days of the reader's zone; the end of the last one is not in the period. */
export const periodOf = ({ from, to }: Days) => ({
  ...(from === undefined ? {} : { from: startOfInputDay(from) }),
  ...(to === undefined ? {} : { to: afterInputDay(to) })
})

/** The filters that all usage reports share, as the API takes them. */
export const scopeOf = ({
  customer_id,
  feature_code,
  from,
  license_id,
  order_id,
  product_id,
  subscription_id,
  to
}: Omit<LedgerSearch, "action" | "cursor">) => ({
  ...(product_id === undefined ? {} : { product_id }),
  ...(feature_code === undefined ? {} : { feature_code }),
  ...(license_id === undefined ? {} : { license_id }),
  ...(customer_id === undefined ? {} : { customer_id }),
  ...(order_id === undefined ? {} : { order_id }),
  ...(subscription_id === undefined ? {} : { subscription_id }),
  ...periodOf({ ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) })
})
