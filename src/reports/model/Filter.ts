/**
 * What each report may be asked for. The same schemas read a query and the filters of an export; what a report does not take is
 * refused, because the client expects it to narrow the figures.
 */
import { Effect, Schema, SchemaGetter, SchemaIssue } from "effect"
import { isStorable } from "../../api/Text.ts"
import { Timestamp } from "../../api/Timestamp.ts"

export const ReportKind = Schema.Literals([
  "usage-summary",
  "usage-ledger",
  "license-audit",
  "customer-summary",
  "subscription-settlement"
]).annotate({ identifier: "ReportKind" })
export type ReportKind = typeof ReportKind.Type

/** What usage can be grouped by: fields of the rows. */
export const groupings = [
  "product_id",
  "customer_id",
  "license_id",
  "order_id",
  "subscription_id",
  "feature_code"
] as const
export type Grouping = (typeof groupings)[number]

export const UsageAction = Schema.Literals(["consume", "reset", "top_up", "set_limit"]).annotate({
  identifier: "UsageAction"
})

const GroupBy = Schema.String.annotate({
  description: `Fields that make a row, separated by commas: ${groupings.join(", ")}. Unless given: feature_code.`
}).pipe(
  Schema.decodeTo(Schema.Array(Schema.Literals(groupings)), {
    decode: SchemaGetter.transformEffect((text: string) => {
      const names = text.split(",").map((name) => name.trim())
      const known = names.every((name) => (groupings as ReadonlyArray<string>).includes(name))
      return known && new Set(names).size === names.length
        ? Effect.succeed(names as ReadonlyArray<Grouping>)
        : Effect.fail(
            new SchemaIssue.InvalidValue({ message: `Expected different names out of ${groupings.join(", ")}` })
          )
    }),
    encode: SchemaGetter.transform((names) => names.join(","))
  })
)

// A fixed offset is no zone: it knows no summer time, and callers who send one mean something else.
const zoneShape = /^[A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+)*$/u

const TimeZone = Schema.String.check(
  Schema.isMaxLength(64),
  Schema.isPattern(zoneShape, { message: "Expected the name of a time zone, as Europe/Zurich" })
).annotate({ description: "The IANA time zone in which hours and days begin. Unless given: UTC." })

const Bucket = Schema.Literals(["1h", "1d"])

const period = {
  from: Schema.optionalKey(Timestamp.annotate({ description: "The first instant that counts." })),
  to: Schema.optionalKey(Timestamp.annotate({ description: "The first instant that does not count any more." }))
}

const Named = Schema.String.check(
  Schema.makeFilter((text) => isStorable(text) || "Expected text without NUL characters and lone surrogates")
)

const scope = {
  product_id: Schema.optionalKey(Named),
  customer_id: Schema.optionalKey(Named),
  license_id: Schema.optionalKey(Named),
  order_id: Schema.optionalKey(Named),
  subscription_id: Schema.optionalKey(Named),
  feature_code: Schema.optionalKey(Named)
}

export interface Period {
  readonly from?: number
  readonly to?: number
}

/** Narrows usage to what hangs on these records. */
export interface Scope {
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
  "license-audit": { ...period, license_id: Named, bucket: Schema.optionalKey(Bucket) },
  "customer-summary": { ...period, customer_id: Named },
  "subscription-settlement": {
    ...period,
    subscription_id: Schema.optionalKey(Named),
    order_id: Schema.optionalKey(Named)
  }
} as const

export type UsageSummaryFilter = Schema.Struct.Type<(typeof filterFields)["usage-summary"]>
export type UsageLedgerFilter = Schema.Struct.Type<(typeof filterFields)["usage-ledger"]>
export type LicenseAuditFilter = Schema.Struct.Type<(typeof filterFields)["license-audit"]>
export type CustomerSummaryFilter = Schema.Struct.Type<(typeof filterFields)["customer-summary"]>
export type SettlementFilter = Schema.Struct.Type<(typeof filterFields)["subscription-settlement"]>

/** The first of these filters that this report does not take. */
export const untaken = (kind: ReportKind, names: ReadonlyArray<string>): string | undefined =>
  names.find((name) => !Object.hasOwn(filterFields[kind], name))

/** Filters as they stand in the body of an export: texts as in a query; what a query separates by commas may be an array. */
export const decodeFilters = <K extends ReportKind>(kind: K, filters: { readonly [name: string]: Schema.Json }) => {
  const texts = Object.entries(filters).map(([name, value]) => [name, Array.isArray(value) ? value.join(",") : value])
  return Schema.decodeUnknownEffect(Schema.Struct(filterFields[kind]))(Object.fromEntries(texts)) as Effect.Effect<
    Schema.Struct.Type<(typeof filterFields)[K]>,
    Schema.SchemaError
  >
}
