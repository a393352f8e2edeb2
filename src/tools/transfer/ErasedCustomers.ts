/**
 * An import brings nothing of an erased customer back: its licenses come without a name and an address, and without what contains
 * them; its orders, subscriptions and unnamed licenses without metadata, because the customer's name is no longer stored.
 */
import { Context, Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { columns, instant } from "../../platform/postgres/driver/Parameters.ts"
import { type Matches, matcherOf, withoutText } from "../../vendor/customers/erasure/ErasedText.ts"
import type { Fault, Row } from "./Lines.ts"
import { countTypes, type Entry, type LargeParts, type Unit } from "./Units.ts"

/** When the source was made, if it says so: what it has of customers that were erased before is what came later. */
export const SourceTime = Context.Reference<number>("licensing/tools/transfer/SourceTime", { defaultValue: () => 0 })

/** How far the clocks of the node that erased and of the one that made the source may be apart. */
const clockMillis = 60_000

/** The units as they may be written. */
interface Cleaned {
  readonly units: ReadonlyArray<Unit>
  /** Units that link to a customer whose erasure is not finished. */
  readonly faults: ReadonlyArray<Fault>
  /** The units without what was erased, and which customer it was. */
  readonly erased: ReadonlyMap<Unit, Fault>
}

/** Locks the customers that are linked to: an erasure begins before and is seen, or waits and finds what is written. */
export const withoutErased = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, units: ReadonlyArray<Unit>) {
  const ids = [...new Set(units.flatMap((unit) => customerOf(unit) ?? []))]
  const none: Cleaned = { units, faults: [], erased: new Map() }
  if (ids.length === 0) return none
  const customers = yield* sql<{ readonly id: string; readonly erasing: boolean; readonly erased: boolean }>`
    SELECT id, erasing, coalesce(erased_at > ${instant((yield* SourceTime) - clockMillis)}, FALSE) AS erased
    FROM customers WHERE id = ANY(${columns.text(ids)})
    ORDER BY id FOR KEY SHARE`
  const states = new Map(customers.flatMap((row) => (row.erasing || row.erased ? [[row.id, row] as const] : [])))
  if (states.size === 0) return none
  const faults: Array<Fault> = []
  const erased = new Map<Unit, Fault>()
  const cleaned = units.map((unit) => {
    const id = customerOf(unit)
    const state = id === undefined ? undefined : states.get(id)
    if (state === undefined) return unit
    if (state.erasing) {
      faults.push(lineOf(unit, `The customer ${id} is being erased: import again when that is done.`))
      return unit
    }
    const clean = cleanedUnit(unit)
    if (clean !== unit) erased.set(clean, lineOf(unit, `The customer ${id} was erased: its data is left out.`))
    return clean
  })
  return { units: cleaned, faults, erased } satisfies Cleaned
})

const linked = new Set(["license", "order", "subscription"])

const customerOf = ({ root: { row, table } }: Unit): string | undefined => {
  const { customer_id } = row
  return linked.has(table.type) && typeof customer_id === "string" ? customer_id : undefined
}

const lineOf = ({ root: { line, source } }: Unit, message: string): Fault => ({
  line,
  message: source === undefined ? message : `${source}: ${message}`
})

/** The same unit if it has nothing to leave out. */
const cleanedUnit = (unit: Unit): Unit => {
  const { parts, root } = unit
  const { row } = root
  if (root.table.type !== "license")
    return isEmpty(row) ? unit : { ...unit, root: { ...root, row: { ...row, metadata: {} } } }
  const { customer_email, customer_name, ...rest } = row
  const isNamed = typeof customer_name === "string" && customer_name.trim() !== ""
  const copies = [customer_email, customer_name].filter((text) => typeof text === "string")
  const matches: Matches = isNamed ? matcherOf(copies) : () => true
  const metadata = withoutText((row["metadata"] ?? {}) as never, matches)
  const isKept = ({ row: { enum_value, string_value } }: Entry) => {
    const text = string_value ?? enum_value
    return typeof text !== "string" || !matches(text)
  }
  const kept = parts.filter(isKept)
  const isSame =
    JSON.stringify(metadata) === JSON.stringify(row["metadata"] ?? {}) &&
    kept.length === parts.length &&
    unit.large?.counts.has("license_custom_field_value") !== true
  return isSame && customer_email === undefined && customer_name === undefined
    ? unit
    : {
        ...unit,
        parts: kept,
        root: { ...root, row: { ...rest, metadata } },
        ...(unit.large === undefined ? {} : { large: keptParts(unit.large, isKept) })
      }
}

const keptParts = (large: LargeParts, isKept: (part: Entry) => boolean): LargeParts => {
  const counts = new Map(large.counts)
  return {
    counts,
    inPieces: (use) =>
      Effect.suspend(() => {
        counts.clear()
        return large.inPieces((parts) => {
          const kept = parts.filter(isKept)
          countTypes(counts, kept)
          return kept.length === 0 ? Effect.void : use(kept)
        })
      })
  }
}

const isEmpty = ({ metadata }: Row): boolean => JSON.stringify(metadata ?? {}) === "{}"
