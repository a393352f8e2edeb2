/** The statements on queued mails. A node owns a claimed mail until its lease ends. A row goes when its mail was sent. */
import type { SqlClient } from "effect/sql"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import type { MailKind } from "./QueuedMail.ts"

export interface MailRow {
  readonly id: string
  readonly kind: MailKind
  readonly license_id: string | undefined
  readonly recipient_hash: Uint8Array
  readonly content_sealed: Uint8Array
  readonly expires_at: number
  readonly created_at: number
}

/** The additional data that binds a mail's content to its row. */
export const sealedFor = (id: string): string => `mails/${id}`

export const insertMails = (sql: SqlClient.SqlClient, rows: ReadonlyArray<MailRow>) => sql`
  INSERT INTO mails (id, kind, license_id, recipient_hash, content_sealed, due_at, expires_at, created_at)
  SELECT id, kind, license_id, recipient_hash, content_sealed, created_at, expires_at, created_at FROM unnest(
    ${columns.text(rows.map((row) => row.id))}, ${columns.text(rows.map((row) => row.kind))},
    ${columns.text(rows.map((row) => row.license_id ?? null))}, ${columns.bytea(rows.map((row) => row.recipient_hash))},
    ${columns.bytea(rows.map((row) => row.content_sealed))}, ${columns.timestamptz(rows.map((row) => row.expires_at))},
    ${columns.timestamptz(rows.map((row) => row.created_at))}
  ) AS mail (id, kind, license_id, recipient_hash, content_sealed, expires_at, created_at)`

/** The number of waiting mails, counted up to a limit. */
export const countMails = (sql: SqlClient.SqlClient, limit: number) => sql<{ readonly count: number }>`
  SELECT count(*) AS count FROM (SELECT FROM mails LIMIT ${limit}) AS waiting`
