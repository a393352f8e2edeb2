/**
 * The license list of a token for some products: the lists of its products, merged. So the cost does not depend on the
 * licenses of other products.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import {
  fieldOf,
  type ListRequest,
  limitDefault,
  newestFirst,
  type Page,
  pageOf,
  totalMax
} from "../../contract/api/Paging.ts"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import type { License } from "../model/License.ts"

/** Concurrent lists: limits connections. */
export const productsAtOnce = 3

interface Filter extends ListRequest {
  readonly product_id?: string
  readonly policy_id?: string
  readonly order_id?: string
  readonly subscription_id?: string
}

/** Filters whose records have one product, and their tables. */
const linked = { policy_id: "policies", order_id: "orders", subscription_id: "subscriptions" } as const

/** Up to this number, all licenses of a product are read, so that no filter searches those of other products. */
const fewMax = 1_500

interface OwnProduct {
  readonly id: string
  readonly has_few: boolean
}

/** The products of the token that licenses with this filter can have. */
export const productsOf = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  filter: Filter,
  products: ReadonlyArray<string>
) {
  let possible = products.filter((id) => filter.product_id === undefined || id === filter.product_id)
  for (const [field, table] of Object.entries(linked)) {
    const id = filter[field as keyof typeof linked]
    if (id === undefined || possible.length === 0) continue
    const rows = yield* sql<{ readonly product_id: string }>`SELECT product_id FROM ${sql(table)} WHERE id = ${id}`
    possible = possible.filter((product) => product === rows[0]?.product_id)
  }
  if (possible.length === 0) return []
  return yield* sql<OwnProduct>`
    SELECT product.id, (SELECT count(*) FROM (
        SELECT FROM licenses WHERE product_id = product.id ORDER BY created_at DESC, id DESC LIMIT ${fewMax + 1}
      ) AS first) <= ${fewMax} AS has_few
    FROM unnest(${columns.text(possible)}::text[]) AS product (id)`
})

/** Merges the same page of each product into one. */
export const mergedPage = (
  { include_total, limit = limitDefault, sort = newestFirst }: Filter,
  pages: ReadonlyArray<Page<License>>
): Page<License> => {
  const sign = sort.startsWith("-") ? -1 : 1
  const field = fieldOf(sort) as "created_at" | "expires_at"
  const merged = pages
    .flatMap(({ items }) => items)
    .sort((a, b) => sign * (placeOf(a, field) - placeOf(b, field) || (a.id < b.id ? -1 : 1)))
  const items = merged.slice(0, limit)
  // A product with more licenses has a full page here.
  const hasMore = merged.length > limit || pages.some(({ next }) => next !== undefined)
  const total = pages.reduce((sum, page) => sum + (page.total ?? 0), 0)
  const isCapped = total > totalMax || pages.some(({ total_is_capped }) => total_is_capped === true)
  return {
    ...pageOf(hasMore ? [...items, ...items.slice(-1)] : items, limit, sort),
    ...(include_total === "true" && { total: Math.min(total, totalMax), total_is_capped: isCapped })
  }
}

/** Licenses without expiry are sorted after all others. */
const placeOf = (license: License, field: "created_at" | "expires_at"): number =>
  license[field] ?? Number.MAX_SAFE_INTEGER
