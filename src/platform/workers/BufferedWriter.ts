/**
 * Writes a node's in-memory buffer to the database in batches, each exactly once. A batch is retained until its commit is
 * confirmed, and the database stores its number: if the confirmation is lost, the retry detects the commit. At the end of the
 * scope the rest of the buffer is written. A node that is killed loses its buffer.
 */
import { Cause, Clock, Effect, Semaphore } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient, type SqlError } from "effect/sql"
import { instant } from "../postgres/driver/Parameters.ts"
import { retryTransaction } from "../postgres/driver/Transactions.ts"
import { sendHeartbeat } from "./PassHeartbeat.ts"

export interface BufferedWriterOptions<Batch> {
  /** The buffer's name in logs. */
  readonly name: string
  /**
   * Removes the next batch from the buffer, limited to the rows of one transaction; undefined if the buffer is empty. With `first` a
   * pass starts, and entries that arrive later belong to the next pass.
   */
  readonly take: (first: boolean) => Batch | undefined
  /** Writes a batch within the running transaction. */
  readonly write: (batch: Batch) => Effect.Effect<void, SqlError.SqlError>
}

/** The rows of killed nodes are deleted after a day, because no retry takes that long. */
const retentionMillis = 86_400_000

/** A pass that writes the whole buffer. Concurrent passes run one after another. */
export const makeBufferedWriter = Effect.fnUntraced(function* <Batch>({
  name,
  take,
  write
}: BufferedWriterOptions<Batch>) {
  const sql = yield* SqlClient.SqlClient
  const { ulid } = yield* SecureRandom.SecureRandom
  const writer = `${name}/${yield* ulid}`
  const mutex = yield* Semaphore.make(1)
  let pending: { readonly batch: Batch; readonly ordinal: number } | undefined
  let lastOrdinal = 0

  const next = (first: boolean) => {
    const batch = take(first)
    pending = batch === undefined ? undefined : { batch, ordinal: ++lastOrdinal }
    return pending
  }

  const writeOnce = Effect.fnUntraced(function* (batch: Batch, ordinal: number) {
    const now = yield* Clock.currentTimeMillis
    const marker = yield* sql`
      INSERT INTO handovers (writer, batch, written_at) VALUES (${writer}, ${ordinal}, ${instant(now)})
      ON CONFLICT (writer) DO UPDATE SET batch = excluded.batch, written_at = excluded.written_at
      WHERE handovers.batch < excluded.batch
      RETURNING writer`
    if (marker.length > 0) yield* write(batch)
  })

  const commit = ({ batch, ordinal }: { readonly batch: Batch; readonly ordinal: number }) =>
    retryTransaction(sql.withTransaction(writeOnce(batch, ordinal)))

  const writeAll = Effect.gen(function* () {
    if (pending !== undefined) yield* commit(pending)
    for (let one = next(true); one !== undefined; one = next(false)) yield* Effect.andThen(commit(one), sendHeartbeat)
  })
  // A shutdown waits for the running write: after an interruption the outcome of its commit would be unknown.
  const pass = mutex.withPermit(Effect.uninterruptible(writeAll))

  const deleteMarker = Effect.gen(function* () {
    if (lastOrdinal === 0) return
    const now = yield* Clock.currentTimeMillis
    yield* sql`DELETE FROM handovers WHERE writer = ${writer} OR written_at < ${instant(now - retentionMillis)}`
  })
  yield* Effect.addFinalizer(() =>
    Effect.catchCause(Effect.andThen(pass, deleteMarker), (cause) =>
      Effect.logWarning("Buffered rows cannot be written and are lost.", { name }, Cause.squash(cause))
    )
  )
  return pass
})
