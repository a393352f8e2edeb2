/**
 * The customers of a token limited to products: those of its licenses. If there are few licenses, all their customers are
 * read. If there are many, they cover a good part of all customers, so the list is read in its order and each customer checked.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { CurrentProducts } from "../../access/CurrentActor.ts"
import { ownedBy } from "../../access/productLimits/OwnedRows.ts"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import type { Part } from "../../platform/postgres/queries/Pages.ts"

/** Reading the customers of this many licenses takes a few milliseconds. */
const licensesMax = 2_000

/** Undefined means all customers. */
export const ownCustomers = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const products = yield* CurrentProducts
  if (products === undefined) return undefined
  const [read] = yield* sql<{ readonly licenses: number; readonly ids: ReadonlyArray<string> | null }>`
    SELECT count(*)::int4 AS licenses, array_agg(DISTINCT customer_id) AS ids FROM (
      SELECT own.customer_id FROM unnest(${columns.text(products)}::text[]) AS product (id) CROSS JOIN LATERAL (
        SELECT customer_id FROM licenses WHERE product_id = product.id AND customer_id IS NOT NULL
        ORDER BY customer_id LIMIT ${licensesMax + 1}
      ) AS own LIMIT ${licensesMax + 1}
    ) AS own`
  const part: Part =
    read!.licenses > licensesMax
      ? { condition: (row) => ownedBy(sql, "customers", row, products) }
      : { ids: read!.ids ?? [] }
  return part
})
