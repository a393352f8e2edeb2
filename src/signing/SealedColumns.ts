/**
 * Every column that holds secrets sealed under the master key. Whoever adds one adds it here, or a rotation of the master key
 * leaves it behind, lost: a test looks for columns of the schema that are missing.
 */

export interface SealedColumn {
  readonly table: string
  readonly column: string
  /** The table's primary key. Values are sealed for the place `<table>/<id>`, an id of bytes in lower-case hex. */
  readonly id: string
  /** The boolean column that tells which rows are sealed, where not all are. */
  readonly where?: string
}

export const sealedColumns: ReadonlyArray<SealedColumn> = [
  { table: "signing_keys", column: "private_key_sealed", id: "kid" },
  { table: "idempotent_answers", column: "body", id: "scope", where: "sealed" },
  { table: "api_keys", column: "token_sealed", id: "id" },
  { table: "webhook_endpoints", column: "secret_sealed", id: "id" },
  { table: "webhook_endpoints", column: "previous_secret_sealed", id: "id" }
]
