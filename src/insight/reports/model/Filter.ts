/**
 * The filters of each report. The same schemas decode a query and the filters of an export. A filter that only another report
 * supports is refused, because the caller expects it to narrow the figures.
 */
import { Effect, Schema, SchemaGetter, SchemaIssue } from "effect"
import type { ProductIds } from "../../../access/CurrentActor.ts"
import { isStorable, publishedAs, Text } from "../../../contract/api/Text.ts"
import { Instant } from "../../../contract/api/Timestamp.ts"

export const ReportKind = Schema.Literals([
  "usage-summary",
  "usage-ledger",
  "license-audit",
  "customer-summary",
  "subscription-settlement"
]).annotate({ identifier: "ReportKind", description: "What the report is about." })
export type ReportKind = typeof ReportKind.Type

export const groupings = [
  "product_id",
  "customer_id",
  "license_id",
  "order_id",
  "subscription_id",
  "feature_code"
] as const
export type Grouping = (typeof groupings)[number]

export const UsageAction = Schema.Literals([
  "consume",
  "reverse",
  "reset",
  "period_reset",
  "top_up",
  "set_limit"
]).annotate({
  identifier: "UsageAction",
  description: "What changed the counter."
})

const GroupBy = Schema.String.annotate({
  description: `Fields that rows are grouped by, separated by commas: ${groupings.join(", ")}. Default: feature_code.`
})
  .check(publishedAs({ items: { type: "string", enum: groupings }, minItems: 1, uniqueItems: true }))
  .pipe(
    Schema.decodeTo(Schema.Array(Schema.Literals(groupings)), {
      decode: SchemaGetter.transformEffect((text: string) => {
        const names = text.split(",", groupings.length + 1).map((name) => name.trim())
        const knownParameters = names.every((name) => (groupings as ReadonlyArray<string>).includes(name))
        return knownParameters && new Set(names).size === names.length
          ? Effect.succeed(names as ReadonlyArray<Grouping>)
          : Effect.fail(
              new SchemaIssue.InvalidValue({ message: `Expected different names out of ${groupings.join(", ")}` })
            )
      }),
      encode: SchemaGetter.transform((names) => names.join(","))
    })
  )

// A fixed offset is refused: it has no daylight saving time, which callers expect.
const zoneShape = /^[A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+)*$/u

const TimeZone = Text(64)
  .check(Schema.isPattern(zoneShape, { message: "Expected the name of a time zone, such as Europe/Zurich" }))
  .annotate({ description: "The IANA time zone in which hours and days begin. Default: UTC." })

const Bucket = Schema.Literals(["1h", "1d"])

const period = {
  from: Schema.optionalKey(Instant("The start of the period, inclusive.")),
  to: Schema.optionalKey(Instant("The end of the period, exclusive."))
}

const FilterText = Schema.String.check(
  Schema.makeFilter((text) => isStorable(text) || "Expected text without NUL characters and lone surrogates")
)

const scope = {
  product_id: Schema.optionalKey(FilterText),
  customer_id: Schema.optionalKey(FilterText),
  license_id: Schema.optionalKey(FilterText),
  order_id: Schema.optionalKey(FilterText),
  subscription_id: Schema.optionalKey(FilterText),
  feature_code: Schema.optionalKey(FilterText)
}

export interface Period {
  readonly from?: number
  readonly to?: number
}

/** Limits a report to the products of the requesting token. */
export interface OfToken {
  readonly products?: ProductIds
}

export interface Scope extends OfToken {
  readonly product_id?: string
  readonly customer_id?: string
  readonly license_id?: string
  readonly order_id?: string
  readonly subscription_id?: string
  readonly feature_code?: string
}

export const filterFields = {
  "usage-summary": {
    ...period,
    ...scope,
    group_by: Schema.optionalKey(GroupBy),
    bucket: Schema.optionalKey(Bucket),
    tz: Schema.optionalKey(TimeZone)
  },
  "usage-ledger": { ...period, ...scope, action: Schema.optionalKey(UsageAction) },
  "license-audit": { ...period, license_id: FilterText, bucket: Schema.optionalKey(Bucket) },
  "customer-summary": { ...period, customer_id: FilterText },
  "subscription-settlement": {
    ...period,
    subscription_id: Schema.optionalKey(FilterText),
    order_id: Schema.optionalKey(FilterText)
  }
} as const

export type UsageSummaryFilter = Schema.Struct.Type<(typeof filterFields)["usage-summary"]> & OfToken
export type UsageLedgerFilter = Schema.Struct.Type<(typeof filterFields)["usage-ledger"]> & OfToken
export type LicenseAuditFilter = Schema.Struct.Type<(typeof filterFields)["license-audit"]>
export type CustomerSummaryFilter = Schema.Struct.Type<(typeof filterFields)["customer-summary"]> & OfToken
export type SettlementFilter = Schema.Struct.Type<(typeof filterFields)["subscription-settlement"]>

export const unsupportedFilter = (kind: ReportKind, names: ReadonlyArray<string>): string | undefined =>
  names.find((name) => !Object.hasOwn(filterFields[kind], name))

/** Decodes filters from the body of an export: texts as in a query. A list may be an array instead of a text with commas. */
export const decodeFilters = <K extends ReportKind>(kind: K, filters: { readonly [name: string]: Schema.Json }) => {
  const texts = Object.entries(filters).map(([name, value]) => [name, Array.isArray(value) ? value.join(",") : value])
  return Schema.decodeUnknownEffect(Schema.Struct(filterFields[kind]), { errors: "all" })(
    Object.fromEntries(texts)
  ) as Effect.Effect<Schema.Struct.Type<(typeof filterFields)[K]>, Schema.SchemaError>
}
