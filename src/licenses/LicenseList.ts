/**
 * The license list. The status filter applies the clock as every read does: what is stored as active is found under expired
 * once its time is up, whether or not a sweep has written it down.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { limitDefault, type Page, type PageRequest } from "../api/Paging.ts"
import { instant } from "../postgres/Parameters.ts"
import { equals } from "../postgres/Sql.ts"
import type { License, LicenseStatus } from "./License.ts"
import { type LoadedLicense, licenseColumns, licenseOf, policyColumns, policyOf } from "./LicenseRows.ts"
import { shownLicense } from "./Shown.ts"

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
>()("licensing/licenses/LicenseList") {
  static readonly layer = Layer.effect(
    LicenseList,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const select = sql.literal(`SELECT ${licenseColumns}, ${policyColumns}, 0::bigint AS catalog_revision
        FROM licenses l JOIN policies p ON p.id = l.policy_id`)

      const page = Effect.fn("LicenseList.page")(function* ({
        limit = limitDefault,
        cursor,
        ...filter
      }: LicenseFilter) {
        const now = yield* Clock.currentTimeMillis
        const after =
          cursor === undefined ? sql`TRUE` : sql`(l.created_at, l.id) < (${instant(cursor.createdAt)}, ${cursor.id})`
        const rows = yield* sql<LoadedLicense>`
          ${select} WHERE ${after} AND ${conditions(sql, filter, now)}
          ORDER BY l.created_at DESC, l.id DESC LIMIT ${limit + 1}`
        const items = rows.slice(0, limit).map((row) => shownLicense(licenseOf(row), policyOf(row), now))
        const last = items.at(-1)
        return rows.length > limit && last !== undefined
          ? { items, next: { createdAt: last.created_at, id: last.id } }
          : { items }
      }, Effect.orDie)

      const find = Effect.fn("LicenseList.find")(function* (id: string) {
        const now = yield* Clock.currentTimeMillis
        const [row] = yield* sql<LoadedLicense>`${select} WHERE l.id = ${id}`
        return row === undefined ? undefined : shownLicense(licenseOf(row), policyOf(row), now)
      }, Effect.orDie)

      return LicenseList.of({ page, find })
    })
  )
}

const conditions = (sql: SqlClient.SqlClient, filter: LicenseFilter, now: number) => {
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
    filter.expires_after === undefined ? sql`TRUE` : sql`l.expires_at > ${instant(filter.expires_after)}`,
    filter.status === undefined ? sql`TRUE` : byStatus(sql, filter.status, now),
    filter.q === undefined
      ? sql`TRUE`
      : sql`lower(coalesce(l.customer_name, '') || ' ' || coalesce(l.customer_email, '')) LIKE ${`%${escapeLike(filter.q.toLowerCase())}%`}`
  ])
}

const escapeLike = (text: string): string => text.replaceAll(/[\\%_]/g, "\\$&")

const byStatus = (sql: SqlClient.SqlClient, status: LicenseStatus, now: number) => {
  const access = sql`l.expires_at + make_interval(days => p.grace_period_days)`
  const timed = sql`l.status NOT IN ('suspended', 'revoked')`
  switch (status) {
    case "suspended":
    case "revoked":
      return sql`l.status = ${status}`
    case "active":
      return sql`${timed} AND (l.expires_at IS NULL OR l.expires_at > ${instant(now)})`
    case "grace_period":
      return sql`${timed} AND l.expires_at <= ${instant(now)} AND ${access} > ${instant(now)}`
    case "expired":
      return sql`${timed} AND l.expires_at <= ${instant(now)} AND ${access} <= ${instant(now)}`
  }
}
