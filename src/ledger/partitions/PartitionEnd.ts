/**
 * Gives a partition an end, and attaches the next one behind it. Rows that the partition has stay where they are: a constraint, validated
 * while others read and write, proves that they are within its bounds.
 */
import { Effect, Fiber } from "effect"
import { openSession, Postgres } from "../../platform/postgres/driver/Postgres.ts"
import { pauseFor } from "../../platform/postgres/driver/Transactions.ts"
import { isContended } from "../../platform/postgres/queries/Sql.ts"
import { patiently } from "../../platform/workers/PassHeartbeat.ts"
import { inShortLocks, type PartitionSession } from "./PartitionSession.ts"

/** A table that is partitioned by its numbers. */
export interface Parent {
  readonly name: "event_log" | "usage_ledger"
  /** The column of event_sequence with its last number. */
  readonly last: "last" | "ledger_last"
}

export const parents: ReadonlyArray<Parent> = [
  { name: "event_log", last: "last" },
  { name: "usage_ledger", last: "ledger_last" }
]

export const openLimits = {
  /** Rows that are read while all others wait: some ten milliseconds. */
  scanMax: 200_000,
  /** Numbers below the end of a partition that is being validated, at least: the constraint must not stop a writer. */
  marginMin: 262_144
}

export type Limits = typeof openLimits

/** A partition that gets an end. */
export interface Unended {
  readonly name: string
  readonly first: number
  /** The last number of the table. */
  readonly last: number
  readonly planned: number | undefined
}

/** How often the numbers are read while rows are validated. */
const watchMillis = 500

/** Whether the numbers are so near to an end that its constraint must be removed before it stops a writer. */
const isNear = (end: number, last: number, margin: number) => end - last <= margin / 4

/**
 * Reads all rows. Waits for a VACUUM of the partition, and blocks no other statement. If the numbers come near the end meanwhile, it is
 * canceled, and the constraint goes; then it returns false.
 */
export const validate = Effect.fnUntraced(function* (
  session: PartitionSession,
  { last }: Parent,
  { name }: Unended,
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
  yield* values("BEGIN")
  const isValid = yield* values("SELECT set_config('lock_timeout', '0', true)").pipe(
    Effect.andThen(patiently(values(`ALTER TABLE ${name} VALIDATE CONSTRAINT ${name}_end`))),
    Effect.andThen(values("COMMIT")),
    Effect.as(true),
    Effect.tapError(() => values("ROLLBACK")),
    Effect.catchIf(isContended, () => Effect.succeed(false))
  )
  yield* Fiber.interrupt(watching)
  if (!isValid) yield* dropPlan(session, name)
  return isValid
}, Effect.scoped)

const setPlan = ({ values }: PartitionSession, name: string, end: number | null) =>
  values(`UPDATE sequence_partitions SET planned_end = ${end} WHERE name = '${name}'`)

/** Removes the constraint of an end that was planned. Returns false if the table was locked by others. */
export const dropPlan = (session: PartitionSession, name: string) => {
  const drop = session.values(`ALTER TABLE ${name} DROP CONSTRAINT IF EXISTS ${name}_end`)
  return inShortLocks(session, name, Effect.andThen(drop, setPlan(session, name, null)))
}

/** The end below which a constraint keeps the rows; undefined if the table was locked by others. */
export const plannedEnd = Effect.fnUntraced(function* (
  session: PartitionSession,
  { first, last, name, planned }: Unended,
  margin: number
) {
  if (planned !== undefined) {
    if (!isNear(planned, last, margin)) return planned
    // A node has stopped before it came to the end, long ago.
    if (!(yield* dropPlan(session, name))) return undefined
  }
  const end = last + margin
  const from = first === 1 ? "" : `sequence >= ${first} AND `
  const add = session.values(
    `ALTER TABLE ${name} ADD CONSTRAINT ${name}_end CHECK (${from}sequence < ${end}) NOT VALID`
  )
  return (yield* inShortLocks(session, name, Effect.andThen(add, setPlan(session, name, end)))) ? end : undefined
})

/**
 * Ends a partition, and attaches the next one, which is open. Nobody sees the table without them. `following` are those behind it so
 * far, and go: they have no rows.
 */
export const endAt = Effect.fnUntraced(function* (
  session: PartitionSession,
  parent: Parent,
  { first, name }: Unended,
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
