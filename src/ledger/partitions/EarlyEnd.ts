/**
 * Ends the present partition early, the one that the next numbers come into. It has the size of its time: with a retention that was
 * switched on or shortened since, or with fewer events than before, it would last for years, and its rows with it.
 */
import { Effect } from "effect"
import { dropPlan, endAt, type Limits, type Parent, plannedEnd, type Unended, validate } from "./PartitionEnd.ts"
import type { PartitionSession } from "./PartitionSession.ts"

/** A partition that is not longer than so many new ones would be is left as it is. */
const lengthsMax = 2

interface Present extends Unended {
  readonly end: number | undefined
}

const presentPartition = (session: PartitionSession, { last, name }: Parent) =>
  Effect.map(
    session.values(`
      SELECT name, first_sequence, ${last}, planned_end, end_sequence FROM sequence_partitions, event_sequence
      WHERE parent = '${name}' AND detached_at IS NULL AND first_sequence <= ${last} + 1
      ORDER BY first_sequence DESC LIMIT 1`),
    ([row]): Present => {
      const [name, first, last, planned, end] = row as [string, number, number, number | null, number | null]
      return { name, first, last, planned: planned ?? undefined, end: end ?? undefined }
    }
  )

/** Ends the present partition at most `size` numbers from now, or a share of the rows that it has, if its end is far beyond that. */
export const endEarly = Effect.fnUntraced(function* (
  session: PartitionSession,
  parent: Parent,
  size: number,
  { marginMin, scanMax }: Limits
) {
  const present = yield* presentPartition(session, parent)
  // One without an end gets it anyway.
  if (present.end === undefined) return
  const rows = present.last - present.first + 1
  const length = rows <= scanMax ? size : Math.max(size, Math.min(marginMin, Math.ceil(rows / 8)))
  if (present.end - present.last <= lengthsMax * length) {
    // A plan is left from a retention that is longer again.
    if (present.planned !== undefined) yield* dropPlan(session, present.name)
    return
  }
  const following = yield* session.values(
    `SELECT name FROM sequence_partitions WHERE parent = '${parent.name}' AND first_sequence >= ${present.end}`
  )
  const names = following.map(([name]) => String(name))
  if (rows <= scanMax && present.planned === undefined) {
    return yield* endAt(session, parent, present, present.last + 1 + length, names)
  }
  const end = yield* plannedEnd(session, present, length)
  if (end === undefined || !(yield* validate(session, parent, present, end, length))) return
  yield* endAt(session, parent, present, end, names)
})
