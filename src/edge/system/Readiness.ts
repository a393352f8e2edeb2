/**
 * Tells whether the service can handle requests. What needs the database is checked at most twice a second, however many probes
 * ask, and a check takes at most about a second; probes that come meanwhile wait for the same check. Shutdown and workers are
 * compared at each probe.
 */
import { Clock, Context, Effect, Fiber, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { type Refusal, refuse } from "../../contract/api/Failure.ts"
import { Migrations } from "../../platform/postgres/migrations/Migrations.ts"
import { KeyRing } from "../../platform/signing/KeyRing.ts"
import { Workers } from "../../platform/workers/Workers.ts"
import type { Readiness as Report } from "./Api.ts"
import { Shutdown } from "./Shutdown.ts"

// A database that takes longer for `SELECT 1` serves no request in time.
const timeout = "1 second"

/** As long as a balancer's interval between probes: a database that is away is reported by the next probe. */
const keptNanos = 500_000_000n

export class Readiness extends Context.Service<
  Readiness,
  {
    /** The report if all checks succeed; otherwise a refusal whose detail lists the failed checks. */
    readonly check: Effect.Effect<Report, Refusal<"NOT_READY">>
  }
>()("licensing/edge/system/Readiness") {
  static readonly layer = Layer.effect(
    Readiness,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const migrations = yield* Migrations
      const keyRing = yield* KeyRing
      const shutdown = yield* Shutdown
      const workers = yield* Effect.serviceOption(Workers)
      const statuses = Option.isSome(workers) ? workers.value.statuses : Effect.succeed([])

      const published = Effect.gen(function* () {
        const { kid } = keyRing.current()
        return (yield* keyRing.published).some((key) => key.kid === kid)
      })
      const stored = yield* shared(
        failedOf({
          // A standby, or a database that the operator made read-only, responds and takes no writes.
          database: Effect.map(
            sql<{ readonly writable: boolean }>`SELECT NOT current_setting('transaction_read_only')::bool AS writable`,
            ([row]) => row?.writable === true
          ),
          migrations: Effect.map(migrations.pending, (pending) => pending === 0),
          signing_key: published
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
          checks: { database: "ok", migrations: "ok", signing_key: "ok", workers: "ok", shutdown: "ok" }
        } as const
      })
      return Readiness.of({ check })
    })
  )
}

/** The names of the checks that fail. */
const failedOf = (checks: { readonly [name: string]: Effect.Effect<boolean, unknown> }) =>
  Effect.map(
    Effect.forEach(Object.entries(checks), ([name, check]) => Effect.map(succeeds(check), (ok) => (ok ? [] : [name])), {
      concurrency: "unbounded"
    }),
    (failed) => failed.flat()
  )

/** Shares the result of an effect for a while. It runs in the layer's scope: a probe that disconnects does not end it. */
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

/** Whether a check succeeds with true in time. */
const succeeds = (check: Effect.Effect<boolean, unknown>): Effect.Effect<boolean> =>
  check.pipe(
    Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.succeed(false) }),
    Effect.catchCause(() => Effect.succeed(false))
  )
