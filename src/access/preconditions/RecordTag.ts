/** Entity tags (RFC 9110, section 8.8.3), those of records, and their comparison with a caller's tags. */
import { Context, Effect } from "effect"
import { canonicalize, type Json } from "../../contract/api/CanonicalJson.ts"
import { refuse } from "../../contract/api/Failure.ts"
import { sha256 } from "../../platform/signing/Digest.ts"
import { ifMatchPattern } from "./Conditional.ts"

/** Compares a list of tags, or `*` for all tags, with a tag. Weak and strong tags are equal (13.1.2). */
export const matchesEntityTag = (header: string | undefined, tag: string): boolean =>
  header?.trim() === "*" || header?.match(/"[^"]*"/g)?.includes(tag) === true

/** A schema of the fields that a PATCH can change. */
export interface Editable {
  readonly fields: { readonly [name: string]: unknown }
}

/** 128 bits, so that collisions cannot be found. */
const tagBytes = 16

/** The tag of a record's editable fields. Counters, computed values and `updated_at` do not change it. */
export const recordTag = ({ fields }: Editable, record: object): string => {
  const values = record as { readonly [name: string]: Json | undefined }
  const state = Object.fromEntries(Object.keys(fields).map((name) => [name, values[name] ?? null]))
  return `"${Buffer.from(sha256(canonicalize(state)).subarray(0, tagBytes)).toString("base64url")}"`
}

/** The value of If-Match, if the running request has one. */
export const IfMatch = Context.Reference<string | undefined>("licensing/access/preconditions/IfMatch", {
  defaultValue: () => undefined
})

const tags = new RegExp(ifMatchPattern)
export const isIfMatch = (text: string): boolean => tags.test(text)

/**
 * Whether the record is in one of the states that the caller names. Weak tags are accepted: a proxy that compresses responses makes
 * tags weak because the bytes differ, but these tags depend on values only.
 */
export const isUnchanged = (editable: Editable, record: object, ifMatch: string | undefined): boolean =>
  ifMatch === undefined || matchesEntityTag(ifMatch, recordTag(editable, record))

/** The message of a refusal because the record has changed. */
export const changed =
  "The record was changed after it was read with this ETag: read it again, then send your change with its new ETag."

/** Fails if the running request's If-Match names another state of the record, which must be locked. */
export const checkUnchanged = Effect.fnUntraced(function* (editable: Editable, record: object) {
  if (!isUnchanged(editable, record, yield* IfMatch)) return yield* refuse("CONFLICT", changed, "If-Match")
})
