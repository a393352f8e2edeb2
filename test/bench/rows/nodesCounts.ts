/** The database's counts after a load over several nodes, compared with the responses. */
import { Effect } from "effect"
import type { Seat } from "../load/Licenses.ts"
import type { Operation } from "../load/Load.ts"
import type { Session } from "./scaleRows.ts"

export interface Check {
  readonly check: string
  readonly told: number
  readonly found: number
  readonly holds: boolean
}

/** A count over the rows of licenses, and its expected value for a license with the given number of responses. */
interface Count {
  readonly check: string
  readonly sql: string
  readonly told: (operation: Operation, seat: Seat) => number
}

const consumed: Count["told"] = (operation, { counted }) => (operation.endsWith("consume") ? counted : 0)
// One more than the load's: the device that the set-up activated.
const activated: Count["told"] = (operation, { counted }) => (operation === "activate" ? counted + 1 : 1)
// Each seat is taken, receives a heartbeat and is released.
const leased: Count["told"] = (operation, { counted }) => (operation === "lease" ? counted / 3 : 0)

const eventsOf = (type: string) => `SELECT count(*) FROM events e WHERE e.resource_id = l.id AND event_type = '${type}'`

const leasesThat = (status: string) =>
  `SELECT count(*) FROM leases s WHERE s.license_id = l.id AND s.status = '${status}'`

const counts: ReadonlyArray<Count> = [
  { check: "license.total_consumptions", sql: "l.total_consumptions", told: consumed },
  {
    check: "consumptions of the feature",
    sql: "SELECT sum(a.total_consumptions) FROM license_features a WHERE a.license_id = l.id",
    told: consumed
  },
  {
    check: "sum of the ledger",
    sql: "SELECT sum(u.amount) FROM usage_ledger u WHERE u.license_id = l.id",
    told: consumed
  },
  { check: "events usage.consumed", sql: eventsOf("usage.consumed"), told: consumed },
  { check: "license.active_device_count", sql: "l.active_device_count", told: activated },
  {
    check: "active devices",
    sql: "SELECT count(*) FROM devices d WHERE d.license_id = l.id AND d.status = 'active'",
    told: activated
  },
  { check: "events license.activated", sql: eventsOf("license.activated"), told: activated },
  { check: "leases taken", sql: "SELECT count(*) FROM leases s WHERE s.license_id = l.id", told: leased },
  { check: "leases given back", sql: leasesThat("checked_in"), told: leased },
  { check: "live leases", sql: leasesThat("live"), told: () => 0 }
]

const columns = counts.map(({ sql }) => `coalesce((${sql.startsWith("SELECT") ? sql : `SELECT ${sql}`}), 0)::int4`)

/**
 * Compares each license separately; the sums are displayed. Requests whose connection broke may have been counted or
 * not.
 */
export const compareCounts = Effect.fnUntraced(function* (
  { values }: Session,
  operation: Operation,
  seats: ReadonlyArray<Seat>
) {
  const ids = seats.map(({ id }) => `'${id}'`).join(", ")
  const rows = yield* values(`SELECT l.id, ${columns.join(", ")} FROM licenses l WHERE l.id IN (${ids})`)
  const countsById = new Map(rows.map(([id, ...counted]) => [id, counted as ReadonlyArray<number>]))
  return counts.map(({ check, told }, index): Check => {
    const pairs = seats.map((seat) => ({
      told: told(operation, seat),
      found: countsById.get(seat.id)?.[index] ?? Number.NaN,
      unsure: seat.unsure
    }))
    return {
      check,
      told: pairs.reduce((sum, pair) => sum + pair.told, 0),
      found: pairs.reduce((sum, pair) => sum + pair.found, 0),
      holds: pairs.every(({ found: countsById, told, unsure }) => countsById >= told && countsById <= told + unsure)
    }
  })
})

/** Whether both sequences count from 1 to their last number without a gap. */
export const compareSequences = Effect.fnUntraced(function* ({ values }: Session) {
  // One statement, so that all of it is one snapshot.
  const [row] = yield* values(`
    SELECT last::int4, (SELECT count(*) FROM events)::int4, (SELECT max(sequence) FROM events)::int4,
      ledger_last::int4, (SELECT count(*) FROM usage_ledger)::int4,
      (SELECT coalesce(max(sequence), 0) FROM usage_ledger)::int4
    FROM event_sequence`)
  const [last, events, lastEvent, ledgerLast, ledger, lastRow] = row as ReadonlyArray<number>
  const gapless = (check: string, told: number, rows: number, highest: number): Check => ({
    check: `${check}: rows to the last number`,
    told,
    found: rows,
    holds: rows === told && highest === told
  })
  return [gapless("events", last!, events!, lastEvent!), gapless("ledger", ledgerLast!, ledger!, lastRow!)]
})
