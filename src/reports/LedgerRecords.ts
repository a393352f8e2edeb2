/**
 * Rows of the ledger in PostgreSQL's binary form of records: a field is its type, its length and its bytes. What is copied from
 * there into a file needs no text and no object to be made of it.
 */
import type { SqlClient } from "effect/sql"

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

/** A row as it arrives. */
export interface LedgerRecord {
  readonly record: Uint8Array
}

export const recordColumns = (sql: SqlClient.SqlClient) =>
  sql.literal(
    Object.entries(fields)
      .map(([name, expression]) => `${expression} AS ${name}`)
      .join(", ")
  )

/** Goes from record to record. */
export class LedgerRecords {
  /** The record that it is at. */
  bytes: Uint8Array = new Uint8Array()
  readonly #records: ReadonlyArray<LedgerRecord>
  readonly #starts = new Int32Array(names.length)
  readonly #sizes = new Int32Array(names.length)
  #next = 0

  constructor(records: ReadonlyArray<LedgerRecord>) {
    this.#records = records
  }

  /** Goes to the next record; false behind the last one. */
  next(): boolean {
    const found = this.#records[this.#next++]
    if (found === undefined) return false
    const bytes = found.record
    this.bytes = bytes
    if (int32(bytes, 0) !== names.length) throw new TypeError("A record of other fields")
    let at = 4
    for (let field = 0; field < names.length; field++) {
      // Behind the field's type.
      const size = int32(bytes, at + 4)
      at += 8
      this.#starts[field] = at
      this.#sizes[field] = size
      if (size > 0) at += size
    }
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
