/** What the sweeps share: how they take hold of licenses, and in whose name they record what time has done. */
import { Effect } from "effect"
import type { SqlClient, Statement } from "effect/sql"
import type { EventRow, NewEvent } from "../events/EventLog.ts"
import { columns } from "../postgres/Parameters.ts"
import { clockOrigin, recorded } from "./Recording.ts"

/**
 * Locks licenses in the order of their ids, as the Journal does, and gives those that were free: one that somebody holds is in
 * use, and waiting for it would hold up all others. What is read after this is what others have left for good.
 */
export const lockLicenses = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, ids: ReadonlyArray<string>) {
  if (ids.length === 0) return []
  const rows = yield* sql<{ readonly id: string }>`
    SELECT id FROM licenses WHERE id = ANY(${columns.text(ids)}) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED`
  return rows.map(({ id }) => id)
})

/** The ids that a query finds. */
export const idsOf = Effect.fnUntraced(function* (query: Statement.Statement<{ readonly id: string }>) {
  return Array.from(new Set((yield* query).map(({ id }) => id)))
})

export const byClock = (events: ReadonlyArray<NewEvent>, now: number): ReadonlyArray<EventRow> =>
  events.map((event) => recorded(event, clockOrigin, now))
