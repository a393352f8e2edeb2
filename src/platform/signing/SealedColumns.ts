/**
 * Every column with secrets that are sealed with the master key. A new such column must be added here: otherwise a rotation of the
 * master key does not re-encrypt it, and its secrets are lost. A test finds columns of the schema that are missing.
 */

export interface SealedColumn {
  readonly table: string
  readonly column: string
  /** The table's primary key. Values are bound to `<table>/<id>`; an id of bytes is written in lower-case hex. */
  readonly id: string
  /** The boolean column that is true for sealed rows; absent if all rows are sealed. */
  readonly where?: string
  /** In a table that may have very many rows: the indexed column by which the newest rows are found. */
  readonly newestBy?: string
}

export const sealedColumns: ReadonlyArray<SealedColumn> = [
  { table: "signing_keys", column: "private_key_sealed", id: "kid" },
  { table: "idempotent_answers", column: "body", id: "scope", where: "sealed", newestBy: "expires_at" },
  { table: "api_keys", column: "token_sealed", id: "id" },
  { table: "webhook_endpoints", column: "secret_sealed", id: "id" },
  { table: "webhook_endpoints", column: "previous_secret_sealed", id: "id" },
  { table: "mails", column: "content_sealed", id: "id" }
]
