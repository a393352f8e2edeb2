/**
 * The number of erasures of recorded data. It is read before or together with data, and compared when the data is stored. So no
 * export and no response stores data from before an erasure, even if it was read from a replica that lags.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"

interface Mark {
  readonly changes: number
}

/** Must run in the snapshot of the data. */
export const readErasureMark = (sql: SqlClient.SqlClient) =>
  Effect.map(Effect.orDie(sql<Mark>`SELECT changes FROM erasure_progress`), ([row]) => row?.changes ?? 0)

/** Whether there was no erasure since. An erasure waits for the running transaction before it removes exports and responses. */
export const isErasureMark = (sql: SqlClient.SqlClient, changes: number) =>
  Effect.map(sql<Mark>`SELECT changes FROM erasure_progress FOR SHARE`, ([row]) => (row?.changes ?? 0) === changes)
