/** The license list. Like all reads it applies the clock: a license is expired when its access ends, swept or not. */
import { Clock, Context, Effect, identity, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { CurrentProducts, type ProductIds } from "../../access/CurrentActor.ts"
import { ownedBy } from "../../access/productLimits/OwnedRows.ts"
import type { MetadataFilter } from "../../contract/api/Metadata.ts"
import { type ListRequest, limitDefault, type Page, pageOf } from "../../contract/api/Paging.ts"
import { columns as arrays, instant } from "../../platform/postgres/driver/Parameters.ts"
import { Postgres } from "../../platform/postgres/driver/Postgres.ts"
import { metadataMatches } from "../../platform/postgres/queries/MetadataFilter.ts"
import { createdWithin, sortedBy, totalOf } from "../../platform/postgres/queries/Pages.ts"
import { indexedMatches, isCommon, type Match, sampleOf, search } from "../../platform/postgres/queries/Search.ts"
import { equals, unionAll } from "../../platform/postgres/queries/Sql.ts"
import { type License, type LicenseStatus, licenseSorts } from "../model/License.ts"
import { lapsedCount } from "../rows/DeviceStatusSql.ts"
import { expiredFeatureCount } from "../rows/FeatureExpirySql.ts"
import { type LicenseAndPolicyRow, policyColumns, policyOf } from "../rows/LicenseRows.ts"
import { licenseColumns, licenseOf } from "../rows/LicenseTable.ts"
import { movedIntoState, storedStateCondition } from "./LicenseStates.ts"
import { mergedPage, productsAtOnce, productsOf } from "./OwnLicenses.ts"
import { presentLicense } from "./PresentLicense.ts"

export interface LicenseFilter extends ListRequest, MetadataFilter {
  readonly product_id?: string
  readonly policy_id?: string
  readonly customer_id?: string
  readonly status?: LicenseStatus
  readonly order_id?: string
  readonly subscription_id?: string
  readonly feature_id?: string
  readonly expires_before?: number
  readonly expires_after?: number
  readonly maintenance_expires_before?: number
  readonly maintenance_expires_after?: number
  readonly license_key_last4?: string
  readonly bulk_job_id?: string
  readonly q?: string
}

export class LicenseList extends Context.Service<
  LicenseList,
  {
    page(filter: LicenseFilter): Effect.Effect<Page<License>>
    find(id: string): Effect.Effect<License | undefined>
    /** The licenses with these ids, in the order of the ids. */
    many(ids: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<License>>
  }
>()("licensing/licensing/management/LicenseList") {
  static readonly layer = Layer.effect(
    LicenseList,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { customPlanned } = yield* Postgres
      const columns = columnsOf(sql)
      const licenses = sql.literal("licenses l")

      /** The first stored rows, merged with the first rows that the clock has moved into the state since. */
      const merged = (rows: Statement.Fragment, { count, now, order, ...query }: ListQuery) => {
        const first = sql`${order} LIMIT ${count}`
        const moved = movedRows(sql, { now, ...query }, sql`${query.conditions} AND ${query.isAfter}`)
        if (moved.length === 0) return customPlanned<ListedLicense>`${rows} ${first}`
        const others = moved.map(
          (other) => sql`UNION ALL (SELECT ${columns(now)}, TRUE AS moved_by_clock FROM ${other} ${first})`
        )
        return customPlanned<ListedLicense>`
          SELECT * FROM ((${rows} ${first}) ${sql.join(" ", false)(others)}) AS l ${order}`
      }

      /** A selection of licenses `l`, with the columns that the list returns. */
      const stored = (part: Statement.Fragment, now: number) =>
        sql`SELECT ${columns(now)}, FALSE AS moved_by_clock FROM ${part} ${sql.literal(ofPolicy)}`

      const sampled = (match: Match) => sampleOf(customPlanned, "licenses", licenses, match)

      const read = Effect.fnUntraced(function* (query: ListQuery) {
        const { candidates, conditions, count, isAfter, isStored, match, now, order } = query
        const fits = sql`${conditions} AND ${isAfter} AND ${query.inState}`
        if (match === undefined) return yield* merged(sql`${stored(candidates, now)} WHERE ${fits}`, query)
        // Only the scanned rows are joined with the other columns.
        const newest = (width: number) => sql`
          (SELECT l.* FROM ${candidates} ${query.joined} WHERE ${fits} ${order} LIMIT ${width}) AS l`
        return yield* search({
          rowsMin: count,
          sample: yield* sampled(match),
          isScanned: ({ moved_by_clock }) => !moved_by_clock,
          scan: (width) => merged(sql`${stored(newest(width), now)} WHERE ${match.matches}`, query),
          lookUp: merged(
            sql`${stored(sql`${indexedMatches(sql, licenses, match)} AS l`, now)} WHERE ${isStored} AND ${fits}`,
            query
          )
        })
      })

      const count = Effect.fnUntraced(function* ({ conditions, inState, isStored, match, ...query }: ListQuery) {
        const isRare = match !== undefined && !isCommon(yield* sampled(match))
        const from = isRare ? sql`${indexedMatches(sql, licenses, match)} AS l` : query.candidates
        const matches = sql`${conditions} AND ${inState} AND ${match === undefined ? sql`TRUE` : match.matches}`
        const moved = movedRows(sql, { match, ...query }, conditions)
        return yield* totalOf(customPlanned, [
          sql`SELECT FROM ${from} ${query.joined} WHERE ${matches} ${isRare ? sql`AND ${isStored}` : sql``}`,
          ...moved.map((other) => sql`SELECT FROM ${other}`)
        ])
      })

      const pageAt = Effect.fnUntraced(function* (filter: LicenseFilter, now: number, ofFew = false) {
        const { limit = limitDefault, sort } = filter
        const plan = ofFew ? (query: ListQuery) => amongFew(sql, filter, query) : identity<ListQuery>
        const query = plan(queryOf(sql, filter, limit + 1, now))
        const rows = (yield* read(query)).map((row) => presentRow(row, now))
        const listed: Page<License> = pageOf(rows, limit, sort)
        if (filter.include_total !== "true") return listed
        const { cursor: _, ...whole } = filter
        return { ...listed, ...(yield* count(plan(queryOf(sql, whole, limit, now)))) }
      })

      const page = Effect.fn("LicenseList.page")(function* (filter: LicenseFilter) {
        const now = yield* Clock.currentTimeMillis
        const products = yield* CurrentProducts
        if (products === undefined) return yield* pageAt(filter, now)
        return mergedPage(
          filter,
          yield* Effect.forEach(
            yield* productsOf(sql, filter, products),
            ({ has_few, id }) => pageAt({ ...filter, product_id: id }, now, has_few),
            { concurrency: productsAtOnce }
          )
        )
      }, Effect.orDie)

      const find = Effect.fn("LicenseList.find")(function* (id: string) {
        const now = yield* Clock.currentTimeMillis
        const [row] = yield* sql<StoredLicense>`
          SELECT ${columns(now)} FROM licenses l ${sql.literal(ofPolicy)} WHERE l.id = ${id}`
        return row && presentRow(row, now)
      }, Effect.orDie)

      const many = Effect.fn("LicenseList.many")(function* (ids: ReadonlyArray<string>) {
        const now = yield* Clock.currentTimeMillis
        const rows = yield* sql<StoredLicense>`
          SELECT ${columns(now)} FROM licenses l ${sql.literal(ofPolicy)} WHERE l.id = ANY(${arrays.text(ids)})`
        const byId = new Map(rows.map((row) => [row.id, presentRow(row, now)]))
        return ids.flatMap((id) => byId.get(id) ?? [])
      }, Effect.orDie)

      return LicenseList.of({ page, find, many })
    })
  )
}

const columnsOf = (sql: SqlClient.SqlClient) => (now: number) =>
  sql`${sql.literal(`${licenseColumns}, ${policyColumns}`)}, ${lapsedCount(sql, now)} AS lapsed,
    ${expiredFeatureCount(sql, now)} AS expired_features`

const ofPolicy = "JOIN policies p ON p.id = l.policy_id"

/** With the numbers of unwritten changes by the clock: lapsed activations and expired features. */
type StoredLicense = LicenseAndPolicyRow & { readonly lapsed: number; readonly expired_features: number }
type ListedLicense = StoredLicense & { readonly moved_by_clock: boolean }

const presentRow = (row: StoredLicense, now: number): License => {
  const license = licenseOf(row)
  const active_device_count = license.active_device_count - row.lapsed
  return presentLicense({ ...license, active_device_count }, policyOf(row), row.expired_features, now)
}

interface ListQuery {
  readonly now: number
  readonly status: LicenseStatus | undefined
  /** The licenses `l` in the list's order; for a state, those stored in it. */
  readonly candidates: Statement.Fragment
  /** The policies `p`, if the state needs them. */
  readonly joined: Statement.Fragment
  /** All filters except the state and the searched ones. */
  readonly conditions: Statement.Fragment
  readonly isStored: Statement.Fragment
  /** The condition for licenses stored in the state to be listed in it. */
  readonly inState: Statement.Fragment
  /** The filters that are searched: by a part of a name, or by metadata. */
  readonly match: Match | undefined
  readonly isAfter: Statement.Fragment
  readonly order: Statement.Fragment
  /** One row more than the page holds. */
  readonly count: number
}

const queryOf = (sql: SqlClient.SqlClient, filter: LicenseFilter, count: number, now: number): ListQuery => {
  const { status } = filter
  const isAny = status === undefined
  return {
    now,
    status,
    candidates: candidates(sql, filter),
    joined: sql.literal(isAny ? "" : ofPolicy),
    conditions: filterConditions(sql, filter),
    isStored: isAny ? sql`TRUE` : sql`l.status = ${status}`,
    inState: isAny ? sql`TRUE` : storedStateCondition(sql, status, now),
    match: matchOf(sql, filter),
    ...sortedBy(sql, filter, licenseSorts, columnOf),
    count
  }
}

/** The ids of all licenses that the list would show for a filter. */
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

/** The same query for a product with few licenses. It reads all of them, and searches no index of other licenses. */
const amongFew = (sql: SqlClient.SqlClient, { product_id = "" }: LicenseFilter, query: ListQuery): ListQuery => ({
  ...query,
  candidates: sql`(SELECT * FROM licenses WHERE product_id = ${product_id} OFFSET 0) AS l`,
  conditions: query.match === undefined ? query.conditions : sql`${query.conditions} AND ${query.match.matches}`,
  inState: sql`${query.isStored} AND ${query.inState}`,
  match: undefined
})

/** Licenses without such an end are sorted after all others. */
const columnOf = (field: string): string =>
  field.endsWith("expires_at") ? `COALESCE(l.${field}, 'infinity')` : `l.${field}`

const movedRows = (
  sql: SqlClient.SqlClient,
  { match, now, status }: Pick<ListQuery, "match" | "now" | "status">,
  conditions: Statement.Fragment
) =>
  status === undefined
    ? []
    : movedIntoState(sql, status, now, match === undefined ? conditions : sql`${conditions} AND ${match.matches}`)

const filterConditions = (sql: SqlClient.SqlClient, filter: LicenseFilter) => {
  const { bulk_job_id: job, product_id, policy_id, customer_id, order_id, subscription_id, license_key_last4 } = filter
  const { feature_id: feature, maintenance_expires_after: after, maintenance_expires_before: before } = filter
  // The index of the sort serves the filter, too.
  const maintenance = sql.literal(columnOf("maintenance_expires_at"))
  return sql.and([
    createdWithin(sql, filter, "l.created_at"),
    equals(sql, {
      "l.product_id": product_id,
      "l.policy_id": policy_id,
      "l.customer_id": customer_id,
      "l.order_id": order_id,
      "l.subscription_id": subscription_id,
      "l.license_key_last4": license_key_last4
    }),
    job === undefined ? sql`TRUE` : sql`l.id IN (SELECT unnest(license_ids) FROM bulk_job_parts WHERE job_id = ${job})`,
    feature === undefined
      ? sql`TRUE`
      : sql`EXISTS (SELECT FROM license_features f WHERE f.license_id = l.id AND f.feature_id = ${feature})`,
    filter.expires_before === undefined ? sql`TRUE` : sql`l.expires_at < ${instant(filter.expires_before)}`,
    filter.expires_after === undefined ? sql`TRUE` : sql`l.expires_at > ${instant(filter.expires_after)}`,
    before === undefined ? sql`TRUE` : sql`${maintenance} < ${instant(before)}`,
    after === undefined ? sql`TRUE` : sql`${maintenance} > ${instant(after)} AND ${maintenance} < 'infinity'`
  ])
}

/** The filters that are searched. A name or address is the license's own or its customer's. With both, it is looked up. */
const matchOf = (sql: SqlClient.SqlClient, { q, ...filter }: LicenseFilter): Match | undefined => {
  const metadata = metadataMatches(sql, "l.metadata", filter)
  if (!q) return metadata && { matches: metadata, indexed: metadata }
  const contains = (row: string) => sql.literal(`search_text(${row})`)
  const [own, linked] = [contains("l.customer_name, l.customer_email"), contains("c.name, c.email")]
  const part = sql`lower(${q})`
  // A subquery by id, which PostgreSQL never turns into a scan of all customers, and a list of ids, which an index of licenses serves.
  // Licenses of a customer that is being erased are not found, whether they are erased already or not.
  const contained = sql`(strpos(${own}, ${part}) > 0 OR (SELECT strpos(${linked}, ${part}) > 0 FROM customers c WHERE c.id = l.customer_id))
    AND coalesce(l.customer_id <> ALL (ARRAY(SELECT customer_id FROM erasures)), TRUE)`
  const found = (text: Statement.Fragment) => sql`search_grams(${text}) @@ search_query(${part})`
  const indexed = sql`(${found(own)} OR l.customer_id = ANY (ARRAY(
    SELECT c.id FROM customers c WHERE ${found(linked)} AND strpos(${linked}, ${part}) > 0)))`
  return { matches: metadata === undefined ? contained : sql`${contained} AND ${metadata}`, indexed }
}

/**
 * The licenses `l` of a state in list order, after the previous page. Both tables can sort by creation, so PostgreSQL
 * can use the table with fewer rows for the other filters.
 */
const candidates = (sql: SqlClient.SqlClient, { status, ...request }: LicenseFilter) => {
  if (status === undefined) return sql`licenses l`
  const column = (field: string) => (field === "id" ? "s.license_id" : `s.${field}`)
  const isByCreation = request.sort === undefined || request.sort.endsWith("created_at")
  const { isAfter } = isByCreation ? sortedBy(sql, request, licenseSorts, column) : { isAfter: sql`TRUE` }
  return sql`license_states s JOIN licenses l ON l.id = s.license_id AND l.created_at = s.created_at AND s.status = ${status}
    AND ${isAfter}`
}
