/**
 * Removes the files and figures of exports that may contain a customer's data. The export's request and digests stay.
 * An export stored later has read the erased data (`ErasureMark.ts`).
 */
import { Clock, Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { columns, instant } from "../../../platform/postgres/driver/Parameters.ts"
import { beginOf, type Step } from "./ErasureStep.ts"

/** Few exports in one transaction, because their files may be large. */
const exportsMax = 10

const failure = "A customer was erased during the export: create another one."

export const makeExportStep = (sql: SqlClient.SqlClient): Step =>
  Effect.fnUntraced(function* (erasure) {
    const { customer_id, position } = erasure
    if (position === "") {
      yield* sql`UPDATE erasure_progress SET changes = changes + 1`
      return { phase: "exports", position: "marked" }
    }
    const found = yield* sql<{ readonly id: string }>`
      SELECT e.id FROM report_exports e
      WHERE e.report_kind IN ('customer-summary', 'license-audit', 'subscription-settlement') AND e.erased_at IS NULL
        AND (e.filters ->> 'customer_id' = ${customer_id} OR EXISTS (
          SELECT FROM erasure_records r WHERE r.customer_id = ${customer_id}
            AND r.resource_id IN (e.filters ->> 'license_id', e.filters ->> 'order_id', e.filters ->> 'subscription_id')))
      ORDER BY e.id LIMIT ${exportsMax}`
    if (found.length === 0) return beginOf("statistics")
    const now = instant(yield* Clock.currentTimeMillis)
    const ids = columns.text(found.map(({ id }) => id))
    // A node that is making the export sees another number of attempts, and stores nothing.
    yield* sql`
      UPDATE report_exports SET erased_at = ${now}, updated_at = ${now}, leased_until = NULL, attempts = attempts + 1,
        failure = CASE WHEN status IN ('pending', 'processing') THEN ${failure} ELSE failure END,
        status = CASE WHEN status IN ('pending', 'processing') THEN 'failed' ELSE status END
      WHERE id = ANY(${ids})`
    yield* sql`DELETE FROM report_export_chunks WHERE export_id = ANY(${ids})`
    return { phase: "exports", position }
  })
