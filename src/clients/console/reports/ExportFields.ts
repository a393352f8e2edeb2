/** The fields of a new export: those of its report. Records are chosen by name; by id where their names may not be read. */
import { Schema } from "effect"
import { filterFields, ReportKind, UsageAction } from "../../../insight/reports/model/Filter.ts"
import {
  type ChangeFieldsOf,
  choice,
  choicesOf,
  type Field,
  type FieldsOf,
  firstDay,
  lastDayOfPeriod,
  text
} from "../parts/Fields.tsx"
import { useFeatureNames } from "../parts/Names.tsx"
import { picker, type Source } from "../pickers/Picker.tsx"
import { customers, licenses, orders, subscriptions } from "../pickers/Sources.tsx"
import { useAskEach, useMay } from "../service/Hooks.ts"
import { listField } from "../tables/ListFields.tsx"

export const kinds = choicesOf(ReportKind.literals).map(({ id, name }) => ({ id, name: name.replaceAll("-", " ") }))

type Filters<K extends ReportKind> = Schema.Struct.Type<(typeof filterFields)[K]>

const period = { from: firstDay("From"), to: lastDayOfPeriod("To the end of") }

const action: Field<typeof UsageAction.Type> = {
  label: "What",
  control: { kind: "choice", choices: choicesOf(UsageAction.literals) },
  read: ([given = ""]) => (given === "" ? undefined : (given as typeof UsageAction.Type)),
  write: (value) => [value]
}

type ExportFields = { readonly [K in ReportKind]: FieldsOf<Filters<K>> | ChangeFieldsOf<Filters<K>> }

export const useExportFields = (): ExportFields => {
  const may = useMay()
  const product = useProductField()
  const { choices } = useFeatureNames()
  const byName = may("license:read")
  const record = (noun: string, source: Source, isRequired = false) =>
    byName ? picker(noun, source, isRequired) : text(`${noun}’s id`, isRequired ? { required: true } : {})
  const subscription_id = record("Subscription", subscriptions)
  const order_id = record("Order", orders)
  const scope = {
    ...period,
    product_id: product,
    customer_id: record("Customer", customers),
    license_id: record("License", licenses),
    order_id,
    subscription_id,
    feature_code: choices.length === 0 ? text("Feature’s code") : choice("Feature", choices)
  }
  return {
    "usage-summary": scope,
    "usage-ledger": { ...scope, action },
    "license-audit": { license_id: record("License", licenses, true), ...period },
    "customer-summary": { customer_id: record("Customer", customers, true), ...period },
    "subscription-settlement": {
      subscription_id: { ...subscription_id, hint: "Type its number. A subscription or an order is needed." },
      order_id: { ...order_id, hint: "Type its number." },
      ...period
    }
  }
}

const useProductField = () => {
  const mayRead = useMay()("product:read")
  const [asked] = useAskEach("listProducts", mayRead ? [{ query: { limit: 200, sort: "code" } }] : [])
  return asked === undefined ? text("Product’s id") : listField("Product", asked, { empty: "There is no product." })
}

/** The filters as the body of an export has them. */
export const encodeFilters = (kind: ReportKind, filters: object) =>
  Schema.encodeSync(Schema.Struct(filterFields[kind]) as unknown as Schema.Codec<object, Record<string, Schema.Json>>)(
    filters
  )
