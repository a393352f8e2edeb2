/** What an erasure removes from recorded data: pure functions of JSON and of the erased names and emails. */
import type { Schema } from "effect"

type Json = Schema.Json
type JsonObject = { readonly [name: string]: Json }

export type Matches = (text: string) => boolean

/** Shorter names match only an equal text, because too many words contain them. */
const partLengthMin = 3

const isLetter = /[\p{L}\p{N}]/u

/** Finds a part only at word boundaries: ids contain many short words by chance. */
const hasPart = (text: string, part: string): boolean => {
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + 1)) {
    const before = text.slice(Math.max(0, at - 2), at).at(-1)
    const after = text.charAt(at + part.length)
    if ((before === undefined || !isLetter.test(before)) && !isLetter.test(after)) return true
  }
  return false
}

/** The same for upper and lower case, and for an accent that is a part of its letter or a character of its own. */
const folded = (text: string): string => text.normalize("NFC").toLowerCase()

/** A text matches if it contains one of the terms, in any case. */
export const matcherOf = (terms: Iterable<string>): Matches => {
  const parts = [...new Set(Array.from(terms, (term) => folded(term.trim())))].filter((part) => part !== "")
  return (text) => {
    const lower = folded(text)
    return parts.some((part) => (part.length < partLengthMin ? lower.trim() === part : hasPart(lower, part)))
  }
}

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** A free-form value with null for each text that matches, and without members whose name matches. */
export const withoutText = (value: Json, matches: Matches): Json => {
  if (typeof value === "string") return matches(value) ? null : value
  if (Array.isArray(value)) return value.map((item: Json) => withoutText(item, matches))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) => (matches(name) ? [] : [[name, withoutText(member, matches)]]))
  )
}

/** The members of events and responses whose text a vendor chooses. All others are ids, codes and states. */
const freeMembers = new Set(["metadata", "value", "customer_name", "customer_email", "string_value", "enum_value"])

const withoutFreeText = (value: Json, matches: Matches): Json => {
  if (Array.isArray(value)) return value.map((item: Json) => withoutFreeText(item, matches))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      freeMembers.has(name) ? withoutText(member, matches) : withoutFreeText(member, matches)
    ])
  )
}

export interface RecordedEvent {
  readonly sequence: number
  readonly event_type: string
  readonly resource_id: string
  readonly metadata: JsonObject
}

/** Tells whether the customer owned the license before and after an event. */
export interface Ownership {
  readonly before: boolean
  readonly after: boolean
}

export interface OwnerChange extends Ownership {
  readonly sequence: number
}

/** `changes` are all ownership changes of the license in order; without any, the owner never changed. */
export const ownershipAt = (changes: ReadonlyArray<OwnerChange>, sequence: number, isOwnerNow: boolean): Ownership => {
  const at = changes.findLast((change) => change.sequence <= sequence)
  if (at?.sequence === sequence) return { before: at.before, after: at.after }
  const owned = at?.after ?? changes[0]?.before ?? isOwnerNow
  return { before: owned, after: owned }
}

const ownerFields = new Set(["customer_name", "customer_email"])

/** What may stay in an event of the customer itself. */
const keptMembers = new Set(["request_id", "definition_id", "erased"])

const erasedLeaves = (value: Json): Json => {
  if (Array.isArray(value)) return []
  return isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([name, member]) => [name, erasedLeaves(member)]))
    : null
}

/**
 * The metadata of an event of the customer itself keeps the names of fields and custom fields, but no value. The new and the old
 * value of metadata are null as a whole, because its member names may be personal data too.
 */
export const erasedCustomerEvent = ({ event_type, metadata }: RecordedEvent): JsonObject => ({
  ...Object.fromEntries(
    Object.entries(metadata).map(([name, value]) => {
      if (keptMembers.has(name) || (name === "code" && event_type.startsWith("custom_field_value.")))
        return [name, value]
      if (name === "changes" && isObject(value))
        return [name, Object.fromEntries(Object.keys(value).map((field) => [field, { old: null, new: null }]))]
      return [name, erasedLeaves(value)]
    })
  ),
  erased: true
})

/** The metadata of an event of a license, order or subscription. Returns the same object if nothing is erased. */
export const erasedRecordEvent = (
  { metadata }: RecordedEvent,
  { after, before }: Ownership,
  matches: Matches
): JsonObject => {
  const { changes } = metadata
  const owned = isObject(changes)
    ? {
        ...metadata,
        changes: Object.fromEntries(
          Object.entries(changes).map(([field, change]) => {
            if (!ownerFields.has(field) || !isObject(change)) return [field, change]
            return [
              field,
              { old: before ? null : (change["old"] ?? null), new: after ? null : (change["new"] ?? null) }
            ]
          })
        )
      }
    : metadata
  const erased = withoutFreeText(owned, matches) as JsonObject
  return JSON.stringify(erased) === JSON.stringify(metadata) ? metadata : { ...erased, erased: true }
}

export const erasedResponse = (body: Json, customerId: string, matches: Matches): Json => {
  const visit = (value: Json): Json => {
    if (Array.isArray(value)) return value.map((item: Json) => visit(item))
    if (!isObject(value)) return value
    if (value["id"] === customerId) return erasedCustomer(value)
    const isOwned = value["customer_id"] === customerId
    const isOfCustomer = value["resource_id"] === customerId
    const isErased = (name: string, member: Json) =>
      (isOwned && ownerFields.has(name)) ||
      (isOfCustomer && name.endsWith("_value")) ||
      (freeMembers.has(name) && typeof member === "string" && matches(member))
    return Object.fromEntries(
      Object.entries(value).flatMap(([name, member]) =>
        isErased(name, member) ? [] : [[name, freeMembers.has(name) ? withoutText(member, matches) : visit(member)]]
      )
    )
  }
  return visit(body)
}

const erasedCustomer = ({ email: _, ...customer }: JsonObject): JsonObject => ({ ...customer, name: "", metadata: {} })
