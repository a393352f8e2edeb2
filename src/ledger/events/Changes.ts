/** Values and changes in the metadata of events. Instants are ISO 8601 text; an absent value is null. */
import type { Schema } from "effect"
import { canonicalize, type Json } from "../../contract/api/CanonicalJson.ts"
import { formatTimestamp } from "../../contract/api/Timestamp.ts"

type Change = { readonly old: Schema.Json; readonly new: Schema.Json }

/** Old and new values of the fields that differ. */
export const changesOf = <A extends object>(
  before: A,
  after: A,
  fields: ReadonlyArray<keyof A & string>
): { readonly [field: string]: Change } =>
  Object.fromEntries(
    fields
      .filter((field) => text(before[field]) !== text(after[field]))
      .map((field) => [field, { old: recordedValue(field, before[field]), new: recordedValue(field, after[field]) }])
  )

// jsonb changes the order of members, which is not a change of the value.
const text = (value: unknown): string => canonicalize((value ?? null) as Json)

/** Fields whose value is an instant: epoch milliseconds in the domain, text in events. */
const isInstant = (field: string): boolean => /_(at|start|end)$/.test(field)

export const recordedValue = (field: string, value: unknown): Schema.Json =>
  typeof value === "number" && isInstant(field) ? formatTimestamp(value) : ((value ?? null) as Schema.Json)
