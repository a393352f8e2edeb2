/** The records in the path of an operation, and whether a token for some products can call the operation. */
import { Context } from "effect"
import type { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { pathTablesOf } from "../../contract/api/Requests.ts"
import { ProductReach } from "../Management.ts"
import { isOwnedTable, type OwnedTable } from "./OwnedRows.ts"

interface PathRecords {
  readonly named: ReadonlyArray<readonly [param: string, table: OwnedTable]>
  /** Whether the path names records, and all of them belong to products. */
  readonly isOwned: boolean
}

export const pathRecords = (endpoint: HttpApiEndpoint.Top, group: HttpApiGroup.Top): PathRecords => {
  const tables = pathTablesOf(endpoint, group)
  const named = tables.flatMap(([param, table]) => (isOwnedTable(table) ? [[param, table] as const] : []))
  return { named, isOwned: named.length > 0 && named.length === tables.length }
}

/** Whether a token for some products that has the required scopes can call the operation. */
export const reachesProducts = (endpoint: HttpApiEndpoint.Top, group: HttpApiGroup.Top): boolean => {
  const reach = Context.get(endpoint.annotations, ProductReach)
  if (reach === "path") return pathRecords(endpoint, group).isOwned
  return reach !== "forbidden" && reach !== "nothing"
}
