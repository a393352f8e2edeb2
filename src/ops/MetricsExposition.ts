/**
 * The metrics as Prometheus reads them (text format 0.0.4). What is counted as it happens is only written out; what can be
 * looked up is looked up when somebody asks, the database at most once a second however many ask, and never so that a database
 * that is slow or gone keeps the rest from being told.
 */
import { monitorEventLoopDelay } from "node:perf_hooks"
import { Clock, Context, Effect, Layer, Metric, Option } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { SqlClient } from "effect/sql"
import { LicenseActors } from "../licenses/engine/LicenseActors.ts"
import { endsAfter } from "../licenses/engine/LicenseRows.ts"
import { DeviceStatus } from "../licenses/model/Device.ts"
import { LicenseStatus } from "../licenses/model/License.ts"
import { instant } from "../postgres/Parameters.ts"
import { Postgres } from "../postgres/Postgres.ts"
import { dayRowsMax } from "../reports/usage/UsageRollup.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import { Workers } from "../workers/Workers.ts"
import { OpsCounts } from "./Counts.ts"

export class Exposition extends Context.Service<
  Exposition,
  {
    readonly text: Effect.Effect<string>
  }
>()("licensing/ops/MetricsExposition") {
  static readonly layer = Layer.effect(
    Exposition,
    Effect.gen(function* () {
      const context = yield* Effect.context<never>()
      const sets = [
        yield* processNumbers(context),
        yield* actorNumbers(context),
        yield* workerNumbers(context),
        yield* databaseNumbers(context)
      ]
      return Exposition.of({
        text: Effect.map(Effect.all(sets, { concurrency: "unbounded", discard: true }), () =>
          PrometheusMetrics.formatUnsafe(context)
        )
      })
    })
  )
}

type Registry = Context.Context<never>

// The longest that a scrape waits for the database; Prometheus itself waits for ten seconds.
const patience = "2 seconds"
const delayResolutionMillis = 20
const percentiles = { p50: 50, p99: 99, max: 100 }

const processNumbers = Effect.fnUntraced(function* (registry: Registry) {
  const delays = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const histogram = monitorEventLoopDelay({ resolution: delayResolutionMillis })
      histogram.enable()
      return histogram
    }),
    (histogram) => Effect.sync(() => histogram.disable())
  )
  // The histogram measures its own timer's period, of which all but what exceeds the resolution is as it should be.
  const lateSeconds = (percentile: number) =>
    Math.max(0, delays.percentile(percentile) / 1e9 - delayResolutionMillis / 1e3)
  return Effect.sync(() => {
    for (const [stat, percentile] of Object.entries(percentiles)) {
      Metrics.eventLoopDelay({ stat }).updateUnsafe(lateSeconds(percentile) || 0, registry)
    }
    delays.reset()
    const { rss, heapUsed, heapTotal, external } = process.memoryUsage()
    for (const [kind, bytes] of Object.entries({ rss, heap_used: heapUsed, heap_total: heapTotal, external })) {
      Metrics.memory({ kind }).updateUnsafe(bytes, registry)
    }
  })
})

const actorNumbers = Effect.fnUntraced(function* (registry: Registry) {
  const { load } = yield* LicenseActors
  return Effect.map(load, ({ actors, waiting }) => {
    Metrics.licenseActors.updateUnsafe(actors, registry)
    Metrics.licenseCommandsWaiting.updateUnsafe(waiting, registry)
  })
})

const workerNumbers = Effect.fnUntraced(function* (registry: Registry) {
  const workers = yield* Effect.serviceOption(Workers)
  const { standings } = Option.getOrElse(workers, () => ({ standings: Effect.succeed([]) }))
  return Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    for (const standing of yield* standings) {
      const { dead, deaths, failures, name, passes, started_at, last_success_at = started_at } = standing
      const worker = { worker: name }
      // The worker counts for itself; the series only shows it.
      Metric.registerUnsafe(Metrics.workerPasses(worker), registry, shown({ count: passes, incremental: true }))
      Metric.registerUnsafe(Metrics.workerDeaths(worker), registry, shown({ count: deaths, incremental: true }))
      Metrics.workerUp(worker).updateUnsafe(dead ? 0 : 1, registry)
      Metrics.workerFailures(worker).updateUnsafe(failures, registry)
      Metrics.workerSuccessAge(worker).updateUnsafe((now - last_success_at) / 1e3, registry)
    }
  })
})

const shown = <State>(state: State) => ({ get: () => state, update: () => {}, modify: () => {} })

const databaseNumbers = Effect.fnUntraced(function* (registry: Registry) {
  const counts = yield* OpsCounts
  const { pools } = yield* Postgres
  const sql = yield* SqlClient.SqlClient

  const update = Effect.gen(function* () {
    const { rows, leasesLive, eventSequence } = yield* counts.read
    for (const status of LicenseStatus.literals) {
      Metrics.licenses({ status }).updateUnsafe(rows.get(`licenses.${status}`) ?? 0, registry)
    }
    for (const status of DeviceStatus.literals) {
      Metrics.devices({ status }).updateUnsafe(rows.get(`devices.${status}`) ?? 0, registry)
    }
    Metrics.leasesLive.updateUnsafe(leasesLive, registry)
    Metrics.eventSequence.updateUnsafe(eventSequence, registry)
    yield* updateWaiting(sql, registry)
  })
  const lookedUp = update.pipe(
    Effect.as(1),
    Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.succeed(0) }),
    Effect.catchCause((cause) => Effect.as(Effect.logWarning("Metrics lack what the database knows.", cause), 0))
  )
  const refreshed = yield* Effect.cachedWithTTL(lookedUp, "1 second")
  return Effect.map(refreshed, (up) => {
    Metrics.databaseUp.updateUnsafe(up, registry)
    for (const { name, max, inUse, waiting } of pools) {
      for (const [state, count] of Object.entries({ max, in_use: inUse, waiting })) {
        Metrics.databaseConnections({ pool: name, state }).updateUnsafe(count, registry)
      }
    }
  })
})

/** What is due and still there, by its oldest item: the first entry of an index, or one of few entries. */
const updateWaiting = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, registry: Registry) {
  const now = yield* Clock.currentTimeMillis
  const [row] = yield* sql<{
    readonly delivery_due: number | null
    readonly lease_due: number | null
    readonly day_due: number | null
    readonly pending: number
    readonly delivered: number
    readonly failed: number
    readonly exhausted: number
  }>`
    SELECT
      (SELECT min(oldest.due_at) FROM webhook_endpoints e CROSS JOIN LATERAL (
        SELECT due_at FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND d.status = 'pending'
        ORDER BY due_at, sequence LIMIT 1
      ) AS oldest WHERE e.is_active) AS delivery_due,
      (SELECT min(e.expires_at) FROM leases e WHERE e.status = 'live' AND ${sql.literal(endsAfter)} <= ${instant(now)})
        AS lease_due,
      (SELECT min(greatest(day + interval '24 hours', seen_at)) FROM usage_rollup_days
        WHERE rolled_rows <> ledger_rows AND ledger_rows <= ${dayRowsMax}) AS day_due,
      (SELECT count(*) FROM webhook_deliveries WHERE status = 'pending') AS pending,
      coalesce(sum(delivered), 0)::bigint AS delivered, coalesce(sum(failed), 0)::bigint AS failed,
      coalesce(sum(exhausted), 0)::bigint AS exhausted
    FROM webhook_delivery_counts WHERE period > ${instant(now - 86_400_000)}`
  if (row === undefined) return
  const late = (due: number | null) => (due === null ? 0 : Math.max(0, now - due) / 1e3)
  Metrics.oldestWaiting({ queue: "webhook-deliveries" }).updateUnsafe(late(row.delivery_due), registry)
  Metrics.oldestWaiting({ queue: "leases" }).updateUnsafe(late(row.lease_due), registry)
  Metrics.oldestWaiting({ queue: "usage-rollup" }).updateUnsafe(late(row.day_due), registry)
  Metrics.deliveriesPending.updateUnsafe(row.pending, registry)
  for (const result of ["delivered", "failed", "exhausted"] as const) {
    Metrics.deliveries({ result }).updateUnsafe(row[result], registry)
  }
})
