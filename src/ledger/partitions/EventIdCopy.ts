/**
 * Copies the event ids of ledger rows that are older than the table of event ids. Until this is done, each insert into
 * the ledger also searches these rows, and their partition is not detached.
 */
import { Effect } from "effect"
import { makeThrottle } from "../../platform/workers/Exclusive.ts"
import { inShortLocks, type PartitionSession } from "./PartitionSession.ts"

/** Ledger rows in one statement, which takes a fraction of a second. */
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
    // Copied rows are skipped, so the two statements need no transaction.
    yield* throttle(values(`SELECT copy_event_ids(${copied}, ${end})`))
    yield* values(`UPDATE event_id_copy SET copied = ${end}`)
  }
})

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
