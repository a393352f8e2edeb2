/** The fields of a new export: those of its report, and its format. */
import { Schema } from "effect"
import { filterFields, ReportKind, UsageAction } from "../../../insight/reports/model/Filter.ts"
import {
  type ChangeFieldsOf,
  choicesOf,
  type Field,
  type FieldsOf,
  firstDay,
  lastDayOfPeriod,
  text
} from "../parts/Fields.tsx"

export const kinds = choicesOf(ReportKind.literals).map(({ id, name }) => ({ id, name: name.replaceAll("-", " ") }))

type Filters<K extends ReportKind> = Schema.Struct.Type<(typeof filterFields)[K]>

const period = { from: firstDay("From"), to: lastDayOfPeriod("To the end of") }
const scope = {
  ...period,
  product_id: text("Product’s id"),
  customer_id: text("Customer’s id"),
  license_id: text("License’s id"),
  order_id: text("Order’s id"),
  subscription_id: text("Subscription’s id"),
  feature_code: text("Feature’s code")
}

const action: Field<typeof UsageAction.Type> = {
  label: "What",
  control: { kind: "choice", choices: choicesOf(UsageAction.literals) },
  read: ([given = ""]) => (given === "" ? undefined : (given as typeof UsageAction.Type)),
  write: (value) => [value]
}

export const exportFields: { readonly [K in ReportKind]: FieldsOf<Filters<K>> | ChangeFieldsOf<Filters<K>> } = {
  "usage-summary": scope,
  "usage-ledger": { ...scope, action },
  "license-audit": { license_id: text("License’s id", { required: true }), ...period },
  "customer-summary": { customer_id: text("Customer’s id", { required: true }), ...period },
  "subscription-settlement": {
    subscription_id: text("Subscription’s id", { hint: "This or the order’s, or both." }),
    order_id: text("Order’s id"),
    ...period
  }
}

/** The filters as the body of an export has them. */
export const encodeFilters = (kind: ReportKind, filters: object) =>
  Schema.encodeSync(Schema.Struct(filterFields[kind]) as unknown as Schema.Codec<object, Record<string, Schema.Json>>)(
    filters
  )
