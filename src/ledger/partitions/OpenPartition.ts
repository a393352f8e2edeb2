/**
 * Keeps the open partition empty. It has no end, so that no insert fails for lack of a partition. It gets an end before
 * the numbers reach it, and the next open partition is attached after it. If the worker was late, or the table was not
 * partitioned before, the open partition has rows. These stay in place: a constraint proves that they are below the new
 * end.
 */
import { Effect } from "effect"
import { endAhead, endAt, findPartition, type Limits, type Parent } from "./PartitionEnd.ts"
import type { PartitionSession } from "./PartitionSession.ts"

/** Gives the open partition an end if the numbers are within half a partition of it. */
export const extend = Effect.fnUntraced(function* (
  session: PartitionSession,
  parent: Parent,
  size: number,
  { marginMin, scanMax }: Limits
) {
  const open = yield* findPartition(session, parent, "end_sequence IS NULL")
  if (open.first - open.last > size / 2) return
  const rows = open.last - open.first + 1
  if (rows <= scanMax) return yield* endAt(session, parent, open, Math.max(open.first, open.last + 1) + size)
  yield* endAhead(session, parent, open, Math.max(size, Math.ceil(rows / 8), marginMin))
})
