/** What a session of the customer's page sees: its license, or all licenses of its address. */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import type { Refusal } from "../../contract/api/Failure.ts"
import { limitDefault, type Page, type PageRequest, pageOf } from "../../contract/api/Paging.ts"
import { Mail } from "../../ledger/mail/Mail.ts"
import { isMailAddress } from "../../platform/config/MailSettings.ts"
import { columns, instant } from "../../platform/postgres/driver/Parameters.ts"
import { hasAddress } from "../../platform/postgres/queries/LicenseAddress.ts"
import { type Nullable, withoutNulls } from "../../platform/postgres/queries/Sql.ts"
import type { LicenseType } from "../../vendor/policies/Policy.ts"
import { LicenseList } from "../management/LicenseList.ts"
import { Licenses } from "../management/Licenses.ts"
import type { License } from "../model/License.ts"
import { refuseUnknownLicense } from "../model/UnknownLicense.ts"
import { isOverdue, seatIsLive } from "../rows/DeviceStatusSql.ts"
import { accessEndsAt } from "../rules/Lifecycle.ts"
import type { PortalOwner } from "./PortalAccess.ts"
import type { PortalDevice, PortalLicense, PortalLicenseDetails, PortalSeat } from "./PortalLicense.ts"

/** Devices, seats and features of one license that the page shows. */
const shownMax = 200

export class PortalLicenses extends Context.Service<
  PortalLicenses,
  {
    list(owner: PortalOwner, request: PageRequest): Effect.Effect<Page<PortalLicense>>
    get(owner: PortalOwner, id: string): Effect.Effect<PortalLicenseDetails, Refusal<"NOT_FOUND">>
    /** Refuses a license of others as one that does not exist. */
    own(owner: PortalOwner, id: string): Effect.Effect<void, Refusal<"NOT_FOUND">>
  }
>()("licensing/licensing/portal/PortalLicenses") {
  static readonly layer = Layer.effect(
    PortalLicenses,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const reads = yield* LicenseList
      const licenses = yield* Licenses
      const mail = yield* Mail

      const present = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
        const facts = yield* sql<LicenseFacts>`
          SELECT l.id, products.name AS product_name, p.license_type, p.grace_period_days, p.allow_offline_activation,
            ${sql.literal(mailAddress)} AS mail_address
          FROM licenses l JOIN products ON products.id = l.product_id JOIN policies p ON p.id = l.policy_id
            LEFT JOIN customers c ON c.id = l.customer_id
          WHERE l.id = ANY(${columns.text(ids)})`
        const byId = new Map(facts.map((each) => [each.id, each]))
        return (yield* reads.many(ids)).flatMap((license) => presented(license, byId.get(license.id), mail.isOn))
      })

      const list = Effect.fn("PortalLicenses.list")(function* (
        owner: PortalOwner,
        { cursor, limit = limitDefault }: PageRequest
      ) {
        const after =
          cursor === undefined
            ? sql`TRUE`
            : sql`(l.created_at, l.id) < (${instant(Number(cursor.value))}, ${cursor.id})`
        const rows = yield* sql<{ readonly id: string; readonly created_at: number }>`
          SELECT l.id, l.created_at FROM licenses l WHERE ${owned(sql, owner)} AND ${after}
          ORDER BY l.created_at DESC, l.id DESC LIMIT ${limit + 1}`
        const page = pageOf(rows, limit)
        return { ...page, items: yield* present(page.items.map(({ id }) => id)) }
      }, Effect.orDie)

      const own = Effect.fn("PortalLicenses.own")(function* (owner: PortalOwner, id: string) {
        const [row] = yield* Effect.orDie(sql`SELECT l.id FROM licenses l WHERE l.id = ${id} AND ${owned(sql, owner)}`)
        if (row === undefined) return yield* refuseUnknownLicense(id)
      })

      /** Devices with a slot, the newest first. A floating seat needs none. */
      const devicesOf = Effect.fnUntraced(function* ({ id, limits }: PortalLicense) {
        const now = yield* Clock.currentTimeMillis
        const rows = yield* sql<Nullable<PortalDevice> & Counted & { readonly containers: number }>`
          SELECT d.id, coalesce(d.hostname, d.pod_name, d.container_id) AS name, d.os, d.binding_kind, d.first_seen_at, d.last_seen_at,
            CASE WHEN d.slot_held_until > ${instant(now)} THEN d.slot_held_until END AS slot_held_until,
            count(*) OVER () AS total, count(*) FILTER (WHERE d.binding_kind = 'container') OVER () AS containers
          FROM devices d JOIN licenses l ON l.id = d.license_id JOIN policies p ON p.id = l.policy_id
          WHERE d.license_id = ${id} AND ((d.status = 'active' AND d.holds_slot AND NOT ${isOverdue(sql, now)})
            OR d.slot_held_until > ${instant(now)})
          ORDER BY d.created_at DESC, d.id DESC LIMIT ${shownMax}`
        const { containers = 0, total = 0 } = rows[0] ?? {}
        return {
          device_count: total,
          ...(limits.max_container_instances === undefined
            ? { taken_slots: total }
            : { taken_slots: total - containers, taken_container_slots: containers }),
          devices: rows.map(({ containers: _, total: __, ...row }) => withoutNulls<PortalDevice>(row))
        }
      }, Effect.orDie)

      const seatsOf = Effect.fnUntraced(function* (id: string) {
        const now = yield* Clock.currentTimeMillis
        const rows = yield* sql<Nullable<PortalSeat> & Counted>`
          SELECT e.id, coalesce(d.hostname, d.pod_name, d.container_id) AS device_name, e.checked_out_at, e.expires_at,
            CASE WHEN e.borrowed_until > ${instant(now)} THEN e.borrowed_until END AS borrowed_until,
            count(*) OVER () AS total
          FROM leases e JOIN devices d ON d.id = e.device_id JOIN licenses l ON l.id = e.license_id JOIN policies p ON p.id = l.policy_id
          WHERE e.license_id = ${id} AND e.status = 'live' AND ${seatIsLive(sql, now)}
          ORDER BY e.checked_out_at DESC, e.id DESC LIMIT ${shownMax}`
        return {
          seat_count: rows[0]?.total ?? 0,
          seats: rows.map(({ total: _, ...row }) => withoutNulls<PortalSeat>(row))
        }
      }, Effect.orDie)

      const get = Effect.fn("PortalLicenses.get")(function* (owner: PortalOwner, id: string) {
        yield* own(owner, id)
        const [license] = yield* Effect.orDie(present([id]))
        if (license === undefined) return yield* refuseUnknownLicense(id)
        const features = yield* licenses.features(id, { limit: shownMax })
        return {
          ...license,
          features: features.items.filter(({ enabled }) => enabled),
          ...(yield* devicesOf(license)),
          ...(yield* seatsOf(id))
        }
      })

      return PortalLicenses.of({ list, get, own })
    })
  )
}

/** The address of mails about the license `l` of the customer `c`. */
export const mailAddress = "coalesce(l.customer_email, c.email)"

/** All rows, also those above the limit. */
interface Counted {
  readonly total: number
}

interface LicenseFacts {
  readonly id: string
  readonly product_name: string
  readonly license_type: LicenseType
  readonly grace_period_days: number
  readonly allow_offline_activation: boolean
  readonly mail_address: string | null
}

const presented = (
  license: License,
  facts: LicenseFacts | undefined,
  mailIsOn: boolean
): ReadonlyArray<PortalLicense> => {
  if (facts === undefined) return []
  const { grace_period_days, mail_address, ...shown } = facts
  const can_mail_key = mailIsOn && license.status !== "revoked" && isMailAddress(mail_address ?? "")
  const end = accessEndsAt(license, { grace_period_days })
  return [{ ...license, ...shown, can_mail_key, ...(end !== undefined && { access_ends_at: end }) }]
}

/**
 * The licenses `l` of an owner. An address owns those that name it, and those of its customer that name nobody. Those of a customer
 * that is being erased have no owner.
 */
const owned = (sql: SqlClient.SqlClient, owner: PortalOwner): Statement.Fragment => {
  if (owner.kind === "license") return sql`l.id = ${owner.licenseId}`
  const { address } = owner
  return sql`
    (${hasAddress(sql, sql`${address}`)}
      OR (l.customer_email IS NULL AND l.customer_id = ANY (ARRAY(SELECT c.id FROM customers c WHERE lower(c.email) = ${address}))))
    AND coalesce(l.customer_id <> ALL (ARRAY(SELECT customer_id FROM erasures)), TRUE)`
}
