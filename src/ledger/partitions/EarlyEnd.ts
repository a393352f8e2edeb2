/**
 * Ends the current partition early if it is too large: after a retention was switched on or shortened, or with fewer
 * events than before, it and its rows could last for years.
 */
import { Effect } from "effect"
import { dropPlan, endAhead, endAt, findPartition, type Limits, type Parent } from "./PartitionEnd.ts"
import type { PartitionSession } from "./PartitionSession.ts"

/** A partition stays unless its rest is longer than this number of new ones. */
const lengthsMax = 2

/** If the end of the current partition is far away, moves it to `size` numbers from now, or to a share of its rows. */
export const endEarly = Effect.fnUntraced(function* (
  session: PartitionSession,
  parent: Parent,
  size: number,
  { marginMin, scanMax }: Limits
) {
  const present = yield* findPartition(
    session,
    parent,
    `detached_at IS NULL AND first_sequence <= ${parent.last} + 1 ORDER BY first_sequence DESC LIMIT 1`
  )
  // `extend` ends a partition without an end.
  if (present.end === undefined) return
  const rows = present.last - present.first + 1
  const length = rows <= scanMax ? size : Math.max(size, Math.min(marginMin, Math.ceil(rows / 8)))
  if (present.end - present.last <= lengthsMax * length) {
    // The retention was extended again after an end was planned.
    if (present.planned !== undefined) yield* dropPlan(session, present.name)
    return
  }
  const following = yield* session.values(
    `SELECT name FROM sequence_partitions WHERE parent = '${parent.name}' AND first_sequence >= ${present.end}`
  )
  const names = following.map(([name]) => String(name))
  if (rows <= scanMax) return yield* endAt(session, parent, present, present.last + 1 + length, names)
  yield* endAhead(session, parent, present, length, names)
})
