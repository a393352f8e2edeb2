/**
 * Rows of the ledger in PostgreSQL's binary form of records: a field is its type, its length and its bytes. What is copied from
 * there into a file needs no text and no object to be made of it.
 */
import type { SqlClient, Statement } from "effect/sql"
import type { ByteText } from "./ByteText.ts"

/** What is read of a row, in this order. What hangs on its license and feature is looked up apart, once for many rows. */
const fields = {
  sequence: "u.sequence",
  occurred_at: "u.occurred_at",
  amount: "u.amount",
  balance_before: "u.balance_after - CASE WHEN u.action IN ('consume', 'reset') THEN u.amount ELSE 0 END",
  balance_after: "u.balance_after",
  max_after: "u.max_after",
  action: "u.action",
  event_id: "u.event_id",
  license_id: "u.license_id",
  feature_id: "u.feature_id",
  device_id: "u.device_id",
  actor_type: "u.actor_type",
  actor_id: "u.actor_id",
  request_id: "u.request_id"
} as const

export type Name = keyof typeof fields

const names = Object.keys(fields) as ReadonlyArray<Name>

/** Where each field is in a record. */
export const place = Object.fromEntries(names.map((name, index) => [name, index])) as { readonly [K in Name]: number }

/** Rows as they arrive: the records of some of them, one behind the other, in the binary form of a record of one field. */
export interface LedgerGroup {
  readonly records: Uint8Array
  readonly rows: number
  /** The sequence number of its last row. */
  readonly last: number
}

/** Rows of a group: 15 kB, which lie in one buffer of the driver's. An object for each row would be twice as many bytes as the row. */
const groupRows = 50

/** Reads what `from` and all that follows it selects, groups of rows in the order of their sequence numbers. */
export const ledgerGroups = (sql: SqlClient.SqlClient, from: Statement.Fragment, rows = groupRows) =>
  sql<LedgerGroup>`
    SELECT ROW(string_agg(record_send(record), ''::bytea ORDER BY sequence)) AS records, count(*)::int4 AS rows,
      max(sequence) AS last
    FROM (
      SELECT record, record.sequence, (row_number() OVER (ORDER BY record.sequence) - 1) / ${sql.literal(String(rows))} AS part
      FROM (SELECT ${sql.literal(columns)} ${from}) AS record
    ) AS numbered GROUP BY part ORDER BY part`

const columns = Object.entries(fields)
  .map(([name, expression]) => `${expression} AS ${name}`)
  .join(", ")

/** What a record of one field has before its bytes: how many fields there are, their type, their length. */
const groupHead = 12

/** Copies the records behind one another: what the driver has read can be collected, and the copy's room be used again. */
export const copyRecords = (groups: ReadonlyArray<LedgerGroup>, to: ByteText): void => {
  to.reserve(groups.reduce((sum, { records }) => sum + records.length, 0))
  for (const { records } of groups) to.copy(records, groupHead, records.length - groupHead)
}

/** Goes from record to record. */
export class LedgerRecords {
  readonly bytes: Uint8Array
  /** How long the record is that it is at. */
  length = 0
  readonly #starts = new Int32Array(names.length)
  readonly #sizes = new Int32Array(names.length)
  #end = 0

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }

  /** Goes to the next record; false behind the last one. */
  next(): boolean {
    const bytes = this.bytes
    const start = this.#end
    if (start === bytes.length) return false
    if (int32(bytes, start) !== names.length) throw new TypeError("A record of other fields")
    let at = start + 4
    for (let field = 0; field < names.length; field++) {
      // Behind the field's type.
      const size = int32(bytes, at + 4)
      at += 8
      this.#starts[field] = at
      this.#sizes[field] = size
      if (size > 0) at += size
    }
    this.#end = at
    this.length = at - start
    return true
  }

  name(field: number): Name {
    return names[field]!
  }

  start(field: number): number {
    return this.#starts[field]!
  }

  /** The bytes of a field, -1 for NULL. */
  size(field: number): number {
    return this.#sizes[field]!
  }

  text(field: number): string | null {
    const [start, size] = [this.start(field), this.size(field)]
    return size < 0 ? null : Buffer.from(this.bytes.buffer, this.bytes.byteOffset + start, size).toString()
  }

  /** An int64 that JSON can say exactly. */
  integer(field: number): number {
    const value = int64(this.bytes, this.start(field))
    if (!Number.isSafeInteger(value)) throw new RangeError("A whole number beyond 2^53 - 1")
    return value
  }

  /** Milliseconds since the epoch. */
  instant(field: number): number {
    const micros = int64(this.bytes, this.start(field))
    if (Number.isSafeInteger(micros)) return Math.trunc(micros / 1_000) + wireEpochMillis
    const { buffer, byteOffset } = this.bytes
    const exactly = new DataView(buffer, byteOffset + this.start(field)).getBigInt64(0)
    return Number(exactly / 1_000n) + wireEpochMillis
  }
}

// PostgreSQL counts microseconds from 2000-01-01.
const wireEpochMillis = 946_684_800_000

/** A signed big-endian number of four bytes. */
export const int32 = (bytes: Uint8Array, at: number): number =>
  (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!

const int64 = (bytes: Uint8Array, at: number): number => int32(bytes, at) * 4_294_967_296 + (int32(bytes, at + 4) >>> 0)
