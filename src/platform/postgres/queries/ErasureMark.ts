/**
 * The number of erasures of recorded data. It is read before or together with what will be stored, and compared when that is stored,
 * so that no export and no response stores what was read before an erasure, not even from a replica that lags.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"

interface Mark {
  readonly changes: number
}

/** In the snapshot of the figures. */
export const readErasureMark = (sql: SqlClient.SqlClient) =>
  Effect.map(Effect.orDie(sql<Mark>`SELECT changes FROM erasure_progress`), ([row]) => row?.changes ?? 0)

/** Whether nothing was erased since. An erasure waits for the running transaction before it removes exports and responses. */
export const isErasureMark = (sql: SqlClient.SqlClient, changes: number) =>
  Effect.map(sql<Mark>`SELECT changes FROM erasure_progress FOR SHARE`, ([row]) => (row?.changes ?? 0) === changes)
