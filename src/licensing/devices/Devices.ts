/** The management operations on a license's devices. Reads use SQL with the clock; changes use the license's actor. */

import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { type Refusal, refuseUnknownId } from "../../contract/api/Failure.ts"
import { type ListRequest, limitDefault, type Page, pageOf, totalMax } from "../../contract/api/Paging.ts"
import { Postgres } from "../../platform/postgres/driver/Postgres.ts"
import { createdWithin, sortedBy, totalOf } from "../../platform/postgres/queries/Pages.ts"
import { equals, withoutNulls } from "../../platform/postgres/queries/Sql.ts"
import { blacklist, reset, unblacklist } from "../changes/DeviceActions.ts"
import { LicenseActors } from "../engine/LicenseActors.ts"
import {
  type Device,
  type DeviceBindingKind,
  type DeviceReset,
  type DeviceStatus,
  deviceSorts
} from "../model/Device.ts"
import { refuseUnknownLicense } from "../model/UnknownLicense.ts"
import { type ClockChanges, clockChangesOf, mayHaveChanged, statusNow } from "../rows/DeviceStatusSql.ts"
import { listStatusOf } from "../rows/LicenseRows.ts"
import { deviceColumns } from "./DeviceColumns.ts"

interface DeviceFilter extends ListRequest {
  readonly status?: DeviceStatus
  readonly binding_kind?: DeviceBindingKind
}

interface Selection {
  readonly licenseId: string
  readonly clockChanges: ClockChanges
  readonly now: number
  readonly condition: Statement.Fragment
  /** ORDER BY and LIMIT. */
  readonly first: Statement.Fragment
}

type Changed = Effect.Effect<
  Device,
  Refusal<"NOT_FOUND" | "LICENSE_STATE_CONFLICT" | "DEVICE_STATE_CONFLICT" | "NOT_READY">
>

export class Devices extends Context.Service<
  Devices,
  {
    list(licenseId: string, filter: DeviceFilter): Effect.Effect<Page<Device>, Refusal<"NOT_FOUND">>
    get(licenseId: string, id: string): Effect.Effect<Device, Refusal<"NOT_FOUND">>
    reset(licenseId: string, id: string, input: DeviceReset): Changed
    blacklist(licenseId: string, id: string): Changed
    unblacklist(licenseId: string, id: string): Changed
  }
>()("licensing/licensing/devices/Devices") {
  static readonly layer = Layer.effect(
    Devices,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { customPlanned } = yield* Postgres
      const actors = yield* LicenseActors
      const ofLicense = sql.literal("JOIN licenses l ON l.id = d.license_id JOIN policies p ON p.id = l.policy_id")

      const readClockChanges = Effect.fnUntraced(function* (licenseId: string, now: number) {
        const [license] = yield* Effect.orDie(clockChangesOf(sql, licenseId, now))
        if (license === undefined) return yield* refuseUnknownLicense(licenseId)
        return license
      })

      /** Devices that match `storedCondition`, and `condition` with their current status, in order. */
      const selectWithStatusNow = (
        storedCondition: Statement.Fragment,
        condition: Statement.Fragment,
        first: Statement.Fragment,
        now: number
      ) => {
        const presented = sql`CROSS JOIN LATERAL (SELECT ${statusNow(sql, now)} AS status) AS presented`
        return sql`
          SELECT ${deviceColumns(sql, now)}, presented.status FROM (SELECT * FROM devices d WHERE ${storedCondition}) AS d ${ofLicense} ${presented}
          WHERE ${condition} ${first}`
      }

      /** The first devices of a license, in order, that match `condition` and have the status. */
      const select = (
        { clockChanges, condition, first, licenseId, now }: Selection,
        { binding_kind, status }: DeviceFilter
      ) => {
        // The index on the binding kind finds few containers among thousands of machines.
        const storedCondition = sql`d.license_id = ${licenseId} AND ${condition} AND ${equals(sql, { binding_kind })}`
        const both = (one: Statement.Fragment, other: Statement.Fragment) =>
          sql`SELECT * FROM ((${one}) UNION ALL (${other})) AS d ${first}`
        const inStoredStatus = (status: DeviceStatus, render = withStoredStatus) => {
          const [one, other] = storedStatusConditions(sql, licenseId, status).map((condition) =>
            render(sql`${storedCondition} AND ${condition}`)
          )
          return other === undefined ? one! : both(one!, other)
        }
        const withStoredStatus = (from: Statement.Fragment) =>
          sql`SELECT ${deviceColumns(sql, now)}, d.status FROM devices d WHERE ${from} ${first}`
        const withCurrentStatus = (condition: Statement.Fragment) => (from: Statement.Fragment) =>
          selectWithStatusNow(from, condition, first, now)
        const isStoredCurrent = !clockChanges.silent && !clockChanges.seat_ended
        if (status === undefined)
          return isStoredCurrent ? withStoredStatus(storedCondition) : withCurrentStatus(sql`TRUE`)(storedCondition)
        if (isStoredCurrent || status === "reset" || status === "blacklisted") return inStoredStatus(status)
        const hasStatus = withCurrentStatus(sql`presented.status = ${status}`)
        if (status === "active") return inStoredStatus("active", hasStatus)
        const changedOnly = (from: Statement.Fragment) =>
          hasStatus(sql`${from} AND ${mayHaveChanged(sql, licenseId, clockChanges, now)}`)
        return both(inStoredStatus(status), inStoredStatus("active", changedOnly))
      }

      const list = Effect.fn("Devices.list")(function* (licenseId: string, filter: DeviceFilter) {
        const { limit = limitDefault, sort } = filter
        const now = yield* Clock.currentTimeMillis
        const clockChanges = yield* readClockChanges(licenseId, now)
        const { isAfter, order } = sortedBy(sql, filter, deviceSorts, (field) => `d.${field}`)
        const created = createdWithin(sql, filter, "d.created_at")
        const chosen = { clockChanges, licenseId, now }
        const first = sql`${order} LIMIT ${limit + 1}`
        const rows = yield* Effect.orDie(
          customPlanned<Device>`${select({ ...chosen, condition: sql`${created} AND ${isAfter}`, first }, filter)}`
        )
        const devices = rows.map((row) => withoutNulls<Device>(row))
        const page: Page<Device> = pageOf(devices, limit, sort)
        if (filter.include_total !== "true") return page
        const all = select({ ...chosen, condition: created, first: sql`LIMIT ${totalMax + 1}` }, filter)
        return { ...page, ...(yield* Effect.orDie(totalOf(customPlanned, [sql`SELECT FROM (${all}) AS listed`]))) }
      })

      const get = Effect.fn("Devices.get")(function* (licenseId: string, id: string) {
        const now = yield* Clock.currentTimeMillis
        const [row] = yield* Effect.orDie(sql<Device>`
          SELECT ${deviceColumns(sql, now)}, ${statusNow(sql, now)} AS status FROM devices d ${ofLicense}
          WHERE d.license_id = ${licenseId} AND d.id = ${id}`)
        if (row !== undefined) return withoutNulls<Device>(row)
        yield* readClockChanges(licenseId, now)
        return yield* refuseUnknownId("device of the license", id, "device_id")
      })

      return Devices.of({
        list,
        get,
        reset: (licenseId, device_id, input) => actors.ask(licenseId, reset, { ...input, device_id }),
        blacklist: (licenseId, device_id) => actors.ask(licenseId, blacklist, { device_id }),
        unblacklist: (licenseId, device_id) => actors.ask(licenseId, unblacklist, { device_id })
      })
    })
  )
}

/**
 * Conditions that together select the devices stored in a state. An index cannot find the active devices without a
 * slot, because their state depends on their seats. They are at most as many as the seats, and are found through their
 * leases.
 */
const storedStatusConditions = (
  sql: SqlClient.SqlClient,
  licenseId: string,
  status: DeviceStatus
): ReadonlyArray<Statement.Fragment> => {
  const listed = sql`listed_as = ${listStatusOf(status)} AND status = ${status}`
  const unslotted = sql`${listed} AND NOT holds_slot`
  if (status !== "active") return [unslotted]
  const live = sql`SELECT e.device_id FROM leases e WHERE e.license_id = ${licenseId} AND e.status = 'live'`
  return [sql`${listed} AND holds_slot`, sql`${unslotted} AND id = ANY(ARRAY(${live}))`]
}
