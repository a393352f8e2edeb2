/** The statements that write entries: with their numbers, or without, to wait for them. */
import type { SqlClient, Statement } from "effect/sql"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import { deliveryRows } from "./DeliveryQueue.ts"
import { type Entry, type EventRow, isUsage, type UsageRow } from "./Entry.ts"

/** Entries by table, each with its ordinals. */
interface Ordered {
  readonly events: ReadonlyArray<EventRow>
  readonly usage: ReadonlyArray<UsageRow>
  /** The ordinals among all entries. */
  readonly eventPlaces: ReadonlyArray<number>
  readonly usagePlaces: ReadonlyArray<number>
  /** The ordinals among the events. Ledger rows that are no events have none. */
  readonly eventOrdinals: ReadonlyArray<number>
  readonly usageOrdinals: ReadonlyArray<number | null>
  /** The number of events. */
  readonly count: number
}

const isConsumption = ({ action }: UsageRow): boolean => action === "consume"

const ordered = (entries: ReadonlyArray<Entry>): Ordered => {
  const events: Array<EventRow> = []
  const usage: Array<UsageRow> = []
  const [eventPlaces, usagePlaces]: [Array<number>, Array<number>] = [[], []]
  const eventOrdinals: Array<number> = []
  const usageOrdinals: Array<number | null> = []
  let count = 0
  for (const [place, entry] of entries.entries()) {
    if (!isUsage(entry)) {
      events.push(entry)
      eventPlaces.push(place)
      eventOrdinals.push(++count)
    } else {
      usage.push(entry)
      usagePlaces.push(place)
      usageOrdinals.push(isConsumption(entry) ? ++count : null)
    }
  }
  return { events, usage, eventPlaces, usagePlaces, eventOrdinals, usageOrdinals, count }
}

/** Stores entries without numbers, above all numbers in the order of their transactions. Needs no lock of the counter. */
export const storeWaiting = (sql: SqlClient.SqlClient, entries: ReadonlyArray<Entry>) => {
  const { eventPlaces, events, usage, usagePlaces } = ordered(entries)
  const [isLogged, isUsed] = [events.length > 0, usage.length > 0]
  const place = (places: ReadonlyArray<number>) => sql`counter.base + unnest(${columns.int4(places)})`
  return sql`
    WITH counter AS MATERIALIZED (SELECT nextval('waiting_entries_sequence_seq') AS base)${
      isLogged && isUsed
        ? sql`,
    logged AS (${eventRows(sql, events, waitingEvents, place(eventPlaces))})`
        : sql``
    }
    ${isUsed ? usageRows(sql, usage, waitingUsage, place(usagePlaces)) : eventRows(sql, events, waitingEvents, place(eventPlaces))}`
}

const waitingEvents = { table: "waiting_entries", numbers: "sequence", time: "occurred_at" }
const waitingUsage = { table: "waiting_entries", numbers: "sequence", code: "feature_code", address: "ip_address" }
const numberedEvents = { table: "event_log", numbers: "sequence", time: "created_at" }
const numberedUsage = {
  table: "usage_ledger",
  numbers: "sequence, event_sequence",
  code: "event_feature_code",
  address: "event_ip_address"
}

const eventRows = (
  sql: SqlClient.SqlClient,
  rows: ReadonlyArray<EventRow>,
  { numbers, table, time }: typeof numberedEvents,
  ordinals: Statement.Fragment
) => sql`
  INSERT INTO ${sql.literal(table)}
    (${sql.literal(numbers)}, event_type, actor_type, actor_id, actor_name, resource_type, resource_id, ip_address, metadata, ${sql.literal(time)})
  SELECT ${ordinals},
    unnest(${columns.text(rows.map((row) => row.event_type))}), unnest(${columns.text(rows.map((row) => row.actor_type))}),
    unnest(${columns.text(rows.map((row) => row.actor_id))}),
    unnest(${columns.text(rows.map((row) => row.actor_name ?? null))}), unnest(${columns.text(rows.map((row) => row.resource_type))}),
    unnest(${columns.text(rows.map((row) => row.resource_id))}),
    unnest(${columns.text(rows.map((row) => row.ip_address ?? null))}),
    unnest(${columns.jsonb(rows.map((row) => row.metadata))}),
    unnest(${columns.timestamptz(rows.map((row) => row.created_at))})
  FROM counter`

const usageRows = (
  sql: SqlClient.SqlClient,
  rows: ReadonlyArray<UsageRow>,
  { address, code, numbers, table }: typeof numberedUsage,
  ordinals: Statement.Fragment
) => {
  const extended = rows.some(isExtended)
  return sql`
  INSERT INTO ${sql.literal(table)}
    (${sql.literal(numbers)}, license_id, feature_id, action, event_id, amount, balance_after, max_after, device_id, actor_type, actor_id,
     actor_name, request_id, occurred_at, ${sql.literal(`${code}, ${address}${extended ? ", credits, overage, reverses" : ""}`)})
  SELECT ${ordinals},
    unnest(${columns.text(rows.map((row) => row.license_id))}), unnest(${columns.text(rows.map((row) => row.feature_id))}),
    unnest(${columns.text(rows.map((row) => row.action))}), unnest(${columns.text(rows.map((row) => row.event_id ?? null))}),
    unnest(${columns.int8(rows.map((row) => row.amount))}), unnest(${columns.int8(rows.map((row) => row.balance_after))}),
    unnest(${columns.int8(rows.map((row) => row.max_after ?? null))}),
    unnest(${columns.text(rows.map((row) => row.device_id ?? null))}),
    unnest(${columns.text(rows.map((row) => row.actor_type))}), unnest(${columns.text(rows.map((row) => row.actor_id))}),
    unnest(${columns.text(rows.map((row) => row.actor_name ?? null))}),
    unnest(${columns.text(rows.map((row) => row.request_id))}),
    unnest(${columns.timestamptz(rows.map((row) => row.occurred_at))}),
    unnest(${columns.text(rows.map((row) => row.feature_code ?? null))}),
    unnest(${columns.text(rows.map((row) => row.ip_address ?? null))})${extended ? extensionOf(sql, rows) : sql``}
  FROM counter`
}

/** Columns that few rows have: without them the statement binds three arrays less. */
const extensionOf = (sql: SqlClient.SqlClient, rows: ReadonlyArray<UsageRow>) => sql`,
    unnest(${columns.int8(rows.map((row) => row.credits ?? null))}),
    unnest(${columns.int8(rows.map((row) => row.overage ?? null))}),
    unnest(${columns.text(rows.map((row) => row.reverses ?? null))})`

const isExtended = ({ credits, overage, reverses }: UsageRow): boolean =>
  credits !== undefined || overage !== undefined || reverses !== undefined

/** The numbers that the statement takes from the counter. */
export interface Numbers {
  readonly events: number
  readonly ledger: number
}

/** The common table expressions that write entries with their numbers and queue their deliveries. `counter` locks the counter. */
export const numberedRows = (
  sql: SqlClient.SqlClient,
  entries: ReadonlyArray<Entry>,
  counter: (numbers: Numbers) => Statement.Fragment
) => {
  const { count, eventOrdinals, events, usage, usageOrdinals } = ordered(entries)
  const logged = sql`SELECT sequence, event_type, created_at FROM logged`
  const used = sql`SELECT event_sequence, 'usage.consumed'::text, occurred_at FROM used WHERE event_sequence IS NOT NULL`
  const [isLogged, isUsed] = [events.length > 0, usage.length > 0]
  const eventNumbers = sql`counter.base + unnest(${columns.int4(eventOrdinals)})`
  const usageNumbers = sql`counter.ledger_base + generate_series(1, ${usage.length}), counter.base + unnest(${columns.int4(usageOrdinals)})`
  return sql`
    counter AS (${counter({ events: count, ledger: usage.length })}),
    ${isUsed ? sql`used AS (${usageRows(sql, usage, numberedUsage, usageNumbers)} RETURNING event_sequence, occurred_at),` : sql``}
    ${isLogged ? sql`logged AS (${eventRows(sql, events, numberedEvents, eventNumbers)} RETURNING sequence, event_type, created_at),` : sql``}
    event (sequence, event_type, created_at) AS (${isLogged ? logged : sql``} ${isLogged && isUsed ? sql`UNION ALL` : sql``}
      ${isUsed ? used : sql``}),
    delivery AS (${deliveryRows(sql)})`
}
