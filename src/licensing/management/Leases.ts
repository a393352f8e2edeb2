/** Lists a license's live leases by the clock: no lapsed ones, and after the end of access only borrowed ones, swept or not. */

import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { Refusal } from "../../contract/api/Failure.ts"
import { limitDefault, newestFirst, type Page, type PageRequest } from "../../contract/api/Paging.ts"
import { instant } from "../../platform/postgres/driver/Parameters.ts"
import { withoutNulls } from "../../platform/postgres/queries/Sql.ts"
import type { Lease } from "../model/Lease.ts"
import { refuseUnknownLicense } from "../model/UnknownLicense.ts"
import { seatIsLive } from "../rows/DeviceStatusSql.ts"

export class Leases extends Context.Service<
  Leases,
  {
    /** Live leases, the latest checkout first. */
    list(licenseId: string, request: PageRequest): Effect.Effect<Page<Lease>, Refusal<"NOT_FOUND">>
  }
>()("licensing/licensing/management/Leases") {
  static readonly layer = Layer.effect(
    Leases,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const list = Effect.fn("Leases.list")(function* (
        licenseId: string,
        { limit = limitDefault, cursor }: PageRequest
      ) {
        const nowMillis = yield* Clock.currentTimeMillis
        const now = instant(nowMillis)
        const [license] = yield* Effect.orDie(sql`SELECT id FROM licenses WHERE id = ${licenseId}`)
        if (license === undefined) return yield* refuseUnknownLicense(licenseId)
        const after =
          cursor === undefined
            ? sql`TRUE`
            : sql`(e.checked_out_at, e.id) < (${instant(Number(cursor.value))}, ${cursor.id})`
        const rows = yield* Effect.orDie(sql<Lease>`
          SELECT e.id, e.license_id, e.device_id, e.status, e.checked_out_at, e.heartbeat_at, e.expires_at,
            CASE WHEN e.borrowed_until > ${now} THEN e.borrowed_until END AS borrowed_until
          FROM leases e JOIN licenses l ON l.id = e.license_id JOIN policies p ON p.id = l.policy_id
          WHERE e.license_id = ${licenseId} AND e.status = 'live' AND ${after} AND ${seatIsLive(sql, nowMillis)}
          ORDER BY e.checked_out_at DESC, e.id DESC LIMIT ${limit + 1}`)
        const items = rows.slice(0, limit).map((row) => withoutNulls<Lease>(row))
        const last = items.at(-1)
        return rows.length > limit && last !== undefined
          ? { items, next: { sort: newestFirst, value: String(last.checked_out_at), id: last.id } }
          : { items }
      })

      return Leases.of({ list })
    })
  )
}
