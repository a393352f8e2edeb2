/**
 * Whether licenses may have vendor keys, so that text without the shape of a generated key has to be looked up. As long as there
 * are none, such text costs no look-up.
 *
 * What must stay true: a license with a vendor key works on every node as soon as it is issued. A node trusts "there are none"
 * for one second from the beginning of the read that said so, by a clock that only measures durations, and by the time of day,
 * because the first one stands still while a machine is suspended; then it looks keys up until the next read. The first vendor key of all is announced: the row is committed, and the key is issued only after every
 * such second has passed.
 */
import { Clock, Context, Duration, Effect, Layer, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { refuse } from "../../contract/api/Failure.ts"
import { makeBatcher } from "../../platform/postgres/driver/Batcher.ts"

/** Half as long as a read is trusted, so that one late read costs no look-up. */
const readEvery = "500 millis"
const trustedMillis = 1_000
const trustedNanos = Duration.toNanosUnsafe(Duration.millis(trustedMillis))
/** Longer than any read is trusted, with a margin for timers. */
const announcedFor = "1250 millis"
/** Requests that wait for the same announcement. */
const waitingMax = 1_000

export class VendorKeys extends Context.Service<
  VendorKeys,
  {
    /** Whether a license may have a vendor key. It runs for each text that is no generated key, so it is a plain function. */
    mayExist(): boolean
    /** To run before a license gets a vendor key, outside of its transaction. Takes more than a second once, nothing later. */
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
      // A read that fails needs no record: keys are looked up until one succeeds.
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
      // In a fiber of its own: the transaction of a request with an Idempotency-Key must not contain the announcement.
      const { request } = yield* makeBatcher({
        name: "vendor_keys.announce",
        concurrency: 1,
        batchMax: waitingMax,
        run: (waiting: ReadonlyArray<undefined>) => Effect.orDie(Effect.as(announceOnce, waiting))
      })

      // A step of the time of day back costs look-ups until the next read.
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

/** Within the transaction that writes a vendor key: its announcement may have been lost in a failover. */
export const requireAnnounced = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const [row] = yield* sql`SELECT FROM vendor_key_use WHERE known`
  if (row === undefined) {
    return yield* refuse("NOT_READY", "The service was just moved to another database server: send the request again.")
  }
})
