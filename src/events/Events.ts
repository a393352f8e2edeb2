/** The read half of the event log: pages by sequence number, which is gapless, so a page never has to be read twice. */
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { limitDefault, type Page } from "../api/Paging.ts"
import { equals, present, type Row } from "../postgres/Sql.ts"
import type { AuditActorType, Event } from "./Event.ts"

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

      const list = Effect.fn("Events.list")(function* ({ limit = limitDefault, cursor, ...filter }: EventFilter) {
        const { event_type, resource_type, resource_id, actor_type } = filter
        const rows = yield* sql<Row<Event>>`
          SELECT sequence, event_type, actor_type, actor_id, resource_type, metadata, created_at, resource_id, ip_address
          FROM events
          WHERE ${cursor === undefined ? sql`TRUE` : sql`sequence < ${cursor}`}
            AND ${equals(sql, { event_type, resource_type, resource_id, actor_type })}
          ORDER BY sequence DESC LIMIT ${limit + 1}`
        const items = rows.slice(0, limit).map(present<Event>)
        const last = items.at(-1)
        return rows.length > limit && last !== undefined ? { items, next: last.sequence } : { items }
      }, Effect.orDie)

      return Events.of({ list })
    })
  )
}
