/**
 * Copies the event ids of ledger rows from before the table of event ids existed. Until that is done, an insert into the ledger
 * looks each event id up among these rows, too, and their partition is not detached.
 */
import { Effect } from "effect"
import { makeThrottle } from "../../platform/workers/Exclusive.ts"
import { inShortLocks, type PartitionSession } from "./PartitionSession.ts"

/** Ledger rows in one statement: a fraction of a second. */
const batchMax = 10_000

export const copyEventIds = Effect.fnUntraced(function* (session: PartitionSession) {
  const { values } = session
  const throttle = makeThrottle()
  while (true) {
    const [row] = yield* values("SELECT copied, until FROM event_id_copy")
    if (row === undefined) return
    const [copied, until] = row as [number, number]
    if (copied >= until) return yield* finish(session)
    const end = Math.min(copied + batchMax, until)
    // Rows that were copied already are left out, so the two statements need no transaction.
    yield* throttle(values(`SELECT copy_event_ids(${copied}, ${end})`))
    yield* values(`UPDATE event_id_copy SET copied = ${end}`)
  }
})

/** From now on all event ids are in one table. */
const finish = (session: PartitionSession) =>
  inShortLocks(
    session,
    "usage_ledger_from_1",
    Effect.forEach(
      [
        `CREATE OR REPLACE VIEW earlier_event_ids AS SELECT NULL::bigint AS sequence, NULL::text AS license_id,
          NULL::text AS event_id, NULL::text AS feature_id, NULL::bigint AS amount WHERE false`,
        "DROP INDEX usage_ledger_from_1_event_id",
        "DELETE FROM event_id_copy"
      ],
      (statement) => session.values(statement),
      { discard: true }
    )
  )
