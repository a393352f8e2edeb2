/**
 * Keeps the open partition empty. It has no end, so that no insert can ever fail for lack of a partition, and it gets one before
 * the numbers reach it: then the next open partition is attached behind it. If the worker was late, or the table was not
 * partitioned before, the open partition has rows. These stay where they are: a constraint, validated while others read and
 * write, proves that they are below the new end.
 */
import { Effect } from "effect"
import { endAt, type Limits, type Parent, plannedEnd, type Unended, validate } from "./PartitionEnd.ts"
import type { PartitionSession } from "./PartitionSession.ts"

const openPartition = (session: PartitionSession, { last, name }: Parent) =>
  Effect.map(
    session.values(`
      SELECT name, first_sequence, ${last}, planned_end FROM sequence_partitions, event_sequence
      WHERE parent = '${name}' AND end_sequence IS NULL`),
    ([row]): Unended => {
      const [name, first, last, planned] = row as [string, number, number, number | null]
      return { name, first, last, planned: planned ?? undefined }
    }
  )

/** Gives the open partition an end, if the numbers are within half a partition of it. */
export const extend = Effect.fnUntraced(function* (
  session: PartitionSession,
  parent: Parent,
  size: number,
  { marginMin, scanMax }: Limits
) {
  const open = yield* openPartition(session, parent)
  if (open.first - open.last > size / 2) return
  const rows = open.last - open.first + 1
  if (rows <= scanMax) return yield* endAt(session, parent, open, Math.max(open.first, open.last + 1) + size)
  const margin = Math.max(size, Math.ceil(rows / 8), marginMin)
  const end = yield* plannedEnd(session, open, margin)
  if (end === undefined || !(yield* validate(session, parent, open, end, margin))) return
  yield* endAt(session, parent, open, end)
})
