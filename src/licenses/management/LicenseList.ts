/**
 * The license list. The status filter applies the clock, as every read does: a license that is stored as active is
 * listed as expired once its access has ended, even if no sweep has recorded it yet.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { limitDefault, type Page, type PageRequest } from "../../api/Paging.ts"
import { instant } from "../../postgres/Parameters.ts"
import { Postgres } from "../../postgres/Postgres.ts"
import { equals } from "../../postgres/Sql.ts"
import type { License, LicenseStatus } from "../model/License.ts"
import { lapsedCount } from "../rows/DeviceStatusSql.ts"
import { expiredFeatureCount } from "../rows/FeatureExpirySql.ts"
import {
  clockLag,
  type LoadedLicense,
  licenseColumns,
  licenseOf,
  policyColumns,
  policyOf
} from "../rows/LicenseRows.ts"
import { indexedMatches, matchesPart, sample, search } from "./LicenseSearch.ts"
import { presentLicense } from "./PresentLicense.ts"

export interface LicenseFilter extends PageRequest {
  readonly product_id?: string
  readonly policy_id?: string
  readonly customer_id?: string
  readonly status?: LicenseStatus
  readonly order_id?: string
  readonly subscription_id?: string
  readonly expires_before?: number
  readonly expires_after?: number
  readonly license_key_last4?: string
  readonly q?: string
}

export class LicenseList extends Context.Service<
  LicenseList,
  {
    page(filter: LicenseFilter): Effect.Effect<Page<License>>
    find(id: string): Effect.Effect<License | undefined>
  }
>()("licensing/licenses/management/LicenseList") {
  static readonly layer = Layer.effect(
    LicenseList,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { customPlanned } = yield* Postgres
      const columns = (now: number) =>
        sql`${sql.literal(`${licenseColumns}, ${policyColumns}, 0::bigint AS catalog_revision`)}, ${lapsedCount(sql, now)} AS lapsed,
          ${expiredFeatureCount(sql, now)} AS expired_features`
      const order = sql.literal("ORDER BY created_at DESC, id DESC")

      const ofPolicy = sql.literal("JOIN policies p ON p.id = l.policy_id")
      /** A selection of licenses `l`, with the columns that the list returns. */
      const stored = (part: Statement.Fragment, now: number) =>
        sql`SELECT ${columns(now)}, FALSE AS moved_by_clock FROM ${part} ${ofPolicy}`
      /** The condition for licenses stored in a state to be listed in it. */
      const inState = ({ now, status }: ListQuery) =>
        status === undefined ? sql`TRUE` : storedStateCondition(sql, status, now)

      /**
       * The first stored rows merged with the first rows that the clock has moved into the state since; the latter are
       * marked.
       */
      const merged = (rows: Statement.Fragment, { count, matchesText, now, status, rowConditions }: ListQuery) => {
        const first = sql`${order} LIMIT ${count}`
        const movedRows =
          status === undefined ? [] : movedIntoState(sql, status, now, sql`${rowConditions} AND ${matchesText}`)
        return movedRows.length === 0
          ? customPlanned<ListedLicense>`${rows} ${first}`
          : customPlanned<ListedLicense>`(${rows} ${first}) ${sql.join(
              " ",
              false
            )(
              movedRows.map(
                (other) => sql`UNION ALL (SELECT ${columns(now)}, TRUE AS moved_by_clock FROM ${other} ${first})`
              )
            )} ${order}`
      }

      const page = Effect.fn("LicenseList.page")(function* ({
        limit = limitDefault,
        cursor,
        status,
        q,
        ...filter
      }: LicenseFilter) {
        const now = yield* Clock.currentTimeMillis
        const after =
          cursor === undefined ? sql`TRUE` : sql`(l.created_at, l.id) < (${instant(cursor.createdAt)}, ${cursor.id})`
        const rowConditions = sql`${after} AND ${filterConditions(sql, filter)}`
        const count = limit + 1
        const query = { now, status, rowConditions, count, matchesText: q ? matchesPart(sql, q) : sql`TRUE` }
        const fits = sql`${rowConditions} AND ${inState(query)}`
        const candidateLicenses = candidates(sql, status, cursor)
        // Only the scanned rows are joined with the other columns.
        const newest = (width: number) => sql`
          (SELECT l.* FROM ${candidateLicenses} ${status === undefined ? sql`` : ofPolicy} WHERE ${fits} ${order} LIMIT ${width}) AS l`
        const isStored = status === undefined ? sql`TRUE` : sql`l.status = ${status}`
        const rows = q
          ? yield* search({
              rowsMin: count,
              sample: Effect.map(sample(customPlanned, q), ([row]) => row ?? { sampled: 0, matching: 0 }),
              isScanned: ({ moved_by_clock }) => !moved_by_clock,
              scan: (width) => merged(sql`${stored(newest(width), now)} WHERE ${query.matchesText}`, query),
              lookUp: merged(
                sql`${stored(sql`${indexedMatches(sql, q)} AS l`, now)} WHERE ${isStored} AND ${fits}`,
                query
              )
            })
          : yield* merged(sql`${stored(candidateLicenses, now)} WHERE ${fits}`, query)
        const items = rows.slice(0, limit).map((row) => presentRow(row, now))
        const last = items.at(-1)
        return rows.length > limit && last !== undefined
          ? { items, next: { createdAt: last.created_at, id: last.id } }
          : { items }
      }, Effect.orDie)

      const find = Effect.fn("LicenseList.find")(function* (id: string) {
        const now = yield* Clock.currentTimeMillis
        const [row] = yield* sql<StoredLicense>`SELECT ${columns(now)} FROM licenses l ${ofPolicy} WHERE l.id = ${id}`
        return row && presentRow(row, now)
      }, Effect.orDie)

      return LicenseList.of({ page, find })
    })
  )
}

/** With the changes by the clock that are not written yet: activations that have lapsed, and features that have expired. */
type StoredLicense = LoadedLicense & { readonly lapsed: number; readonly expired_features: number }
type ListedLicense = StoredLicense & { readonly moved_by_clock: boolean }

const presentRow = (row: StoredLicense, now: number): License => {
  const license = licenseOf(row)
  const active_device_count = license.active_device_count - row.lapsed
  return presentLicense({ ...license, active_device_count }, policyOf(row), row.expired_features, now)
}

interface ListQuery {
  readonly now: number
  readonly status: LicenseStatus | undefined
  /** The conditions for every row: the page's position and all filters except the state and the search text. */
  readonly rowConditions: Statement.Fragment
  readonly matchesText: Statement.Fragment
  /** One row more than the page holds. */
  readonly count: number
}

const filterConditions = (sql: SqlClient.SqlClient, filter: Omit<LicenseFilter, "status" | "q">) => {
  const { product_id, policy_id, customer_id, order_id, subscription_id, license_key_last4 } = filter
  return sql.and([
    equals(sql, {
      "l.product_id": product_id,
      "l.policy_id": policy_id,
      "l.customer_id": customer_id,
      "l.order_id": order_id,
      "l.subscription_id": subscription_id,
      "l.license_key_last4": license_key_last4
    }),
    filter.expires_before === undefined ? sql`TRUE` : sql`l.expires_at < ${instant(filter.expires_before)}`,
    filter.expires_after === undefined ? sql`TRUE` : sql`l.expires_at > ${instant(filter.expires_after)}`
  ])
}

/**
 * The licenses `l` in list order, newest first; for a state, those stored in it, after the previous page. Both tables
 * have the columns of the order, so a page of a state is found through whichever table has fewer rows for the other
 * filters.
 */
const candidates = (sql: SqlClient.SqlClient, status: LicenseStatus | undefined, cursor: LicenseFilter["cursor"]) =>
  status === undefined
    ? sql`licenses l`
    : sql`license_states s JOIN licenses l ON l.id = s.license_id AND l.created_at = s.created_at AND s.status = ${status}
        AND ${cursor === undefined ? sql`TRUE` : sql`(s.created_at, s.license_id) < (${instant(cursor.createdAt)}, ${cursor.id})`}`

/** The condition for licenses stored in a state to be listed in it: the clock has not moved them on since. */
const storedStateCondition = (sql: SqlClient.SqlClient, status: LicenseStatus, nowMillis: number) => {
  const now = instant(nowMillis)
  const graceBegan = sql`${now}::timestamptz - make_interval(days => p.grace_period_days)`
  const lag = sql.literal(clockLag)
  switch (status) {
    case "suspended":
    case "revoked":
      return sql`TRUE`
    case "active":
      return sql`(l.expires_at IS NULL OR l.expires_at > ${now})`
    case "grace_period":
      return sql`l.expires_at <= ${now}::timestamptz + ${lag} AND l.expires_at > ${graceBegan}`
    case "expired":
      return sql`l.expires_at <= ${graceBegan} + ${lag}`
  }
}

/**
 * Licenses that are stored in another state and listed in this one, until a sweep has written it: each with its policy.
 * They are few and scattered over the list's order, so they are found by ranges of indexes that only their conditions
 * match. A condition on the clock alone is one range for all licenses. A condition on the grace period is one range for
 * each policy.
 */
const movedIntoState = (
  sql: SqlClient.SqlClient,
  status: LicenseStatus,
  nowMillis: number,
  rowConditions: Statement.Fragment
): ReadonlyArray<Statement.Fragment> => {
  const expiry = sql.literal("s.expires_at AT TIME ZONE 'UTC'")
  const now = sql`(${instant(nowMillis)} AT TIME ZONE 'UTC')`
  const graceBegan = sql`(${now} - make_interval(days => p.grace_period_days))`
  const of = (condition: Statement.Fragment) => sql`
    (SELECT l.* FROM (SELECT s.license_id FROM license_states s WHERE ${condition} OFFSET 0) AS s,
      LATERAL (SELECT * FROM licenses WHERE id = s.license_id OFFSET 0) AS l WHERE ${rowConditions} OFFSET 0) AS l`
  const storedAs = (state: LicenseStatus) => sql`s.policy_id || ' ' || s.status = p.id || ${` ${state}`}
    AND s.expires_at IS NOT NULL`
  const activeUntilNow = (ended: Statement.Fragment) => sql`
    ${of(sql`s.notice IN (1, 3, 7, 8) AND ${expiry} <= ${now}`)} JOIN policies p ON p.id = l.policy_id WHERE ${ended}`
  const end = sql.literal("l.expires_at AT TIME ZONE 'UTC'")
  switch (status) {
    case "suspended":
    case "revoked":
      return []
    case "active":
      return [
        sql`${of(sql`s.status IN ('grace_period', 'expired')
          AND CASE WHEN s.status IN ('grace_period', 'expired') THEN ${expiry} END > ${now} + ${sql.literal(clockLag)}`)}
          JOIN policies p ON p.id = l.policy_id`
      ]
    case "grace_period":
      return [
        activeUntilNow(sql`${end} > ${graceBegan}`),
        sql`policies p CROSS JOIN LATERAL
          ${of(sql`${storedAs("expired")} AND ${expiry} <= ${now} + ${sql.literal(clockLag)}
            AND ${expiry} > ${graceBegan} + ${sql.literal(clockLag)}`)}
          WHERE p.grace_period_days > 0`
      ]
    case "expired":
      return [
        activeUntilNow(sql`${end} <= ${graceBegan}`),
        sql`policies p CROSS JOIN LATERAL ${of(sql`${storedAs("grace_period")} AND ${expiry} <= ${graceBegan}`)}`
      ]
  }
}
