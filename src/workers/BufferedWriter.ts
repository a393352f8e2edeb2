/**
 * Hands over to the database what a node gathers in memory: batch by batch, each one once. A batch is kept until its commit is known,
 * and carries a number that the database remembers, so that one whose commit was not heard of is not written a second time. At the
 * end of the scope what is left is handed over; what a node that was killed had gathered is lost.
 */
import { Cause, Clock, Effect, Semaphore } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient, type SqlError } from "effect/sql"
import { instant } from "../postgres/Parameters.ts"
import { retryTransaction } from "../postgres/Transactions.ts"
import { sendHeartbeat } from "./Heartbeat.ts"

export interface BufferedWriterOptions<Batch> {
  /** What is gathered, as logs name it. */
  readonly name: string
  /**
   * Takes out what comes next, at most as much as a transaction should write; undefined where nothing is left. `first`: a pass begins,
   * and what gathers from here on is the next pass's.
   */
  readonly take: (first: boolean) => Batch | undefined
  /** Writes a batch within the running transaction. */
  readonly write: (batch: Batch) => Effect.Effect<void, SqlError.SqlError>
}

/** Writers of nodes that were killed are forgotten after a day: no batch is in doubt for so long. */
const rememberedMillis = 86_400_000

/** A pass that hands over everything that is there. Passes follow one another, whoever asks for them. */
export const makeBufferedWriter = Effect.fnUntraced(function* <Batch>({
  name,
  take,
  write
}: BufferedWriterOptions<Batch>) {
  const sql = yield* SqlClient.SqlClient
  const { ulid } = yield* SecureRandom.SecureRandom
  const writer = `${name}/${yield* ulid}`
  const turn = yield* Semaphore.make(1)
  let underway: { readonly batch: Batch; readonly ordinal: number } | undefined
  let taken = 0

  const next = (first: boolean) => {
    const batch = take(first)
    underway = batch === undefined ? undefined : { batch, ordinal: ++taken }
    return underway
  }

  const once = Effect.fnUntraced(function* (batch: Batch, ordinal: number) {
    const now = yield* Clock.currentTimeMillis
    const marked = yield* sql`
      INSERT INTO handovers (writer, batch, written_at) VALUES (${writer}, ${ordinal}, ${instant(now)})
      ON CONFLICT (writer) DO UPDATE SET batch = excluded.batch, written_at = excluded.written_at
      WHERE handovers.batch < excluded.batch
      RETURNING writer`
    if (marked.length > 0) yield* write(batch)
  })

  const hand = ({ batch, ordinal }: { readonly batch: Batch; readonly ordinal: number }) =>
    retryTransaction(sql.withTransaction(once(batch, ordinal)))

  const all = Effect.gen(function* () {
    if (underway !== undefined) yield* hand(underway)
    for (let one = next(true); one !== undefined; one = next(false)) yield* Effect.andThen(hand(one), sendHeartbeat)
  })
  // A stop waits for a batch that is being written: interrupted, it would be in doubt.
  const pass = turn.withPermit(Effect.uninterruptible(all))

  const forget = Effect.gen(function* () {
    if (taken === 0) return
    const now = yield* Clock.currentTimeMillis
    yield* sql`DELETE FROM handovers WHERE writer = ${writer} OR written_at < ${instant(now - rememberedMillis)}`
  })
  yield* Effect.addFinalizer(() =>
    Effect.catchCause(Effect.andThen(pass, forget), (cause) =>
      Effect.logWarning("What was gathered in memory could not be written and is lost.", { name }, Cause.squash(cause))
    )
  )
  return pass
})
