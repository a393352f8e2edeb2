/**
 * Gives a partition an end, and attaches the next one after it. Existing rows stay in place: a constraint, validated
 * while others read and write, proves that they are within the bounds.
 */
import { Effect, Fiber } from "effect"
import { openSession, Postgres } from "../../platform/postgres/driver/Postgres.ts"
import { pauseFor } from "../../platform/postgres/driver/Transactions.ts"
import { unlessContended } from "../../platform/postgres/queries/Sql.ts"
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
  /** The minimum distance to the end of a partition that is being validated, so that its constraint stops no writer. */
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

/** The interval of reading the last number during a validation. */
const watchMillis = 500

/** Whether the constraint of an end must be removed before it stops a writer. */
const isNear = (end: number, last: number, margin: number) => end - last <= margin / 4

/**
 * Validates the constraint by reading all rows. Waits for a VACUUM of the partition, and blocks no other statement. If
 * the numbers come near the end, it is canceled, the constraint is removed, and it returns false.
 */
export const validate = Effect.fnUntraced(function* (
  session: PartitionSession,
  { last }: Parent,
  { name }: Partition,
  end: number,
  margin: number
) {
  const { values } = session
  const watcher = yield* openSession((yield* Postgres).url)
  const [[pid]] = (yield* values("SELECT pg_backend_pid()")) as [[number]]
  const watch = Effect.gen(function* () {
    while (true) {
      const [[number]] = (yield* watcher.values(`SELECT ${last} FROM event_sequence`)) as [[number]]
      if (isNear(end, number, margin)) yield* watcher.values(`SELECT pg_cancel_backend(${pid})`)
      yield* pauseFor(watchMillis)
    }
  })
  const watching = yield* Effect.forkChild(watch)
  const isValid = yield* unlessContended(
    values,
    Effect.andThen(
      values("SELECT set_config('lock_timeout', '0', true)"),
      patiently(values(`ALTER TABLE ${name} VALIDATE CONSTRAINT ${name}_end`))
    )
  )
  yield* Fiber.interrupt(watching)
  if (!isValid) yield* dropPlan(session, name)
  return isValid
}, Effect.scoped)

const setPlan = ({ values }: PartitionSession, name: string, end: number | null) =>
  values(`UPDATE sequence_partitions SET planned_end = ${end} WHERE name = '${name}'`)

/** Removes the constraint of a planned end. Returns false if others have locked the table. */
export const dropPlan = (session: PartitionSession, name: string) => {
  const drop = session.values(`ALTER TABLE ${name} DROP CONSTRAINT IF EXISTS ${name}_end`)
  return inShortLocks(session, name, Effect.andThen(drop, setPlan(session, name, null)))
}

/** The planned end, for which it adds a constraint if needed; undefined if others have locked the table. */
export const plannedEnd = Effect.fnUntraced(function* (
  session: PartitionSession,
  { first, last, name, planned }: Partition,
  margin: number
) {
  if (planned !== undefined) {
    if (!isNear(planned, last, margin)) return planned
    // A node planned this end long ago and stopped before it was used.
    if (!(yield* dropPlan(session, name))) return undefined
  }
  const end = last + margin
  const from = first === 1 ? "" : `sequence >= ${first} AND `
  const add = session.values(
    `ALTER TABLE ${name} ADD CONSTRAINT ${name}_end CHECK (${from}sequence < ${end}) NOT VALID`
  )
  return (yield* inShortLocks(session, name, Effect.andThen(add, setPlan(session, name, end)))) ? end : undefined
})

/** Ends a partition and attaches the next, open one. Drops the `following` partitions, which have no rows. */
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
