/**
 * How deliveries go, told without counting what is over: that is kept ten minutes at a time. What waits is counted endpoint by
 * endpoint, from the index of what waits, up to a bound; so the report costs the same with a million delivered rows as with none.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { instant } from "../postgres/Parameters.ts"
import { present, type Row } from "../postgres/Sql.ts"
import type { WebhookEndpointHealth, WebhookHealth } from "./WebhookHealth.ts"

const dayMillis = 86_400_000
const endpointsMax = 1_000
/** Waiting deliveries of one endpoint that are counted: those that are due first. */
const countedMax = 100_000

/** Milliseconds that a delivery waits before that is worth a look, and before it is an outage. */
const waitsLongMillis = 300_000
const waitsTooLongMillis = 3_600_000

type EndpointRow = Row<Omit<WebhookEndpointHealth, "oldest_pending_age_seconds" | "success_rate_24h">>

export class DeliveryHealth extends Context.Service<
  DeliveryHealth,
  {
    readonly report: Effect.Effect<WebhookHealth>
  }
>()("licensing/webhooks/DeliveryHealth") {
  static readonly layer = Layer.effect(
    DeliveryHealth,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const endpointRows = (now: number) => sql<EndpointRow>`
        SELECT e.id AS webhook_id, name, is_active, disabled_reason, waiting.pending, waiting.retrying, waiting.oldest_pending_at,
          coalesce(past.delivered, 0)::bigint AS delivered_24h, coalesce(past.failed, 0)::bigint AS failed_24h,
          coalesce(past.exhausted, 0)::bigint AS exhausted_24h, last_success_at, last_failure_at,
          last_failure AS last_failure_reason
        FROM (SELECT * FROM webhook_endpoints ORDER BY created_at DESC, id DESC LIMIT ${endpointsMax}) AS e
        CROSS JOIN LATERAL (
          SELECT count(*) AS pending, count(*) FILTER (WHERE attempts > 0) AS retrying, min(created_at) AS oldest_pending_at
          FROM (
            SELECT attempts, created_at FROM webhook_deliveries WHERE endpoint_id = e.id AND status = 'pending'
            ORDER BY due_at, sequence LIMIT ${countedMax}
          ) AS first
        ) AS waiting
        CROSS JOIN LATERAL (
          SELECT sum(delivered) AS delivered, sum(failed) AS failed, sum(exhausted) AS exhausted
          FROM webhook_delivery_counts WHERE endpoint_id = e.id AND period > ${instant(now - dayMillis)}
        ) AS past
        ORDER BY e.created_at DESC, e.id DESC`

      const totals = sql<{ readonly total: number; readonly active: number }>`
        SELECT count(*) AS total, count(*) FILTER (WHERE is_active) AS active FROM webhook_endpoints`

      const report = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const rows = yield* endpointRows(now)
        const [endpoints] = yield* totals
        const { active, total } = endpoints!
        const per_endpoint = rows.map((row): WebhookEndpointHealth => {
          const health = present<WebhookEndpointHealth>(row as Row<WebhookEndpointHealth>)
          return { ...health, ...derived(health, now) }
        })
        return {
          endpoints: { total, active, disabled: total - active },
          ...summarized(per_endpoint, now),
          per_endpoint
        }
      })

      return DeliveryHealth.of({ report: Effect.orDie(Effect.withSpan(report, "DeliveryHealth.report")) })
    })
  )
}

interface Tallies {
  readonly delivered_24h: number
  readonly failed_24h: number
  readonly oldest_pending_at?: number
}

/** What follows from the numbers and the time. */
const derived = ({ delivered_24h, failed_24h, oldest_pending_at }: Tallies, now: number) => {
  const attempts = delivered_24h + failed_24h
  return {
    ...(oldest_pending_at === undefined
      ? undefined
      : { oldest_pending_age_seconds: Math.max(0, Math.floor((now - oldest_pending_at) / 1_000)) }),
    ...(attempts === 0 ? undefined : { success_rate_24h: delivered_24h / attempts })
  }
}

/** The same over all endpoints. What waits for one that is switched off waits for its owner, not for us. */
const summarized = (endpoints: ReadonlyArray<WebhookEndpointHealth>, now: number) => {
  const active = endpoints.filter(({ is_active }) => is_active)
  const sum = (
    of: ReadonlyArray<WebhookEndpointHealth>,
    field: keyof Tallies | "pending" | "retrying" | "exhausted_24h"
  ) => of.reduce((total, endpoint) => total + (endpoint[field] ?? 0), 0)
  const deliveries = {
    pending: sum(active, "pending"),
    retrying: sum(active, "retrying"),
    delivered_24h: sum(endpoints, "delivered_24h"),
    failed_24h: sum(endpoints, "failed_24h"),
    exhausted_24h: sum(endpoints, "exhausted_24h")
  }
  const oldest = extreme(Math.min, active, "oldest_pending_at")
  const waits = { ...(oldest === undefined ? undefined : { oldest_pending_at: oldest }) }
  const rates = derived({ ...deliveries, ...waits }, now)
  const isOff = endpoints.some(({ disabled_reason }) => disabled_reason !== undefined)
  const waitedMillis = oldest === undefined ? 0 : now - oldest
  const degraded = deliveries.retrying + deliveries.exhausted_24h > 0 || isOff || waitedMillis >= waitsLongMillis
  const failing = (rates.success_rate_24h ?? 1) < 0.5 || waitedMillis >= waitsTooLongMillis
  const status = failing ? ("failing" as const) : degraded ? ("degraded" as const) : ("healthy" as const)
  const last_success_at = extreme(Math.max, endpoints, "last_success_at")
  const last_failure_at = extreme(Math.max, endpoints, "last_failure_at")
  return {
    status,
    deliveries,
    ...waits,
    ...rates,
    ...(last_success_at === undefined ? undefined : { last_success_at }),
    ...(last_failure_at === undefined ? undefined : { last_failure_at })
  }
}

const extreme = (
  pick: (...values: ReadonlyArray<number>) => number,
  endpoints: ReadonlyArray<WebhookEndpointHealth>,
  field: "oldest_pending_at" | "last_success_at" | "last_failure_at"
): number | undefined => {
  const values = endpoints.flatMap((endpoint) => endpoint[field] ?? [])
  return values.length === 0 ? undefined : pick(...values)
}
