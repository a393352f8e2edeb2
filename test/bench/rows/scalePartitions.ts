/** Splits the still nearly empty tables of events and ledger into many partitions, as very many rows would have filled them. */
import { Effect } from "effect"
import type { Session } from "./scaleRows.ts"

/** Partitions of these numbers of rows, and the open one. */
export const split = Effect.fnUntraced(function* (
  { values }: Session,
  count: number,
  sizes: { readonly events: number; readonly ledger: number }
) {
  // The service's worker does nothing meanwhile.
  yield* values("SELECT pg_advisory_lock(hashtextextended('licensing/partitions', 0))")
  for (const [parent, rows] of [
    ["event_log", sizes.events],
    ["usage_ledger", sizes.ledger]
  ] as const) {
    const size = Math.ceil(rows / count)
    const attached = yield* values(
      `SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = '${parent}'::regclass`
    )
    for (const [name] of attached) {
      yield* values(`ALTER TABLE ${parent} DETACH PARTITION ${name}`)
      if (name !== `${parent}_from_1`) yield* values(`DROP TABLE ${name}`)
    }
    yield* values(`DELETE FROM sequence_partitions WHERE parent = '${parent}'`)
    for (let index = 0; index <= count; index++) {
      const first = index * size + 1
      const name = `${parent}_from_${first}`
      const end = index === count ? undefined : first + size
      if (index > 0) yield* values(`SELECT make_partition('${parent}', '${name}')`)
      const [from, to] = [index === 0 ? "MINVALUE" : first, end ?? "MAXVALUE"]
      yield* values(`ALTER TABLE ${parent} ATTACH PARTITION ${name} FOR VALUES FROM (${from}) TO (${to})`)
      // A partition of the ledger whose first event is not known is searched with the one before it.
      yield* values(`INSERT INTO sequence_partitions (name, parent, first_sequence, end_sequence, first_event)
        VALUES ('${name}', '${parent}', ${first}, ${end ?? "NULL"}, ${parent === "event_log" || index === 0 ? first : "NULL"})`)
    }
  }
})

/** Records the first event of each partition of the ledger, as the worker does. */
export const recordFirstEvents = Effect.fnUntraced(function* ({ values }: Session) {
  const names = yield* values("SELECT name FROM sequence_partitions WHERE first_event IS NULL")
  for (const [name] of names)
    yield* values(`UPDATE sequence_partitions SET first_event =
      (SELECT min(event_sequence) FROM ${name}) WHERE name = '${name}'`)
})
