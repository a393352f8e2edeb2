/**
 * Keeps the open partition empty. It has no end, so that no insert can ever fail for lack of a partition, and it gets one before
 * the numbers reach it: then the next open partition is attached behind it. If the worker was late, or the table was not
 * partitioned before, the open partition has rows. These stay where they are: a constraint, validated while others read and
 * write, proves that they are below the new end.
 */
import { Effect } from "effect"
import { patiently } from "../../workers/Heartbeat.ts"
import { inShortLocks, type PartitionSession } from "./PartitionSession.ts"

/** A table that is partitioned by its numbers. */
export interface Parent {
  readonly name: "event_log" | "usage_ledger"
  /** The column of event_sequence with its last number. */
  readonly last: "last" | "ledger_last"
}

export const openLimits = {
  /** Rows that are read while all others wait: some ten milliseconds. */
  scanMax: 200_000,
  /** Numbers below the end of a partition that is being validated, at least: the constraint must not stop a writer. */
  marginMin: 262_144
}

interface Open {
  readonly name: string
  readonly first: number
  /** The last number of the table. */
  readonly last: number
  readonly planned: number | undefined
}

const openPartition = (session: PartitionSession, { last, name }: Parent) =>
  Effect.map(
    session.values(`
      SELECT name, first_sequence, ${last}, planned_end FROM sequence_partitions, event_sequence
      WHERE parent = '${name}' AND end_sequence IS NULL`),
    ([row]): Open => {
      const [name, first, last, planned] = row as [string, number, number, number | null]
      return { name, first, last, planned: planned ?? undefined }
    }
  )

/** Gives the open partition an end, if the numbers are within half a partition of it. */
export const extend = Effect.fnUntraced(function* (
  session: PartitionSession,
  parent: Parent,
  size: number,
  { marginMin, scanMax }: typeof openLimits
) {
  const open = yield* openPartition(session, parent)
  if (open.first - open.last > size / 2) return
  const rows = open.last - open.first + 1
  if (rows <= scanMax) return yield* close(session, parent, open, Math.max(open.first, open.last + 1) + size)
  const end = yield* plannedEnd(session, parent, open, Math.max(size, Math.ceil(rows / 8), marginMin))
  if (end === undefined) return
  yield* validate(session, open.name)
  yield* close(session, parent, open, end)
})

/** Reads all rows. Waits for a VACUUM of the partition, and blocks no other statement. */
const validate = Effect.fnUntraced(function* ({ values }: PartitionSession, name: string) {
  yield* values("BEGIN")
  yield* values("SELECT set_config('lock_timeout', '0', true)")
  yield* patiently(values(`ALTER TABLE ${name} VALIDATE CONSTRAINT ${name}_end`))
  yield* values("COMMIT")
})

/** The end below which a constraint keeps the rows; undefined if the table was locked by others. */
const plannedEnd = Effect.fnUntraced(function* (
  session: PartitionSession,
  parent: Parent,
  { last, name, planned }: Open,
  margin: number
) {
  const { values } = session
  const plan = (end: number | null) =>
    values(`UPDATE sequence_partitions SET planned_end = ${end} WHERE parent = '${parent.name}' AND name = '${name}'`)
  if (planned !== undefined) {
    if (planned - last > margin / 4) return planned
    // A node has stopped before it came to the end, long ago.
    const drop = values(`ALTER TABLE ${name} DROP CONSTRAINT ${name}_end`)
    if (!(yield* inShortLocks(session, name, Effect.andThen(drop, plan(null))))) return undefined
  }
  const end = last + margin
  const add = values(`ALTER TABLE ${name} ADD CONSTRAINT ${name}_end CHECK (sequence < ${end}) NOT VALID`)
  return (yield* inShortLocks(session, name, Effect.andThen(add, plan(end)))) ? end : undefined
})

/** Ends the open partition, and attaches the next one. Nobody sees the table without it. */
const close = Effect.fnUntraced(function* (session: PartitionSession, parent: Parent, open: Open, end: number) {
  const { values } = session
  const next = `${parent.name}_from_${end}`
  const from = open.first === 1 ? "MINVALUE" : String(open.first)
  yield* inShortLocks(
    session,
    open.name,
    Effect.forEach(
      [
        `SELECT make_partition('${parent.name}', '${next}')`,
        `LOCK TABLE ONLY ${parent.name} IN ACCESS EXCLUSIVE MODE`,
        `ALTER TABLE ${parent.name} DETACH PARTITION ${open.name}`,
        `ALTER TABLE ${parent.name} ATTACH PARTITION ${open.name} FOR VALUES FROM (${from}) TO (${end})`,
        `ALTER TABLE ${parent.name} ATTACH PARTITION ${next} FOR VALUES FROM (${end}) TO (MAXVALUE)`,
        `ALTER TABLE ${open.name} DROP CONSTRAINT IF EXISTS ${open.name}_end`,
        `UPDATE sequence_partitions SET end_sequence = ${end}, planned_end = NULL WHERE name = '${open.name}'`,
        `INSERT INTO sequence_partitions (name, parent, first_sequence, first_event)
          VALUES ('${next}', '${parent.name}', ${end}, ${parent.name === "event_log" ? end : null})`
      ],
      (statement) => values(statement),
      { discard: true }
    )
  )
})
