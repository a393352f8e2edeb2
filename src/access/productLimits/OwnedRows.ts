/**
 * SQL conditions that select the rows of a token's products. A customer belongs to the products of its licenses. All other rows
 * keep their product.
 */
import type { SqlClient, Statement } from "effect/sql"
import { columns, type Parameter } from "../../platform/postgres/driver/Parameters.ts"
import type { ProductIds } from "../CurrentActor.ts"

type Condition = (sql: SqlClient.SqlClient, row: string, productIds: Parameter) => Statement.Fragment

const byProduct: Condition = (sql, row, productIds) => sql`${sql.literal(row)}.product_id = ANY(${productIds}::text[])`

/** OFFSET forces one lookup per row. Without it the planner may read all licenses of the products into a hash table. */
const byLicense =
  (column: string, id: string): Condition =>
  (sql, row, productIds) =>
    sql`EXISTS (SELECT FROM licenses own WHERE ${sql.literal(`own.${column} = ${row}.${id}`)}
      AND own.product_id = ANY(${productIds}::text[]) OFFSET 0)`

/** `product_ids` is NULL if a token for all products made the request. */
const byRequest: Condition = (sql, row, productIds) => sql`${sql.literal(row)}.product_ids <@ ${productIds}::text[]`

const owned = {
  products: (sql, row, productIds) => sql`${sql.literal(row)}.id = ANY(${productIds}::text[])`,
  policies: byProduct,
  features: byProduct,
  product_versions: byProduct,
  custom_field_definitions: byProduct,
  orders: byProduct,
  subscriptions: byProduct,
  licenses: byProduct,
  customers: byLicense("customer_id", "id"),
  devices: byLicense("id", "license_id"),
  report_exports: byRequest,
  bulk_jobs: byRequest
} satisfies { readonly [table: string]: Condition }

/** A table whose rows belong to products. */
export type OwnedTable = keyof typeof owned

export const isOwnedTable = (table: string): table is OwnedTable => Object.hasOwn(owned, table)

/** The condition that a row belongs to one of the token's products. `row` is the table's alias. */
export const ownedBy = (
  sql: SqlClient.SqlClient,
  table: OwnedTable,
  row: string,
  productIds: ProductIds
): Statement.Fragment => (productIds === undefined ? sql`TRUE` : owned[table](sql, row, columns.text(productIds)))
