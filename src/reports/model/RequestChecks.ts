/** What is wrong with a question before it is answered: records that are not there, periods that end before they begin. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { isRefusal, type Refusal, refuse } from "../../api/Failure.ts"
import type { Period, Scope } from "./Filter.ts"

/** Why a report is not given. */
export type RequestRefusal = Refusal<"INVALID_QUERY"> | Refusal<"NOT_FOUND">

const tables = {
  product_id: "products",
  customer_id: "customers",
  license_id: "licenses",
  order_id: "orders",
  subscription_id: "subscriptions"
} as const

/** Refuses ids that name nothing. */
export const checkScope = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, scope: Scope) {
  for (const [field, table] of Object.entries(tables)) {
    const id = scope[field as keyof typeof tables]
    if (id === undefined) continue
    const rows = yield* Effect.orDie(sql`SELECT FROM ${sql(table)} WHERE id = ${id}`)
    if (rows.length === 0) {
      return yield* refuse("NOT_FOUND", `No ${field.slice(0, -3)} has the id that is given as ${field}.`, field)
    }
  }
})

/** A period as it is reported. Without `to` everything up to this moment counts. */
export const periodOf = ({ from, to }: Period, now: number) => {
  if (from !== undefined && to !== undefined && from >= to) {
    return Effect.fail(refuse("INVALID_QUERY", "The period ends before it begins: let from be earlier than to.", "to"))
  }
  const end = to ?? Math.max(now, from ?? now)
  return Effect.succeed(from === undefined ? { to: end } : { from, to: end })
}

export const tooLarge = refuse(
  "INVALID_QUERY",
  "A sum passes 2^53 - 1, the largest number that JSON clients can read: narrow the report."
)

/** Half a report is none. The detail tells exports, which have more room, that there is more. */
export const tooMany = (rowsMax: number) =>
  refuse(
    "INVALID_QUERY",
    `The report has more than ${rowsMax} rows: narrow it, group by less, or export it.`,
    tooManyDetail
  )
const tooManyDetail = "rows"

export const isTooMany = (error: unknown): boolean => isRefusal(error) && error.detail === tooManyDetail
