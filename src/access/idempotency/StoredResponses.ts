/** The table of stored responses. */
import type { SqlClient } from "effect/sql"
import type { StoredResponseRow } from "../../contract/api/StoredResponse.ts"
import { bytes, columns, instant } from "../../platform/postgres/driver/Parameters.ts"

type StoredRow = Pick<StoredResponseRow, "body_hash" | "status" | "body" | "sealed"> & {
  readonly content_type: string | null
}

/** The response stored for a scope, unless it has expired. */
export const findResponse = (sql: SqlClient.SqlClient, scope: Uint8Array, now: number) => sql<StoredRow>`
  SELECT body_hash, status, content_type, body, sealed FROM idempotent_answers
  WHERE scope = ${bytes(scope)} AND (expires_at IS NULL OR expires_at > ${instant(now)})`

/** The additional data that binds a sealed response to its row. */
export const sealedFor = (scope: Uint8Array): string => `idempotent_answers/${Buffer.from(scope).toString("hex")}`

/** Stores responses. A new row replaces an expired one; replacing a row that is still valid is a constraint violation. */
export const insertResponses = (sql: SqlClient.SqlClient, rows: ReadonlyArray<StoredResponseRow>) => sql`
  WITH inserted AS (
    INSERT INTO idempotent_answers (scope, body_hash, status, content_type, body, sealed, expires_at, created_at)
    SELECT * FROM unnest(
      ${columns.bytea(rows.map((row) => row.scope))}, ${columns.bytea(rows.map((row) => row.body_hash))},
      ${columns.int4(rows.map((row) => row.status))}, ${columns.text(rows.map((row) => row.content_type ?? null))},
      ${columns.bytea(rows.map((row) => row.body))}, ${columns.bool(rows.map((row) => row.sealed))},
      ${columns.timestamptz(rows.map((row) => row.expires_at ?? null))}, ${columns.timestamptz(rows.map((row) => row.created_at))})
    ON CONFLICT (scope) DO UPDATE SET body_hash = excluded.body_hash, status = excluded.status,
      content_type = excluded.content_type, body = excluded.body, sealed = excluded.sealed, expires_at = excluded.expires_at,
      created_at = excluded.created_at
    WHERE idempotent_answers.expires_at <= excluded.created_at
    RETURNING scope
  ) SELECT demand(count(*) = ${rows.length}, ${uniqueViolation}, 'a response was stored for this key meanwhile') FROM inserted`

const uniqueViolation = "23505"
