/**
 * Whether vendor keys exist, so that text without the shape of a generated key has to be looked up.
 *
 * What must stay true: a license with a vendor key works on every node as soon as it is issued. A node trusts a read
 * without vendor keys for one second, by the monotonic clock and by the time of day, because the monotonic clock stops
 * while a machine is suspended. Then it looks keys up until the next read. The first vendor key is announced: its row
 * is committed, and the key is issued more than a second later.
 */
import { Clock, Context, Duration, Effect, Layer, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { refuse } from "../../contract/api/Failure.ts"
import { makeBatcher } from "../../platform/postgres/driver/Batcher.ts"

/** Half of the trusted time, so that one late read causes no look-ups. */
const readEvery = "500 millis"
const trustedMillis = 1_000
const trustedNanos = Duration.toNanosUnsafe(Duration.millis(trustedMillis))
/** Longer than the trusted time, with a margin for timers. */
const announcedFor = "1250 millis"
/** Requests that wait for the same announcement. */
const waitingMax = 1_000

export class VendorKeys extends Context.Service<
  VendorKeys,
  {
    /** A plain function, because it runs for each credential that is not a generated key. */
    mayExist(): boolean
    /** Run this before issuing a vendor key, outside the transaction. The first run takes more than a second. */
    readonly announce: Effect.Effect<void>
  }
>()("licensing/licensing/management/VendorKeys") {
  static readonly layer = Layer.effect(
    VendorKeys,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const clock = yield* Clock.Clock
      // Never unset: after a failover that lost the row, look-ups find nothing.
      let exist = false
      let absentUntilNanos = clock.monotonicTimeNanosUnsafe()
      let absentAtMillis = clock.currentTimeMillisUnsafe()

      const row = Effect.map(sql<{ readonly known: boolean }>`SELECT known FROM vendor_key_use`, ([found]) => found)

      const follow = Effect.gen(function* () {
        const [readAt, readAtMillis] = [clock.monotonicTimeNanosUnsafe(), clock.currentTimeMillisUnsafe()]
        if ((yield* row) === undefined) {
          absentUntilNanos = readAt + trustedNanos
          absentAtMillis = readAtMillis
        } else exist = true
      }).pipe(Effect.withSpan("VendorKeys.follow"), Effect.ignore)
      yield* follow
      // Failed reads are not logged: keys are looked up until one succeeds.
      yield* follow.pipe(
        Effect.delay(readEvery),
        Effect.repeat({ schedule: Schedule.forever, until: () => exist }),
        Effect.forkScoped
      )

      const announceOnce = Effect.gen(function* () {
        if ((yield* row)?.known === true) return
        yield* sql`INSERT INTO vendor_key_use (known) VALUES (false) ON CONFLICT DO NOTHING`
        exist = true
        yield* Effect.sleep(announcedFor)
        yield* sql`UPDATE vendor_key_use SET known = true WHERE NOT known`
      })
      // In a separate fiber: the transaction of a request with an Idempotency-Key must not contain the announcement.
      const { request } = yield* makeBatcher({
        name: "vendor_keys.announce",
        concurrency: 1,
        batchMax: waitingMax,
        run: (waiting: ReadonlyArray<undefined>) => Effect.orDie(Effect.as(announceOnce, waiting))
      })

      // A backward step of the time of day causes look-ups until the next read.
      const isTrusted = () =>
        clock.monotonicTimeNanosUnsafe() < absentUntilNanos &&
        Math.abs(clock.currentTimeMillisUnsafe() - absentAtMillis) < trustedMillis

      return VendorKeys.of({
        mayExist: () => exist || !isTrusted(),
        announce: Effect.asVoid(request(undefined))
      })
    })
  )
}

/** Run this within the transaction that writes a vendor key: a failover may have lost its announcement. */
export const requireAnnounced = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const [row] = yield* sql`SELECT FROM vendor_key_use WHERE known`
  if (row === undefined) {
    return yield* refuse("NOT_READY", "The service was just moved to another database server: send the request again.")
  }
})
