/** The recorded transfers of licenses to and from a customer. */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { columns } from "../../../platform/postgres/driver/Parameters.ts"

/** Reading this many transfers takes about ten milliseconds. */
export const transfersMax = 5_000

export interface Transfer {
  readonly id: string
  readonly sequence: number
  readonly old_owner: string | null
  readonly new_owner: string | null
  readonly terms_before: ReadonlyArray<string | null>
  readonly terms_after: ReadonlyArray<string | null>
}

interface TransferRow extends Omit<Transfer, "id"> {
  readonly id: string | null
  readonly last: number | null
  readonly found: number
}

export const transfersAfter = (sql: SqlClient.SqlClient, customerId: string, after: number) =>
  Effect.map(
    sql<TransferRow>`
      WITH batch AS MATERIALIZED (
        SELECT sequence, resource_id, metadata -> 'changes' AS changes FROM event_log
        WHERE event_type = 'license.transferred' AND sequence > ${after} ORDER BY sequence LIMIT ${transfersMax}
      )
      SELECT (SELECT max(sequence) FROM batch) AS last, (SELECT count(*) FROM batch)::int4 AS found, matching.*
      FROM (VALUES (1)) AS one LEFT JOIN (
        SELECT resource_id AS id, sequence, changes #>> '{customer_id,old}' AS old_owner, changes #>> '{customer_id,new}' AS new_owner,
          jsonb_build_array(changes #> '{customer_name,old}', changes #> '{customer_email,old}') AS terms_before,
          jsonb_build_array(changes #> '{customer_name,new}', changes #> '{customer_email,new}') AS terms_after
        FROM batch WHERE ${customerId} IN (changes #>> '{customer_id,old}', changes #>> '{customer_id,new}')
        ORDER BY sequence
      ) AS matching ON TRUE`,
    (rows) => ({
      found: rows[0]?.found ?? 0,
      last: rows[0]?.last ?? 0,
      transferred: rows.filter((row): row is TransferRow & Transfer => row.id !== null)
    })
  )

/** The licenses without a customer whose owner, name and email have not changed since these transfers. */
export const unchangedSince = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  transfers: ReadonlyArray<Transfer>
) {
  if (transfers.length === 0) return new Set<string>()
  const rows = yield* sql<{ readonly id: string }>`
    SELECT l.id FROM unnest(${columns.text(transfers.map(({ id }) => id))}, ${columns.int8(transfers.map((one) => one.sequence))})
      AS transfer (id, sequence) JOIN licenses l ON l.id = transfer.id
    WHERE l.customer_id IS NULL AND NOT EXISTS (
      SELECT FROM event_log e WHERE e.resource_id = transfer.id AND e.sequence > transfer.sequence
        AND e.event_type IN ('license.updated', 'license.transferred')
        AND e.metadata -> 'changes' ?| ARRAY['customer_id', 'customer_name', 'customer_email'])`
  return new Set(rows.map(({ id }) => id))
})
