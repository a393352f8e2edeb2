/** What an update event says of a change: old and new values of the fields that differ, as answers show them. */
import type { Schema } from "effect"
import { canonicalize, type Json } from "../api/CanonicalJson.ts"
import { formatTimestamp } from "../api/Timestamp.ts"

/** Empty when nothing changed. A value that is absent stands as null, an instant as its ISO 8601 text. */
export const changesOf = <A extends object>(
  before: A,
  after: A,
  fields: ReadonlyArray<keyof A & string>
): { readonly [field: string]: { readonly old: Schema.Json; readonly new: Schema.Json } } =>
  Object.fromEntries(
    fields
      .filter((field) => text(before[field]) !== text(after[field]))
      .map((field) => [field, { old: shown(field, before[field]), new: shown(field, after[field]) }])
  )

// The database returns the members of metadata in an order of its own.
const text = (value: unknown): string => canonicalize((value ?? null) as Json)

// Instants are numbers inside; their fields' names tell them from counts.
const instants = /_(?:at|start|end)$/

const shown = (field: string, value: unknown): Schema.Json =>
  (typeof value === "number" && instants.test(field) ? formatTimestamp(value) : (value ?? null)) as Schema.Json
