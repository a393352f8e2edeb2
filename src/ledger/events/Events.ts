/** Reads the event log in pages by sequence number. Only the erasure of a customer changes a page later. */
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { CurrentProducts } from "../../access/CurrentActor.ts"
import { limitDefault, type Page } from "../../contract/api/Paging.ts"
import { decodeRows, equals } from "../../platform/postgres/queries/Sql.ts"
import { removedEvents } from "../partitions/Removed.ts"
import { type AuditActorType, Event } from "./Event.ts"
import { isEventOf } from "./OwnEvents.ts"

export const eventColumns = Object.keys(Event.fields).join(", ")

/** Events in one scan for a token of some products: some milliseconds. */
const scanRows = 800
const scansMax = 10

const decodeEvents = decodeRows(Event)

interface EventFilter {
  readonly limit?: number
  /** Only events with lower sequence numbers. */
  readonly cursor?: number
  readonly event_type?: string
  readonly resource_type?: string
  readonly resource_id?: string
  readonly actor_type?: AuditActorType
}

export class Events extends Context.Service<
  Events,
  {
    /** Newest first. With a token for some products, a page before the last may not be full. */
    list(filter: EventFilter): Effect.Effect<Page<Event, number>>
  }
>()("licensing/ledger/events/Events") {
  static readonly layer = Layer.effect(
    Events,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      /** For the last page: the number up to which events were removed. */
      const removed = Effect.map(removedEvents(sql), (removedTo) => (removedTo === undefined ? {} : { removedTo }))

      /** The newest events below the cursor that match the filter. */
      const newest = (columns: string, { limit = limitDefault, cursor, ...filter }: EventFilter) => sql`
        SELECT ${sql.literal(columns)} FROM events
        WHERE ${cursor === undefined ? sql`TRUE` : sql`sequence < ${cursor}`} AND ${equals(sql, { ...filter })}
        ORDER BY sequence DESC LIMIT ${limit + 1}`

      /**
       * The same, but reads the sequence numbers first, from the index of a column with few values. For whole rows
       * PostgreSQL would scan all events for a value that may occur only in old ones.
       */
      const newestByIndex = (filter: EventFilter) => sql`
        SELECT event.* FROM (${newest("sequence", filter)}) AS numbers CROSS JOIN LATERAL (
          SELECT ${sql.literal(eventColumns)} FROM event_numbered(numbers.sequence) LIMIT 1
        ) AS event
        ORDER BY numbers.sequence DESC`

      /** The rows of a page, and one more row if there is a next page. */
      const select = (query: EventFilter) => {
        const { limit: _, cursor: __, ...filter } = query
        const [column, ...others] = Object.keys(filter)
        const hasFewValues = column !== undefined && column !== "resource_id" && others.length === 0
        return hasFewValues ? newestByIndex(query) : newest(eventColumns, query)
      }

      /** The page for a token of some products. If the scans end before the page is full, the next page continues. */
      const ownPage = Effect.fnUntraced(function* (
        { limit, ...query }: EventFilter & { readonly limit: number },
        products: ReadonlyArray<string>
      ) {
        const items: Array<Event> = []
        let cursor = query.cursor
        for (let scans = 0; scans < scansMax && items.length <= limit; scans++) {
          // The first scan is short: most tokens see most events.
          const width = scans === 0 ? limit + 1 : scanRows
          const scan = { ...query, ...(cursor === undefined ? undefined : { cursor }), limit: width - 1 }
          const rows = yield* sql<{ readonly sequence: number; readonly is_own: boolean }>`
            SELECT event.*, ${isEventOf(sql, "event", products)} AS is_own FROM (${select(scan)}) AS event
            ORDER BY sequence DESC`
          items.push(...(yield* decodeEvents(Effect.succeed(rows.filter(({ is_own }) => is_own)))))
          cursor = rows.length < width ? undefined : rows.at(-1)!.sequence
          if (cursor === undefined) break
        }
        const next = items.length > limit ? items[limit - 1]!.sequence : cursor
        return { items: items.slice(0, limit), ...(next === undefined ? undefined : { next }) }
      })

      const list = Effect.fn("Events.list")(function* ({ limit = limitDefault, cursor, ...given }: EventFilter) {
        const filter = withoutImplied(given)
        if (filter === undefined) return { items: [] }
        const query = { ...filter, limit, ...(cursor === undefined ? undefined : { cursor }) }
        const products = yield* CurrentProducts
        if (products !== undefined) {
          const page = yield* ownPage(query, products)
          return page.next === undefined ? { ...page, ...(yield* removed) } : page
        }
        const rows = yield* decodeEvents(select(query))
        const items = rows.slice(0, limit)
        const last = items.at(-1)
        if (rows.length > limit && last !== undefined) return { items, next: last.sequence }
        return { items, ...(yield* removed) }
      }, Effect.orDie)

      return Events.of({ list })
    })
  )
}

/**
 * A filter without redundant conditions, or undefined if no event can match. Resource and actor of a consumption are
 * always a license. With these conditions the search for consumptions that older versions wrote as events would scan
 * all later events.
 */
const withoutImplied = (filter: Filter): Filter | undefined => {
  if (filter.event_type !== "usage.consumed") return filter
  const { resource_type = "license", actor_type = "license", ...others } = filter
  return resource_type === "license" && actor_type === "license" ? others : undefined
}

type Filter = Omit<EventFilter, "limit" | "cursor">
