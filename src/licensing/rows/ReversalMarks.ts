/**
 * Reads which ledger row of a feature decides whether a consumption can be taken back: the rule of `pendingMark`. Rows that wait
 * for their numbers are the newest. What the feature has never counted is looked up by its event id: its row would be sought in the
 * license's whole ledger.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { type Nullable, withoutNulls } from "../../platform/postgres/queries/Sql.ts"
import type { ReversalMark } from "../model/Usage.ts"

export interface ReversalRequest {
  readonly licenseId: string
  readonly productId: string
  /** The feature may be assigned only by an earlier command of the same batch, so its code is resolved by the catalog. */
  readonly featureCode: string
  /** The event id of the consumption. */
  readonly eventId: string
}

export interface FeatureMark {
  readonly featureId: string
  readonly mark: ReversalMark
}

export const readReversalMark = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* ({ licenseId, productId, featureCode, eventId }: ReversalRequest) {
    const feature = sql`FROM features WHERE product_id = ${productId} AND code = ${featureCode}`
    const [row] = yield* sql<Nullable<ReversalMark> & { readonly feature_id: string }>`
      SELECT feature_id, action, amount, event_id FROM (
        SELECT sequence, license_id, feature_id, action, amount, event_id, reverses FROM usage_ledger
        UNION ALL
        SELECT w.sequence, w.license_id, w.feature_id, w.action, w.amount, w.event_id, w.reverses
        FROM event_sequence counter JOIN waiting_entries w ON w.writer >= waiting_since(counter)
      ) AS entry
      WHERE license_id = ${licenseId} AND feature_id = (SELECT id ${feature})
        AND EXISTS (SELECT ${feature} AND hashtextextended(id, 0) =
          (SELECT feature_digest FROM counted_event(${licenseId}, ${eventId})))
        AND (action IN ('reset', 'period_reset')
          OR (action = 'consume' AND event_id = ${eventId}) OR (action = 'reverse' AND reverses = ${eventId}))
      ORDER BY sequence DESC LIMIT 1`
    if (row === undefined) return undefined
    const { feature_id, ...mark } = row
    return { featureId: feature_id, mark: withoutNulls<ReversalMark>(mark) } satisfies FeatureMark
  }, Effect.orDie)
