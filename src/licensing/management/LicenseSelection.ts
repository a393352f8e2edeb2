/** The ids of all licenses that the list would show for a filter. */
import type { SqlClient } from "effect/sql"
import type { ProductIds } from "../../access/CurrentActor.ts"
import { ownedBy } from "../../access/productLimits/OwnedRows.ts"
import { unionAll } from "../../platform/postgres/queries/Sql.ts"
import { type LicenseFilter, movedRows, queryOf } from "./LicenseList.ts"

export const selectedIds = (sql: SqlClient.SqlClient, filter: LicenseFilter, products: ProductIds, now: number) => {
  const query = queryOf(sql, filter, 0, now)
  const { candidates, inState, joined, match } = query
  const conditions = sql`${query.conditions} AND ${ownedBy(sql, "licenses", "l", products)}`
  const matches = sql`${conditions} AND ${inState} AND ${match === undefined ? sql`TRUE` : match.matches}`
  return unionAll(sql, [
    sql`SELECT l.id FROM ${candidates} ${joined} WHERE ${matches}`,
    ...movedRows(sql, query, conditions).map((moved) => sql`SELECT l.id FROM ${moved}`)
  ])
}
