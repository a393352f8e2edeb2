/** Checks whether the service can handle requests. Nothing is cached; a check takes at most about a second. */
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { type Refusal, refuse } from "../api/Failure.ts"
import { Migrations } from "../postgres/migrations/Migrations.ts"
import { KeyRing } from "../signing/KeyRing.ts"
import { Workers } from "../workers/Workers.ts"
import type { Readiness as Report } from "./Api.ts"
import { Shutdown } from "./Shutdown.ts"

// A database that takes longer for `SELECT 1` serves no request in time.
const timeout = "1 second"

export class Readiness extends Context.Service<
  Readiness,
  {
    /** The report if all checks succeed; otherwise a refusal whose detail lists the failed checks. */
    readonly check: Effect.Effect<Report, Refusal<"NOT_READY">>
  }
>()("licensing/system/Readiness") {
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
      const checks = {
        // A standby, or a database that the operator made read-only, responds and takes no writes.
        database: Effect.map(
          sql<{ readonly writable: boolean }>`SELECT NOT current_setting('transaction_read_only')::bool AS writable`,
          ([row]) => row?.writable === true
        ),
        migrations: Effect.map(migrations.pending, (pending) => pending === 0),
        signing_key: published,
        workers: Effect.map(statuses, (all) => all.every(({ dead }) => !dead)),
        shutdown: Effect.sync(() => !shutdown.underway)
      }

      const check = Effect.gen(function* () {
        const outcomes = yield* Effect.forEach(
          Object.entries(checks),
          ([name, effect]) => Effect.map(succeeds(effect), (ok) => ({ name, ok })),
          {
            concurrency: "unbounded"
          }
        )
        const failed = outcomes.filter(({ ok }) => !ok).map(({ name }) => name)
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

/** Whether a check succeeds with true in time. */
const succeeds = (check: Effect.Effect<boolean, unknown>): Effect.Effect<boolean> =>
  check.pipe(
    Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.succeed(false) }),
    Effect.catchCause(() => Effect.succeed(false))
  )
