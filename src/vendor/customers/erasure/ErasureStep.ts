/**
 * A step of an erasure: one transaction that changes a bounded number of rows and stores where the next step continues. A step
 * that fails is repeated; an erased row stays as it is.
 */
import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { columns } from "../../../platform/postgres/driver/Parameters.ts"

/** In order. The last step of a phase names the next phase. */
export type Phase =
  | "licenses"
  | "transfers"
  | "unlinked licenses"
  | "mails"
  | "orders"
  | "subscriptions"
  | "customer events"
  | "events"
  | "responses"
  | "exports"
  | "statistics"
  | "end"

export interface ErasureRow {
  readonly customer_id: string
  readonly phase: Phase
  readonly position: string
  readonly terms: ReadonlyArray<string>
  readonly actor_type: string
  readonly actor_id: string
  readonly actor_name: string | null
  readonly request_id: string
  readonly ip_address: string | null
  readonly attempts: number
}

export interface Place {
  readonly phase: Phase
  readonly position: string
}

export type Step<R = never> = (erasure: ErasureRow) => Effect.Effect<Place, SqlError.SqlError, R>

export const beginOf = (phase: Phase): Place => ({ phase, position: "" })

/** Positions are JSON, because some have two parts. */
export const positionOf = <A>(erasure: ErasureRow): A | undefined =>
  erasure.position === "" ? undefined : (JSON.parse(erasure.position) as A)

export const placeAt = (phase: Phase, position: unknown): Place => ({ phase, position: JSON.stringify(position) })

/** A record whose events are erased next, with the names and emails that only it has. */
export interface ErasedRecord {
  readonly id: string
  readonly terms: ReadonlyArray<string>
}

export const addRecords = (
  sql: SqlClient.SqlClient,
  { customer_id }: ErasureRow,
  records: ReadonlyArray<ErasedRecord>
) =>
  records.length === 0
    ? Effect.void
    : Effect.asVoid(sql`
        INSERT INTO erasure_records AS r (customer_id, resource_id, terms)
        SELECT ${customer_id}, id, ARRAY(SELECT jsonb_array_elements_text(terms))
        FROM unnest(${columns.text(records.map(({ id }) => id))}, ${columns.jsonb(records.map(({ terms }) => terms))})
          AS record (id, terms)
        ON CONFLICT (customer_id, resource_id) DO UPDATE SET terms = r.terms || excluded.terms`)

export const textsOf = (values: ReadonlyArray<unknown>): ReadonlyArray<string> =>
  values.filter((value): value is string => typeof value === "string" && value !== "")
