/** How often licenses were validated, as it was counted by the hour. An hour belongs to a period that it begins in. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { instant } from "../../postgres/Parameters.ts"
import type { Period } from "../model/Filter.ts"
import type { ValidationBuckets, ValidationTotals } from "../model/Report.ts"
import { tooMany } from "../model/RequestChecks.ts"

/** Hours or days of an answer. */
const bucketsMax = 10_000
const units = { "1h": "hour", "1d": "day" } as const

type Bucket = ValidationBuckets["buckets"][number]

/** The counts of a license, by hours or days of UTC; those without any validation are left out. */
export const licenseValidations = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  filter: Period & { readonly license_id: string; readonly bucket?: "1h" | "1d" }
) {
  const { bucket = "1d", license_id } = filter
  const buckets = yield* sql<Bucket>`
    SELECT date_trunc(${units[bucket]}, hour, 'UTC') AS bucket_start, sum(validations)::bigint AS validations,
      sum(refused)::bigint AS refused
    FROM license_validations WHERE license_id = ${license_id} AND ${within(sql, filter)}
    GROUP BY 1 ORDER BY 1 LIMIT ${bucketsMax + 1}`
  if (buckets.length > bucketsMax) return yield* tooMany(bucketsMax)
  const sum = (count: "validations" | "refused") => buckets.reduce((total, row) => total + row[count], 0)
  const counted: ValidationBuckets = { validations: sum("validations"), refused: sum("refused"), bucket, buckets }
  return counted
})

/** The counts of all licenses that a customer has now. */
export const customerValidations = (sql: SqlClient.SqlClient, filter: Period & { readonly customer_id: string }) =>
  Effect.map(
    sql<ValidationTotals>`
      SELECT coalesce(sum(validations), 0)::bigint AS validations, coalesce(sum(refused), 0)::bigint AS refused
      FROM licenses l JOIN license_validations v ON v.license_id = l.id
      WHERE l.customer_id = ${filter.customer_id} AND ${within(sql, filter)}`,
    ([totals]) => totals!
  )

const within = (sql: SqlClient.SqlClient, { from, to }: Period) =>
  sql.and([
    from === undefined ? sql`TRUE` : sql`hour >= ${instant(from)}`,
    to === undefined ? sql`TRUE` : sql`hour < ${instant(to)}`
  ])
