/** The read half of the event log: pages by sequence number, which is gapless, so a page never has to be read twice. */
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { limitDefault, type Page } from "../api/Paging.ts"
import { equals, present, type Row } from "../postgres/Sql.ts"
import { type AuditActorType, Event } from "./Event.ts"

/** What is shown of an event, as columns of `events`. */
export const eventColumns = Object.keys(Event.fields).join(", ")

interface EventFilter {
  readonly limit?: number
  /** Events with lower sequence numbers are given. */
  readonly cursor?: number
  readonly event_type?: string
  readonly resource_type?: string
  readonly resource_id?: string
  readonly actor_type?: AuditActorType
}

export class Events extends Context.Service<
  Events,
  {
    /** The newest events first. */
    list(filter: EventFilter): Effect.Effect<Page<Event, number>>
  }
>()("licensing/events/Events") {
  static readonly layer = Layer.effect(
    Events,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      /** The newest that pass, below the cursor. */
      const newest = (shown: string, { limit = limitDefault, cursor, ...filter }: EventFilter) => sql<Row<Event>>`
        SELECT ${sql.literal(shown)} FROM events
        WHERE ${cursor === undefined ? sql`TRUE` : sql`sequence < ${cursor}`} AND ${equals(sql, { ...filter })}
        ORDER BY sequence DESC LIMIT ${limit + 1}`

      /**
       * The same by their numbers, which the index of a column of few values holds. To read whole rows the planner likes to walk
       * all events instead, in the hope of a value that may stand in old ones alone.
       */
      const newestOf = (filter: EventFilter) => sql<Row<Event>>`
        SELECT event.* FROM (${newest("sequence", filter)}) AS numbers CROSS JOIN LATERAL (
          SELECT ${sql.literal(eventColumns)} FROM events WHERE events.sequence = numbers.sequence LIMIT 1
        ) AS event
        ORDER BY numbers.sequence DESC`

      const list = Effect.fn("Events.list")(function* (asked: EventFilter) {
        const { limit = limitDefault, cursor, ...filter } = asked
        const told = withoutImplied(filter)
        if (told === undefined) return { items: [] }
        const place = { limit, ...(cursor === undefined ? undefined : { cursor }) }
        const [column, ...others] = Object.keys(told)
        const isCoarse = column !== undefined && column !== "resource_id" && others.length === 0
        const rows = yield* isCoarse ? newestOf({ ...told, ...place }) : newest(eventColumns, { ...told, ...place })
        const items = rows.slice(0, limit).map(present<Event>)
        const last = items.at(-1)
        return rows.length > limit && last !== undefined ? { items, next: last.sequence } : { items }
      }, Effect.orDie)

      return Events.of({ list })
    })
  )
}

/**
 * A filter without what goes without saying, or undefined where nothing can pass it. Every consumption is a license's own; looked
 * for by that, too, those that were written as events of their own once would be found by walking all later events.
 */
const withoutImplied = (filter: Filter): Filter | undefined => {
  if (filter.event_type !== "usage.consumed") return filter
  const { resource_type = "license", actor_type = "license", ...others } = filter
  return resource_type === "license" && actor_type === "license" ? others : undefined
}

type Filter = Omit<EventFilter, "limit" | "cursor">
