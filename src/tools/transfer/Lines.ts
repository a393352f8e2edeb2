/**
 * The lines of an export: JSON objects with a `type`. The first is the header; the last counts the lines and has their digest, so
 * that a file that was cut or changed is refused.
 */
import { Data, Schema } from "effect"

export const format = 1

/** Bytes of the longest line: 16 KiB of metadata and some long names, as JSON. */
export const lineMax = 1_048_576

export const Header = Schema.Struct({
  type: Schema.Literal("export"),
  format: Schema.Number,
  /** The number of the last migration of the database. */
  schema: Schema.Number,
  created_at: Schema.String,
  /** The master key that encrypts the secrets in the export; absent if there are none. */
  master_key_id: Schema.optionalKey(Schema.String),
  /** Whether licenses may have keys that the vendor chose. */
  vendor_keys: Schema.Boolean
})
export type Header = typeof Header.Type

export const End = Schema.Struct({
  type: Schema.Literal("end"),
  lines: Schema.Number,
  /** SHA-256 of all lines before this one, each with its line feed, as hex. */
  sha256: Schema.String
})

/** A row as a line has it, without `type`. */
export type Row = { readonly [column: string]: unknown }

/** What is wrong with a line of a file. Lines count from 1. */
export interface Fault {
  readonly line: number
  readonly message: string
}

/** The command cannot go on; `message` says why and what to do. */
export class TransferRefused extends Data.TaggedError("TransferRefused")<{
  readonly message: string
  readonly faults?: ReadonlyArray<Fault>
}> {}
