/**
 * The metrics for Prometheus (text format 0.0.4). Counters are updated as events happen; gauges are read at a scrape. The database
 * is queried at most once a second, however many scrapes there are. A slow or unreachable database delays a scrape by two seconds
 * at most, and the other metrics are still exposed.
 */
import { monitorEventLoopDelay } from "node:perf_hooks"
import { Clock, Context, Effect, Layer, Metric, Option, Schema } from "effect"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import { SqlClient } from "effect/sql"
import { Count } from "../../contract/api/Int64.ts"
import { dayMillis, Timestamp } from "../../contract/api/Timestamp.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { LicenseActors } from "../../licensing/engine/LicenseActors.ts"
import { DeviceStatus } from "../../licensing/model/Device.ts"
import { LicenseStatus } from "../../licensing/model/License.ts"
import { endsAfter } from "../../licensing/rows/LicenseRows.ts"
import { instant } from "../../platform/postgres/driver/Parameters.ts"
import { Postgres } from "../../platform/postgres/driver/Postgres.ts"
import { decodeRows } from "../../platform/postgres/queries/Sql.ts"
import * as Metrics from "../../platform/telemetry/Metrics.ts"
import { MetricsExport } from "../../platform/telemetry/TelemetryExports.ts"
import { Workers } from "../../platform/workers/Workers.ts"
import { dayRowsMax } from "../reports/usage/UsageRollup.ts"
import { OpsCounts } from "./Counts.ts"

export class Exposition extends Context.Service<
  Exposition,
  {
    readonly text: Effect.Effect<string>
  }
>()("licensing/insight/ops/MetricsExposition") {
  static readonly layer = Layer.effect(
    Exposition,
    Effect.gen(function* () {
      const context = yield* Effect.context<never>()
      // Reading a metric registers it.
      for (const metric of initiallyZero) metric.valueUnsafe(context)
      const updates = [
        yield* processNumbers(context),
        yield* actorNumbers(context),
        yield* counterNumbers(context),
        yield* workerNumbers(context),
        yield* databaseNumbers(context)
      ]
      const refresh = Effect.all(updates, { concurrency: "unbounded", discard: true })
      const exportMetrics = yield* MetricsExport
      if (exportMetrics !== undefined) yield* exportMetrics(refresh)
      return Exposition.of({ text: Effect.map(refresh, () => PrometheusMetrics.formatUnsafe(context)) })
    })
  )
}

type Registry = Context.Context<never>

/** These start at 0: an alert sees no increase in a counter that first appears with its first failure. */
const initiallyZero = [
  Metrics.refusalsDropped,
  Metrics.validationsUncounted,
  Metrics.takenOver(),
  ...["answered", "returned", "late", "lost"].map((outcome) => Metrics.handedOver({ outcome })),
  ...["traces", "metrics", "logs"].map((signal) => Metrics.telemetryFailures({ signal })),
  ...["known", "connected"].map((state) => Metrics.clusterNodes({ state })),
  Metrics.journalGroup,
  Metrics.journalSeconds
]

// The longest wait of a scrape for the database; Prometheus itself waits for ten seconds.
const databaseTimeout = "2 seconds"
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
  // The histogram measures its own timer's period. Only the part above the resolution is a delay.
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

const counterNumbers = Effect.fnUntraced(function* (registry: Registry) {
  const { averageWaitMillis } = yield* EventLog
  return Effect.map(averageWaitMillis, (millis) => Metrics.counterWait.updateUnsafe(millis / 1e3, registry))
})

const workerNumbers = Effect.fnUntraced(function* (registry: Registry) {
  const workers = yield* Effect.serviceOption(Workers)
  const { statuses } = Option.getOrElse(workers, () => ({ statuses: Effect.succeed([]) }))
  return Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    for (const status of yield* statuses) {
      const { dead, deaths, failures, name, passes, started_at, last_success_at = started_at } = status
      const worker = { worker: name }
      // The worker has its own counters; the metric only reads them.
      Metric.registerUnsafe(Metrics.workerPasses(worker), registry, readOnly({ count: passes, incremental: true }))
      Metric.registerUnsafe(Metrics.workerDeaths(worker), registry, readOnly({ count: deaths, incremental: true }))
      Metrics.workerUp(worker).updateUnsafe(dead ? 0 : 1, registry)
      Metrics.workerFailures(worker).updateUnsafe(failures, registry)
      Metrics.workerSuccessAge(worker).updateUnsafe((now - last_success_at) / 1e3, registry)
    }
  })
})

const readOnly = <State>(state: State) => ({ get: () => state, update: () => {}, modify: () => {} })

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
    yield* updateQueues(sql, registry)
  })
  const refresh = update.pipe(
    Effect.as(1),
    Effect.timeoutOrElse({ duration: databaseTimeout, orElse: () => Effect.succeed(0) }),
    Effect.catchCause((cause) => Effect.as(Effect.logWarning("The metrics from the database are missing.", cause), 0))
  )
  const cachedRefresh = yield* Effect.cachedWithTTL(refresh, "1 second")
  return Effect.map(cachedRefresh, (up) => {
    Metrics.databaseUp.updateUnsafe(up, registry)
    for (const { name, max, inUse, waiting } of pools) {
      for (const [state, count] of Object.entries({ max, in_use: inUse, waiting })) {
        Metrics.databaseConnections({ pool: name, state }).updateUnsafe(count, registry)
      }
    }
  })
})

/** The oldest due item of a queue is the first entry of an index, or one of few entries. */
const updateQueues = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, registry: Registry) {
  const now = yield* Clock.currentTimeMillis
  const [row] = yield* decodeQueues(sql`
    SELECT
      (SELECT min(oldest.due_at) FROM webhook_endpoints e CROSS JOIN LATERAL (
        SELECT due_at FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND d.status = 'pending'
        ORDER BY due_at, sequence LIMIT 1
      ) AS oldest WHERE e.is_active) AS delivery_due,
      (SELECT min(e.expires_at) FROM leases e WHERE e.status = 'live' AND ${sql.literal(endsAfter)} <= ${instant(now)})
        AS lease_due,
      (SELECT min(greatest(day + interval '24 hours', seen_at)) FROM usage_rollup_days
        WHERE rolled_rows <> ledger_rows AND ledger_rows <= ${dayRowsMax}) AS day_due,
      (SELECT min(requested_at) FROM erasures) AS erasure_due,
      (SELECT count(*) FROM webhook_deliveries WHERE status = 'pending') AS pending,
      (SELECT min(due_at) FROM mails) AS mail_due, (SELECT count(*) FROM mails) AS mails_pending,
      (SELECT min(e.occurred_at) FROM event_sequence counter JOIN waiting_entries e ON e.writer >= waiting_since(counter))
        AS entry_due,
      mail.sent, mail.mails_failed, mail.given_up,
      coalesce(sum(delivered), 0)::bigint AS delivered, coalesce(sum(failed), 0)::bigint AS failed,
      coalesce(sum(exhausted), 0)::bigint AS exhausted
    FROM (
      SELECT coalesce(sum(sent), 0)::bigint AS sent, coalesce(sum(failed), 0)::bigint AS mails_failed,
        coalesce(sum(given_up), 0)::bigint AS given_up
      FROM mail_counts WHERE period > ${instant(now - dayMillis)}
    ) AS mail LEFT JOIN webhook_delivery_counts ON period > ${instant(now - dayMillis)}
    GROUP BY mail.sent, mail.mails_failed, mail.given_up`)
  if (row === undefined) return
  const late = (due: number | undefined) => (due === undefined ? 0 : Math.max(0, now - due) / 1e3)
  Metrics.oldestWaiting({ queue: "webhook-deliveries" }).updateUnsafe(late(row.delivery_due), registry)
  Metrics.oldestWaiting({ queue: "leases" }).updateUnsafe(late(row.lease_due), registry)
  Metrics.oldestWaiting({ queue: "usage-rollup" }).updateUnsafe(late(row.day_due), registry)
  Metrics.oldestWaiting({ queue: "erasures" }).updateUnsafe(late(row.erasure_due), registry)
  Metrics.oldestWaiting({ queue: "mails" }).updateUnsafe(late(row.mail_due), registry)
  Metrics.oldestWaiting({ queue: "event-numbers" }).updateUnsafe(late(row.entry_due), registry)
  Metrics.mailsPending.updateUnsafe(row.mails_pending, registry)
  const mails = { sent: row.sent, failed: row.mails_failed, given_up: row.given_up }
  for (const [result, count] of Object.entries(mails)) Metrics.mails({ result }).updateUnsafe(count, registry)
  Metrics.deliveriesPending.updateUnsafe(row.pending, registry)
  for (const result of ["delivered", "failed", "exhausted"] as const) {
    Metrics.deliveries({ result }).updateUnsafe(row[result], registry)
  }
})

const decodeQueues = decodeRows(
  Schema.Struct({
    delivery_due: Schema.optionalKey(Timestamp),
    entry_due: Schema.optionalKey(Timestamp),
    lease_due: Schema.optionalKey(Timestamp),
    day_due: Schema.optionalKey(Timestamp),
    erasure_due: Schema.optionalKey(Timestamp),
    mail_due: Schema.optionalKey(Timestamp),
    mails_pending: Count,
    sent: Count,
    mails_failed: Count,
    given_up: Count,
    pending: Count,
    delivered: Count,
    failed: Count,
    exhausted: Count
  })
)
