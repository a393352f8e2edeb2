/**
 * The license list. The status filter applies the clock as every read does: what is stored as active is found under expired
 * once its time is up, whether or not a sweep has written it down.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { limitDefault, type Page, type PageRequest } from "../api/Paging.ts"
import { instant } from "../postgres/Parameters.ts"
import { Postgres } from "../postgres/Postgres.ts"
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
      const { planned } = yield* Postgres
      const columns = sql.literal(`${licenseColumns}, ${policyColumns}, 0::bigint AS catalog_revision`)
      const select = sql`SELECT ${columns} FROM licenses l JOIN policies p ON p.id = l.policy_id`

      const page = Effect.fn("LicenseList.page")(function* ({
        limit = limitDefault,
        cursor,
        status,
        ...filter
      }: LicenseFilter) {
        const now = yield* Clock.currentTimeMillis
        const after =
          cursor === undefined ? sql`TRUE` : sql`(l.created_at, l.id) < (${instant(cursor.createdAt)}, ${cursor.id})`
        const wanted = sql`${after} AND ${conditions(sql, filter)}`
        const order = sql`ORDER BY created_at DESC, id DESC LIMIT ${limit + 1}`
        const statement =
          status === undefined
            ? planned<LoadedLicense>`${select} WHERE ${wanted} ${order}`
            : planned<LoadedLicense>`
              (${select} WHERE ${wanted} AND l.status = ${status} AND ${stays(sql, status, now)} ${order})
              UNION ALL
              (SELECT ${columns} FROM policies p CROSS JOIN LATERAL
                (SELECT * FROM licenses l WHERE ${becomes(sql, status, now)} AND ${wanted} OFFSET 0) AS l
                ${order})
              ${order}`
        const rows = yield* statement
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

const conditions = (sql: SqlClient.SqlClient, filter: Omit<LicenseFilter, "status">) => {
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
    filter.q === undefined
      ? sql`TRUE`
      : sql`lower(coalesce(l.customer_name, '') || ' ' || coalesce(l.customer_email, '')) LIKE ${`%${escapeLike(filter.q.toLowerCase())}%`}`
  ])
}

const escapeLike = (text: string): string => text.replaceAll(/[\\%_]/g, "\\$&")

/** What of the licenses stored in a state is shown in it: all but those that the clock has moved on since. */
const stays = (sql: SqlClient.SqlClient, status: LicenseStatus, nowMillis: number) => {
  const now = instant(nowMillis)
  const graceBegan = sql`${now}::timestamptz - make_interval(days => p.grace_period_days)`
  switch (status) {
    case "suspended":
    case "revoked":
      return sql`TRUE`
    case "active":
      return sql`(l.expires_at IS NULL OR l.expires_at > ${now})`
    case "grace_period":
      return sql`l.expires_at <= ${now} AND l.expires_at > ${graceBegan}`
    case "expired":
      return sql`l.expires_at <= ${graceBegan}`
  }
}

/**
 * Licenses that are stored in another state and shown in this one, until a sweep has written it down. They are few and lie
 * anywhere in the list's order, so they are looked for policy by policy, each by a range of the index that sweeps use.
 */
const becomes = (sql: SqlClient.SqlClient, status: LicenseStatus, nowMillis: number) => {
  const expiry = sql.literal("l.expires_at AT TIME ZONE 'UTC'")
  const now = sql`(${instant(nowMillis)} AT TIME ZONE 'UTC')`
  const graceBegan = sql`(${now} - make_interval(days => p.grace_period_days))`
  const storedAs = (...states: ReadonlyArray<LicenseStatus>) =>
    sql.literal(`l.policy_id || ' ' || l.status IN (${states.map((state) => `p.id || ' ${state}'`).join(", ")})`)
  switch (status) {
    case "suspended":
    case "revoked":
      return sql`FALSE`
    case "active":
      return sql`${storedAs("grace_period", "expired")} AND ${expiry} > ${now}`
    case "grace_period":
      return sql`p.grace_period_days > 0 AND ${storedAs("active", "expired")} AND ${expiry} <= ${now} AND ${expiry} > ${graceBegan}`
    case "expired":
      return sql`${storedAs("active", "grace_period")} AND ${expiry} <= ${graceBegan}`
  }
}
