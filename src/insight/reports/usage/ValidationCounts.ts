/** The hourly counts of validations. An hour belongs to the period in which it begins. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { ownedBy } from "../../../access/productLimits/OwnedRows.ts"
import { decodeRows, within } from "../../../platform/postgres/queries/Sql.ts"
import type { OfToken, Period } from "../model/Filter.ts"
import { ValidationBuckets, ValidationTotals } from "../model/Report.ts"
import { tooManyRows } from "../model/RequestChecks.ts"

const bucketsMax = 10_000
const units = { "1h": "hour", "1d": "day" } as const

const decodeBuckets = decodeRows(ValidationBuckets.fields.buckets.value)
const decodeTotals = decodeRows(ValidationTotals)

/** Hours or days of UTC without validations are left out. */
export const licenseValidations = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  filter: Period & { readonly license_id: string; readonly bucket?: "1h" | "1d" }
) {
  const { bucket = "1d", license_id } = filter
  const buckets = yield* decodeBuckets(sql`
    SELECT date_trunc(${units[bucket]}, hour, 'UTC') AS bucket_start, sum(validations)::bigint AS validations,
      sum(refused)::bigint AS refused
    FROM license_validations WHERE license_id = ${license_id} AND ${within(sql, "hour", filter)}
    GROUP BY 1 ORDER BY 1 LIMIT ${bucketsMax + 1}`)
  if (buckets.length > bucketsMax) return yield* tooManyRows(bucketsMax)
  const sum = (count: "validations" | "refused") => buckets.reduce((total, row) => total + row[count], 0)
  const result: ValidationBuckets = { validations: sum("validations"), refused: sum("refused"), bucket, buckets }
  return result
})

export const customerValidations = (
  sql: SqlClient.SqlClient,
  filter: Period & OfToken & { readonly customer_id: string }
) =>
  Effect.map(
    decodeTotals(sql`
      SELECT coalesce(sum(validations), 0)::bigint AS validations, coalesce(sum(refused), 0)::bigint AS refused
      FROM licenses l JOIN license_validations v ON v.license_id = l.id
      WHERE l.customer_id = ${filter.customer_id} AND ${ownedBy(sql, "licenses", "l", filter.products)} AND ${within(sql, "hour", filter)}`),
    ([totals]) => totals!
  )
