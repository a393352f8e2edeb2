/**
 * Gives a partition an end, and attaches the next one after it. Existing rows stay in place: a constraint, validated
 * while others read and write, proves that they are within the bounds. It holds only in sessions that end partitions, so
 * that it refuses no writer while a backup keeps everybody from removing it.
 */
import { Effect } from "effect"
import { unlessContended, violates } from "../../platform/postgres/queries/Sql.ts"
import { patiently } from "../../platform/workers/PassHeartbeat.ts"
import { inShortLocks, type PartitionSession } from "./PartitionSession.ts"

/** A table that is partitioned by sequence numbers. */
export interface Parent {
  readonly name: "event_log" | "usage_ledger"
  /** The column of event_sequence with the table's last number. */
  readonly last: "last" | "ledger_last"
}

export const parents: ReadonlyArray<Parent> = [
  { name: "event_log", last: "last" },
  { name: "usage_ledger", last: "ledger_last" }
]

export const openLimits = {
  /** Rows that are read while all writers wait: some ten milliseconds. */
  scanMax: 200_000,
  /** How far the end of a partition with more rows is ahead, so that they are validated before the numbers reach it. */
  marginMin: 262_144
}

export type Limits = typeof openLimits

interface Partition {
  readonly name: string
  readonly first: number
  /** The last number of the table. */
  readonly last: number
  readonly planned: number | undefined
  readonly end: number | undefined
}

export const findPartition = (session: PartitionSession, { last, name }: Parent, condition: string) =>
  Effect.map(
    session.values(`
      SELECT name, first_sequence, ${last}, planned_end, end_sequence FROM sequence_partitions, event_sequence
      WHERE parent = '${name}' AND ${condition}`),
    ([row]): Partition => {
      const [name, first, last, planned, end] = row as [string, number, number, number | null, number | null]
      return { name, first, last, planned: planned ?? undefined, end: end ?? undefined }
    }
  )

/** Ends a partition that has too many rows to be read under the lock, some numbers ahead. The next pass continues. */
export const endAhead = Effect.fnUntraced(function* (
  session: PartitionSession,
  parent: Parent,
  partition: Partition,
  margin: number,
  following: ReadonlyArray<string> = []
) {
  const end = yield* plannedEnd(session, partition, margin)
  if (end === undefined || !(yield* validate(session, partition))) return
  yield* endAt(session, parent, partition, end, following)
})

/** The planned end, for which it adds a constraint if needed; undefined if others have locked the table. */
const plannedEnd = Effect.fnUntraced(function* (
  session: PartitionSession,
  { first, last, name, planned }: Partition,
  margin: number
) {
  if (planned !== undefined && planned - last > margin / 4) return planned
  const end = last + margin
  const from = first === 1 ? "" : `sequence >= ${first} AND `
  const plan = Effect.gen(function* () {
    yield* dropConstraint(session, name)
    yield* session.values(
      `ALTER TABLE ${name} ADD CONSTRAINT ${name}_end CHECK (${from}sequence < ${end} OR NOT ends_partitions()) NOT VALID`
    )
    yield* setPlan(session, name, end)
  })
  return (yield* inShortLocks(session, name, plan)) ? end : undefined
})

/**
 * Validates the constraint by reading all rows. Waits for a VACUUM of the partition, and blocks no other statement.
 * Returns false if the numbers have reached the end meanwhile.
 */
const validate = ({ values }: PartitionSession, { name }: Partition) =>
  unlessContended(
    values,
    Effect.andThen(
      values("SELECT set_config('lock_timeout', '0', true)"),
      patiently(values(`ALTER TABLE ${name} VALIDATE CONSTRAINT ${name}_end`))
    )
  ).pipe(
    Effect.catchIf(
      (error) => violates(error, `${name}_end`),
      () => Effect.succeed(false)
    )
  )

const setPlan = ({ values }: PartitionSession, name: string, end: number | null) =>
  values(`UPDATE sequence_partitions SET planned_end = ${end} WHERE name = '${name}'`)

const dropConstraint = ({ values }: PartitionSession, name: string) =>
  values(`ALTER TABLE ${name} DROP CONSTRAINT IF EXISTS ${name}_end`)

/** Removes the constraint of a planned end, unless others have locked the table. */
export const dropPlan = (session: PartitionSession, name: string) =>
  inShortLocks(session, name, Effect.andThen(dropConstraint(session, name), setPlan(session, name, null)))

/**
 * Ends a partition and attaches the next, open one. Drops the `following` partitions, which have no rows. Rows that were
 * inserted after a validation are below the end, because the numbers are.
 */
export const endAt = Effect.fnUntraced(function* (
  session: PartitionSession,
  parent: Parent,
  { first, name }: Partition,
  end: number,
  following: ReadonlyArray<string> = []
) {
  const next = `${parent.name}_from_${end}`
  const from = first === 1 ? "MINVALUE" : String(first)
  const statements = [
    `SELECT make_partition('${parent.name}', '${next}')`,
    `LOCK TABLE ONLY ${parent.name} IN ACCESS EXCLUSIVE MODE`,
    `SELECT demand(${parent.last} < ${end}, '40001', 'the numbers have reached the end') FROM event_sequence`,
    ...following.flatMap((each) => [
      `ALTER TABLE ${parent.name} DETACH PARTITION ${each}`,
      `SELECT demand(NOT EXISTS (SELECT FROM ${each}), '40001', 'a partition has got rows')`,
      `DROP TABLE ${each}`,
      `DELETE FROM sequence_partitions WHERE name = '${each}'`
    ]),
    `ALTER TABLE ${parent.name} DETACH PARTITION ${name}`,
    `ALTER TABLE ${parent.name} ATTACH PARTITION ${name} FOR VALUES FROM (${from}) TO (${end})`,
    `ALTER TABLE ${parent.name} ATTACH PARTITION ${next} FOR VALUES FROM (${end}) TO (MAXVALUE)`,
    `ALTER TABLE ${name} DROP CONSTRAINT IF EXISTS ${name}_end`,
    `UPDATE sequence_partitions SET end_sequence = ${end}, planned_end = NULL WHERE name = '${name}'`,
    `INSERT INTO sequence_partitions (name, parent, first_sequence, first_event)
      VALUES ('${next}', '${parent.name}', ${end}, ${parent.name === "event_log" ? end : null})`
  ]
  yield* inShortLocks(
    session,
    name,
    Effect.forEach(statements, (statement) => session.values(statement), { discard: true })
  )
})
