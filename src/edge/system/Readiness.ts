/**
 * Tells whether the service can handle requests. The database is checked at most twice a second, however many probes
 * arrive, and a check takes at most about a second; probes share it. Shutdown and workers are
 * checked at each probe.
 */
import { Clock, Context, Effect, Fiber, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { type Refusal, refuse } from "../../contract/api/Failure.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { Migrations } from "../../platform/postgres/migrations/Migrations.ts"
import { KeyRing } from "../../platform/signing/KeyRing.ts"
import { Workers } from "../../platform/workers/Workers.ts"
import type { Readiness as Report } from "./Api.ts"
import { Shutdown } from "./Shutdown.ts"

// A slower database serves no request in time.
const timeout = "1 second"

/** No longer than a balancer's interval between probes, so that the next probe reports a lost database. */
const keptNanos = 500_000_000n

export class Readiness extends Context.Service<
  Readiness,
  {
    readonly check: Effect.Effect<Report, Refusal<"NOT_READY">>
  }
>()("licensing/edge/system/Readiness") {
  static readonly layer = Layer.effect(
    Readiness,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const migrations = yield* Migrations
      const keyRing = yield* KeyRing
      const eventLog = yield* EventLog
      const shutdown = yield* Shutdown
      const workers = yield* Effect.serviceOption(Workers)
      const statuses = Option.isSome(workers) ? workers.value.statuses : Effect.succeed([])

      const published = Effect.gen(function* () {
        const { kid } = keyRing.current()
        return (yield* keyRing.published).some((key) => key.kid === kid)
      })
      const stored = yield* shared(
        failedOf({
          // A standby or read-only database responds, but takes no writes.
          database: Effect.map(
            sql<{ readonly writable: boolean }>`SELECT NOT current_setting('transaction_read_only')::bool AS writable`,
            ([row]) => row?.writable === true
          ),
          migrations: Effect.map(migrations.pending, (pending) => pending === 0),
          signing_key: published,
          event_counter: Effect.map(eventLog.isCounterHeld, (isHeld) => !isHeld)
        })
      )
      const own = failedOf({
        workers: Effect.map(statuses, (all) => all.every(({ dead }) => !dead)),
        shutdown: Effect.sync(() => !shutdown.underway)
      })

      const check = Effect.gen(function* () {
        const failed = [...(yield* stored), ...(yield* own)]
        if (failed.length > 0)
          return yield* refuse("NOT_READY", "The service is not ready: try again in a moment.", failed.join(", "))
        return {
          status: "ready",
          checks: {
            database: "ok",
            migrations: "ok",
            signing_key: "ok",
            event_counter: "ok",
            workers: "ok",
            shutdown: "ok"
          }
        } as const
      })
      return Readiness.of({ check })
    })
  )
}

const failedOf = (checks: { readonly [name: string]: Effect.Effect<boolean, unknown> }) =>
  Effect.map(
    Effect.forEach(Object.entries(checks), ([name, check]) => Effect.map(succeeds(check), (ok) => (ok ? [] : [name])), {
      concurrency: "unbounded"
    }),
    (failed) => failed.flat()
  )

/** Runs in the layer's scope, so that a probe that disconnects does not interrupt it. */
const shared = Effect.fnUntraced(function* <A>(check: Effect.Effect<A>) {
  const scope = yield* Effect.scope
  let last: { readonly begunNanos: bigint; readonly fiber: Fiber.Fiber<A> } | undefined
  return Effect.gen(function* () {
    const now = yield* Clock.monotonicTimeNanos
    if (last === undefined || (last.fiber.pollUnsafe() !== undefined && now - last.begunNanos >= keptNanos))
      last = { begunNanos: now, fiber: yield* Effect.forkIn(check, scope) }
    return yield* Fiber.join(last.fiber)
  })
})

const succeeds = (check: Effect.Effect<boolean, unknown>): Effect.Effect<boolean> =>
  check.pipe(
    Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.succeed(false) }),
    Effect.catchCause(() => Effect.succeed(false))
  )
