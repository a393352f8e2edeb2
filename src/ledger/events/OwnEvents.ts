/**
 * The events that a token for some products can read: those of its products and their records, of licenses, devices and
 * leases, and of the customers of these licenses. Events have no product_id, so they are found by their resource. An
 * event of a deleted record is included only if its metadata names the product.
 */
import type { SqlClient, Statement } from "effect/sql"
import { type OwnedTable, ownedBy } from "../../access/productLimits/OwnedRows.ts"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import type { ResourceType } from "./EventType.ts"

/** The resources of a product, with their tables. The events of their creation and deletion also name the product. */
const tables: { readonly [Type in ResourceType]?: OwnedTable } = {
  policy: "policies",
  feature: "features",
  product_version: "product_versions",
  custom_field: "custom_field_definitions",
  order: "orders",
  subscription: "subscriptions"
}

/** Whether an event, named by the alias of its row, belongs to the products. */
export const isEventOf = (
  sql: SqlClient.SqlClient,
  event: string,
  products: ReadonlyArray<string>
): Statement.Fragment => {
  const column = (name: string) => sql.literal(`${event}.${name}`)
  const isOwn = (table: OwnedTable, id: Statement.Fragment) =>
    sql`EXISTS (SELECT FROM ${sql(table)} AS named WHERE named.id = ${id} AND ${ownedBy(sql, table, "named", products)} OFFSET 0)`
  const resource = column("resource_id")
  const license = sql`${column("metadata")} ->> 'license_id'`
  const field = sql`${column("metadata")} ->> 'definition_id'`
  const existing = sql`SELECT id FROM products WHERE id = ANY(${columns.text(products)}::text[])`
  const named = sql`${column("metadata")} ->> 'product_id' = ANY(ARRAY(${existing}))`
  const ofProduct = Object.entries(tables).map(
    ([type, table]) => sql`WHEN ${sql.literal(`'${type}'`)} THEN ${named} IS TRUE OR ${isOwn(table, resource)}`
  )
  return sql`CASE ${column("resource_type")}
    WHEN 'license' THEN ${isOwn("licenses", resource)}
    WHEN 'device' THEN ${isOwn("licenses", license)}
    WHEN 'lease' THEN ${isOwn("licenses", license)}
    WHEN 'product' THEN ${isOwn("products", resource)}
    WHEN 'customer' THEN ${isOwn("customers", resource)}
      AND (${field} IS NULL OR ${isOwn("custom_field_definitions", field)})
    ${sql.join(" ", false)(ofProduct)}
    ELSE FALSE END`
}
