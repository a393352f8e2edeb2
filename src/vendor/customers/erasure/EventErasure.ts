/**
 * Removes a customer's data from recorded events. Events keep their numbers, types and times. The index by resource finds
 * them in every partition. Events that the runtime records contain no text of a customer and are skipped.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { columns } from "../../../platform/postgres/driver/Parameters.ts"
import {
  erasedCustomerEvent,
  erasedRecordEvent,
  matcherOf,
  type OwnerChange,
  ownershipAt,
  type RecordedEvent
} from "./ErasedText.ts"
import { beginOf, type ErasureRow, placeAt, positionOf, type Step } from "./ErasureStep.ts"
import { eraseRenewals } from "./ResponseErasure.ts"

/** Limits per transaction. It locks no row that other transactions wait for. */
const eventsMax = 2_000
const recordsMax = 50

const runtimeTypes = [
  "license.activated",
  "license.deactivated",
  "license.offline_issued",
  "license.activation_limit_reached",
  "license.feature_expired",
  "license.expired",
  "license.expiring",
  "license.grace_period_started",
  "usage.consumed",
  "usage.threshold_reached",
  "usage.exhausted"
]

interface Position {
  readonly id: string
  readonly sequence: number
}

interface RecordRow {
  readonly id: string
  readonly terms: ReadonlyArray<string>
}

export const makeEventSteps = (sql: SqlClient.SqlClient) => {
  const customerEvents: Step = Effect.fnUntraced(function* (erasure) {
    const { customer_id } = erasure
    const events = yield* sql<RecordedEvent>`
      SELECT sequence, event_type, resource_id, metadata FROM event_log
      WHERE resource_id = ${customer_id} AND resource_type = 'customer' AND event_type <> 'customer.erased'
        AND sequence > ${positionOf<number>(erasure) ?? 0}
      ORDER BY sequence LIMIT ${eventsMax}`
    yield* writeEvents(
      sql,
      erasure,
      events.map((event) => ({ sequence: event.sequence, metadata: erasedCustomerEvent(event) }))
    )
    return events.length < eventsMax ? beginOf("events") : placeAt("customer events", events.at(-1)!.sequence)
  })

  const recordEvents: Step = Effect.fnUntraced(function* (erasure) {
    const position = positionOf<Position>(erasure) ?? { id: "", sequence: 0 }
    const records = yield* nextRecords(sql, erasure, position)
    if (records.length === 0) return beginOf("responses")
    const events = yield* eventsOf(sql, records, position)
    const erased = yield* erasedEvents(sql, erasure, records, events)
    yield* writeEvents(sql, erasure, erased)
    yield* eraseRenewals(sql, erasure, records)
    const last = events.at(-1)
    return events.length < eventsMax || last === undefined
      ? placeAt("events", { id: records.at(-1)!.id, sequence: Number.MAX_SAFE_INTEGER })
      : placeAt("events", { id: last.resource_id, sequence: last.sequence })
  })

  return { "customer events": customerEvents, events: recordEvents }
}

const nextRecords = (
  sql: SqlClient.SqlClient,
  { customer_id }: ErasureRow,
  { id, sequence }: Position
) => sql<RecordRow>`
  SELECT resource_id AS id, terms FROM erasure_records
  WHERE customer_id = ${customer_id} AND resource_id ${sql.literal(isDone(sequence) ? ">" : ">=")} ${id}
  ORDER BY resource_id LIMIT ${recordsMax}`

const isDone = (sequence: number) => sequence === Number.MAX_SAFE_INTEGER

const eventsOf = (sql: SqlClient.SqlClient, records: ReadonlyArray<RecordRow>, position: Position) =>
  sql<RecordedEvent>`
    SELECT e.* FROM unnest(${columns.text(records.map(({ id }) => id))}) WITH ORDINALITY AS record (id, ordinal)
    CROSS JOIN LATERAL (
      SELECT sequence, event_type, resource_id, metadata FROM event_log
      WHERE resource_id = record.id AND event_type <> ALL(${columns.text(runtimeTypes)})
        AND sequence > CASE WHEN record.id = ${position.id} THEN ${isDone(position.sequence) ? 0 : position.sequence}::int8 ELSE 0 END
      ORDER BY sequence LIMIT ${eventsMax}
    ) AS e
    ORDER BY record.ordinal, e.sequence LIMIT ${eventsMax}`

interface OwnerChangeRow extends OwnerChange {
  readonly id: string
}

const erasedEvents = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { customer_id, terms }: ErasureRow,
  records: ReadonlyArray<RecordRow>,
  events: ReadonlyArray<RecordedEvent>
) {
  const ids = columns.text(records.map(({ id }) => id))
  const changes = yield* sql<OwnerChangeRow>`
    SELECT change.* FROM unnest(${ids}) AS record (id) CROSS JOIN LATERAL (
      SELECT resource_id AS id, sequence, metadata #>> '{changes,customer_id,old}' IS NOT DISTINCT FROM ${customer_id} AS before,
        metadata #>> '{changes,customer_id,new}' IS NOT DISTINCT FROM ${customer_id} AS after
      FROM event_log
      WHERE resource_id = record.id AND event_type = 'license.transferred' AND metadata -> 'changes' ? 'customer_id'
    ) AS change ORDER BY change.sequence`
  const owned = yield* sql<{ readonly id: string }>`
    SELECT id FROM licenses WHERE id = ANY(${ids}) AND customer_id = ${customer_id}`
  const ownedIds = new Set(owned.map(({ id }) => id))
  const changesOf = Map.groupBy(changes, ({ id }) => id)
  const matchers = new Map(records.map((record) => [record.id, matcherOf([...terms, ...record.terms])]))
  return events.flatMap((event) => {
    const { metadata, resource_id, sequence } = event
    const ownership = ownershipAt(changesOf.get(resource_id) ?? [], sequence, ownedIds.has(resource_id))
    const erased = erasedRecordEvent(event, ownership, matchers.get(resource_id)!)
    return erased === metadata ? [] : [{ sequence, metadata: erased }]
  })
})

/** Records the changed partitions, because their statistics contain values of the events. */
const writeEvents = (
  sql: SqlClient.SqlClient,
  { customer_id }: ErasureRow,
  events: ReadonlyArray<Pick<RecordedEvent, "sequence" | "metadata">>
) =>
  events.length === 0
    ? Effect.void
    : Effect.asVoid(sql`
        WITH written AS (
          UPDATE event_log e SET metadata = erased.metadata
          FROM unnest(${columns.int8(events.map(({ sequence }) => sequence))}, ${columns.jsonb(events.map((event) => event.metadata))})
            AS erased (sequence, metadata)
          WHERE e.sequence = erased.sequence RETURNING e.tableoid
        )
        UPDATE erasures SET changed_partitions = ARRAY(
          SELECT unnest(changed_partitions) UNION SELECT tableoid::regclass::text FROM written ORDER BY 1
        ) WHERE customer_id = ${customer_id}`)
