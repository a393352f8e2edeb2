/** Reads which ledger row of a feature decides whether a consumption can be taken back: the rule of `pendingMark`. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { type Nullable, withoutNulls } from "../../platform/postgres/queries/Sql.ts"
import type { ReversalMark } from "../model/Usage.ts"

export const readReversalMark = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* (licenseId: string, featureId: string, eventId: string) {
    const [row] = yield* sql<Nullable<ReversalMark>>`
      SELECT action, amount, event_id FROM usage_ledger
      WHERE license_id = ${licenseId} AND feature_id = ${featureId} AND (action IN ('reset', 'period_reset')
        OR (action = 'consume' AND event_id = ${eventId}) OR (action = 'reverse' AND reverses = ${eventId}))
      ORDER BY sequence DESC LIMIT 1`
    return row && withoutNulls<ReversalMark>(row)
  }, Effect.orDie)
