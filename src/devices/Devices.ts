/** A license's devices for the back office: reads come from SQL, every change goes through the license's actor. */
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { type Refusal, refuse } from "../api/Failure.ts"
import { limitDefault, type Page, type PageRequest, pageOf } from "../api/Paging.ts"
import { blacklist, reset, unblacklist } from "../licenses/DeviceActions.ts"
import { LicenseActors } from "../licenses/LicenseActors.ts"
import { Postgres } from "../postgres/Postgres.ts"
import { after, equals, present } from "../postgres/Sql.ts"
import type { Device, DeviceBindingKind, DeviceStatus } from "./Device.ts"

interface DeviceFilter extends PageRequest {
  readonly status?: DeviceStatus
  readonly binding_kind?: DeviceBindingKind
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
    reset(licenseId: string, id: string): Changed
    blacklist(licenseId: string, id: string): Changed
    unblacklist(licenseId: string, id: string): Changed
  }
>()("licensing/devices/Devices") {
  static readonly layer = Layer.effect(
    Devices,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { planned } = yield* Postgres
      const actors = yield* LicenseActors
      const columns =
        sql.literal(`id, license_id, binding_kind, binding_key, is_vm, is_container, status, first_seen_at, last_seen_at,
        metadata, created_at, updated_at, fingerprint, hostname, os, ip_address, container_id, cluster_id, namespace, pod_name,
        last_validated_at`)

      const licenseExists = Effect.fnUntraced(function* (licenseId: string) {
        const [license] = yield* Effect.orDie(sql`SELECT id FROM licenses WHERE id = ${licenseId}`)
        if (license === undefined) return yield* refuse("NOT_FOUND", `No license has the id ${licenseId}.`, "id")
      })

      const list = Effect.fn("Devices.list")(function* (
        licenseId: string,
        { limit = limitDefault, cursor, ...filter }: DeviceFilter
      ) {
        const { status, binding_kind } = filter
        yield* licenseExists(licenseId)
        // The few containers among thousands of machines are found by the index that tells them apart.
        const rows = yield* Effect.orDie(planned<Device>`
          SELECT ${columns} FROM devices
          WHERE license_id = ${licenseId} AND ${after(sql, cursor)} AND ${equals(sql, { status, binding_kind })}
          ORDER BY created_at DESC, id DESC LIMIT ${limit + 1}`)
        return pageOf(
          rows.map((row) => present<Device>(row)),
          limit
        )
      })

      const get = Effect.fn("Devices.get")(function* (licenseId: string, id: string) {
        const [row] = yield* Effect.orDie(sql<Device>`
          SELECT ${columns} FROM devices WHERE license_id = ${licenseId} AND id = ${id}`)
        if (row !== undefined) return present<Device>(row)
        yield* licenseExists(licenseId)
        return yield* refuse("NOT_FOUND", `The license has no device with the id ${id}.`, "device_id")
      })

      return Devices.of({
        list,
        get,
        reset: (licenseId, device_id) => actors.ask(licenseId, reset, { device_id }),
        blacklist: (licenseId, device_id) => actors.ask(licenseId, blacklist, { device_id }),
        unblacklist: (licenseId, device_id) => actors.ask(licenseId, unblacklist, { device_id })
      })
    })
  )
}
