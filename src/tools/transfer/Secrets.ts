/**
 * The parts of an import that only one row of a database may have: the active signing key and the first API key. If this database
 * has its own, the imported ones are kept as what they were: a retired key that is still published, and an ordinary API key.
 */
import { Clock, Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { formatTimestamp } from "../../contract/api/Timestamp.ts"
import type { Row } from "./Lines.ts"
import type { Unit } from "./Units.ts"

export const adjustSecrets = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, units: ReadonlyArray<Unit>) {
  if (!units.some(({ root }) => root.table.type === "signing_key" || root.table.type === "api_key")) return units
  const [own] = yield* sql<{ readonly kid: string | null; readonly key: string | null }>`
    SELECT (SELECT kid FROM signing_keys WHERE status = 'active') AS kid,
      (SELECT id FROM api_keys WHERE is_bootstrap) AS key`
  const { key, kid } = own!
  const retired_at = formatTimestamp(yield* Clock.currentTimeMillis)
  const adjusted = (type: string, row: Row): Row => {
    if (type === "signing_key" && kid !== null && row["status"] === "active") {
      return { ...row, status: "retired", retired_at, private_key_sealed: "" }
    }
    if (type !== "api_key" || key === null || row["is_bootstrap"] !== true) return row
    const { token_sealed: _, ...rest } = row
    return { ...rest, is_bootstrap: false }
  }
  return units.map((unit) => ({ ...unit, root: { ...unit.root, row: adjusted(unit.root.table.type, unit.root.row) } }))
})
