/**
 * The devices of all licenses, newest first or oldest first. States that depend on the clock and the time of the last
 * use have no index, because it would slow down each validation. So a page with such a filter reads a limited number of
 * devices in the list's order, and may return fewer rows than its limit. The same applies to tokens for some products,
 * because devices have no product_id.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { CurrentProducts } from "../../access/CurrentActor.ts"
import { ownedBy } from "../../access/productLimits/OwnedRows.ts"
import { type ListRequest, limitDefault, newestFirst, type Page } from "../../contract/api/Paging.ts"
import { bytes, instant } from "../../platform/postgres/driver/Parameters.ts"
import { Postgres } from "../../platform/postgres/driver/Postgres.ts"
import { createdWithin, pageOfWindow, sortedBy, totalOf } from "../../platform/postgres/queries/Pages.ts"
import { equals, type NullableRow, withoutNulls } from "../../platform/postgres/queries/Sql.ts"
import { sha256 } from "../../platform/signing/Digest.ts"
import { type Device, type DeviceBindingKind, type DeviceStatus, deviceSorts } from "../model/Device.ts"
import { statusNow } from "../rows/DeviceStatusSql.ts"
import { listStatusOf } from "../rows/LicenseRows.ts"
import { deviceColumns } from "./DeviceColumns.ts"

export interface AllDevicesFilter extends ListRequest {
  readonly license_id?: string
  readonly product_id?: string
  readonly status?: DeviceStatus
  readonly binding_kind?: DeviceBindingKind
  readonly hostname?: string
  readonly fingerprint?: string
  readonly last_seen_after?: number
  readonly last_seen_before?: number
}

/** The number of devices that a page with a filter without an index reads, in 5 to 10 ms. */
export const readMax = 1_000

export class AllDevices extends Context.Service<
  AllDevices,
  { list(filter: AllDevicesFilter): Effect.Effect<Page<Device>> }
>()("licensing/licensing/devices/AllDevices") {
  static readonly layer = Layer.effect(
    AllDevices,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { customPlanned } = yield* Postgres

      /** Selected devices `d` with their current status. */
      const presented = (devices: Statement.Fragment, now: number) => sql`
        ${devices} JOIN licenses l ON l.id = d.license_id JOIN policies p ON p.id = l.policy_id
        CROSS JOIN LATERAL (SELECT ${statusNow(sql, now)} AS status) AS presented`

      /** Whether the license or product of a filter belongs to the products. */
      const isOwn = Effect.fnUntraced(function* (
        { license_id, product_id }: AllDevicesFilter,
        products: ReadonlyArray<string>
      ) {
        if (product_id !== undefined && !products.includes(product_id)) return false
        if (license_id === undefined) return true
        const found = yield* sql`
          SELECT FROM licenses l WHERE id = ${license_id} AND ${ownedBy(sql, "licenses", "l", products)}`
        return found.length > 0
      })

      const list = Effect.fn("AllDevices.list")(function* (filter: AllDevicesFilter) {
        const { limit = limitDefault, sort = newestFirst } = filter
        const products = yield* CurrentProducts
        if (products !== undefined && !(yield* isOwn(filter, products))) return { items: [] }
        const now = yield* Clock.currentTimeMillis
        const { isAfter, order } = sortedBy(sql, filter, deviceSorts, (field) => `d.${field}`)
        const isWindow = products !== undefined || hasUnindexed(filter)
        const width = isWindow ? readMax : limit + 1
        const from = filter.product_id === undefined ? "devices d" : "devices d JOIN licenses l ON l.id = d.license_id"
        const part = (condition: Statement.Fragment, first: Statement.Fragment) => sql`
          (SELECT d.* FROM ${sql.literal(from)} WHERE ${indexed(sql, filter)} AND ${condition} ${first}) AS d`
        const rows = yield* customPlanned<Row>`
          SELECT ${deviceColumns(sql, now)}, presented.status, (${unindexed(sql, filter)} AND ${ownedBy(sql, "licenses", "l", products)}) AS matches
          FROM ${presented(part(isAfter, sql`${order} LIMIT ${width}`), now)} ${order}`
        const window = pageOfWindow(rows, (index) => rows[index]!.matches === true, { limit, sort, width })
        const page: Page<Device> = { ...window, items: window.items.map(deviceOf) }
        // Without an index the count would read all devices.
        if (filter.include_total !== "true" || isWindow) return page
        return { ...page, ...(yield* totalOf(customPlanned, [sql`SELECT FROM ${part(sql`TRUE`, sql``)}`])) }
      }, Effect.orDie)

      return AllDevices.of({ list })
    })
  )
}

type Row = NullableRow<Device> & { readonly id: string; readonly matches: boolean }

const deviceOf = ({ matches: _, ...row }: Row): Device => withoutNulls<Device>(row as NullableRow<Device>)

/** States that only requests change: these have an index. */
const isRecorded = (status: DeviceStatus | undefined) => status === "reset" || status === "blacklisted"

const hasUnindexed = ({ last_seen_after, last_seen_before, status }: AllDevicesFilter): boolean =>
  last_seen_after !== undefined || last_seen_before !== undefined || (status !== undefined && !isRecorded(status))

const unindexed = (sql: SqlClient.SqlClient, { last_seen_after, last_seen_before, status }: AllDevicesFilter) =>
  sql.and([
    status === undefined ? sql`TRUE` : sql`presented.status = ${status}`,
    last_seen_after === undefined ? sql`TRUE` : sql`d.last_seen_at > ${instant(last_seen_after)}`,
    last_seen_before === undefined ? sql`TRUE` : sql`d.last_seen_at < ${instant(last_seen_before)}`
  ])

/** The conditions that have indexes. A fingerprint is compared by its digest, so that no statement contains it. */
const indexed = (sql: SqlClient.SqlClient, filter: AllDevicesFilter) => {
  const { binding_kind, fingerprint, hostname, license_id, product_id, status } = filter
  return sql.and([
    createdWithin(sql, filter, "d.created_at"),
    equals(sql, { "d.license_id": license_id, "l.product_id": product_id }),
    // A literal, so that PostgreSQL can use the partial index on containers.
    binding_kind === undefined ? sql`TRUE` : sql.literal(`d.binding_kind = '${binding_kind}'`),
    hostname === undefined ? sql`TRUE` : sql`d.hostname IS NOT NULL AND lower(d.hostname) = lower(${hostname})`,
    fingerprint === undefined
      ? sql`TRUE`
      : sql`d.fingerprint IS NOT NULL AND fingerprint_hash(d.fingerprint) = ${bytes(sha256(fingerprint))}`,
    status !== undefined && isRecorded(status)
      ? sql`d.listed_as <> 'either' AND d.listed_as = ${listStatusOf(status)} AND d.status = ${status}`
      : sql`TRUE`
  ])
}
