/**
 * Reports the health of deliveries. Of finished deliveries it reads only counts per ten minutes, and of pending ones
 * the index, up to a limit. So the cost depends on the number of endpoints, not of deliveries.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { dayMillis } from "../../contract/api/Timestamp.ts"
import { instant } from "../../platform/postgres/driver/Parameters.ts"
import { decodeRows } from "../../platform/postgres/queries/Sql.ts"
import { WebhookEndpointHealth, type WebhookHealth } from "./WebhookHealth.ts"

/** The maximum number of endpoints in `per_endpoint`; the totals are of all. */
const endpointsMax = 1_000
/** The maximum count of pending deliveries of one endpoint. */
const countedMax = 100_000

/** The ages of the oldest pending delivery for the statuses degraded and failing. */
const degradedAgeMillis = 300_000
const failingAgeMillis = 3_600_000

const decodeEndpoints = decodeRows(WebhookEndpointHealth)

export class DeliveryHealth extends Context.Service<
  DeliveryHealth,
  { readonly report: Effect.Effect<WebhookHealth> }
>()("licensing/ledger/webhooks/DeliveryHealth") {
  static readonly layer = Layer.effect(
    DeliveryHealth,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const endpointRows = (now: number) => sql`
        SELECT e.id AS webhook_id, name, is_active, disabled_reason, waiting.pending, waiting.retrying, waiting.oldest_pending_at,
          CASE WHEN e.is_active THEN waiting.next_attempt_at END AS next_attempt_at,
          coalesce(past.delivered, 0)::bigint AS delivered_24h, coalesce(past.failed, 0)::bigint AS failed_24h,
          coalesce(past.exhausted, 0)::bigint AS exhausted_24h, last_success_at, last_failure_at,
          last_failure AS last_failure_reason
        FROM webhook_endpoints AS e
        CROSS JOIN LATERAL (
          SELECT count(*) AS pending, count(*) FILTER (WHERE attempts > 0) AS retrying, min(created_at) AS oldest_pending_at,
            min(due_at) AS next_attempt_at
          FROM (
            SELECT attempts, created_at, due_at FROM webhook_deliveries WHERE endpoint_id = e.id AND status = 'pending'
            ORDER BY due_at, sequence LIMIT ${countedMax}
          ) AS first
        ) AS waiting
        CROSS JOIN LATERAL (
          SELECT sum(delivered) AS delivered, sum(failed) AS failed, sum(exhausted) AS exhausted
          FROM webhook_delivery_counts WHERE endpoint_id = e.id AND period > ${instant(now - dayMillis)}
        ) AS past
        ORDER BY e.created_at DESC, e.id DESC`

      const report = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const rows = yield* decodeEndpoints(endpointRows(now))
        const endpoints = rows.map((health): WebhookEndpointHealth => ({ ...health, ...derived(health, now) }))
        return { ...summarize(endpoints, now), per_endpoint: endpoints.slice(0, endpointsMax) }
      })

      return DeliveryHealth.of({ report: Effect.orDie(Effect.withSpan(report, "DeliveryHealth.report")) })
    })
  )
}

interface AttemptCounts {
  readonly delivered_24h: number
  readonly failed_24h: number
  readonly oldest_pending_at?: number
}

const derived = ({ delivered_24h, failed_24h, oldest_pending_at }: AttemptCounts, now: number) => {
  const attempts = delivered_24h + failed_24h
  return {
    ...(oldest_pending_at === undefined
      ? undefined
      : { oldest_pending_age_seconds: Math.max(0, Math.floor((now - oldest_pending_at) / 1_000)) }),
    ...(attempts === 0 ? undefined : { success_rate_24h: delivered_24h / attempts })
  }
}

/** The totals. Pending deliveries of disabled endpoints do not count, because they wait for the owner. */
const summarize = (endpoints: ReadonlyArray<WebhookEndpointHealth>, now: number) => {
  const active = endpoints.filter(({ is_active }) => is_active)
  const sum = (
    of: ReadonlyArray<WebhookEndpointHealth>,
    field: keyof AttemptCounts | "pending" | "retrying" | "exhausted_24h"
  ) => of.reduce((total, endpoint) => total + (endpoint[field] ?? 0), 0)
  const deliveries = {
    pending: sum(active, "pending"),
    retrying: sum(active, "retrying"),
    delivered_24h: sum(endpoints, "delivered_24h"),
    failed_24h: sum(endpoints, "failed_24h"),
    exhausted_24h: sum(endpoints, "exhausted_24h")
  }
  const oldest = extreme(Math.min, active, "oldest_pending_at")
  const oldestPending = { ...(oldest === undefined ? undefined : { oldest_pending_at: oldest }) }
  const rates = derived({ ...deliveries, ...oldestPending }, now)
  const hasDisabled = endpoints.some(({ disabled_reason }) => disabled_reason !== undefined)
  const ageMillis = oldest === undefined ? 0 : now - oldest
  const degraded = deliveries.retrying + deliveries.exhausted_24h > 0 || hasDisabled || ageMillis >= degradedAgeMillis
  const failing = (rates.success_rate_24h ?? 1) < 0.5 || ageMillis >= failingAgeMillis
  const status = failing ? ("failing" as const) : degraded ? ("degraded" as const) : ("healthy" as const)
  const last_success_at = extreme(Math.max, endpoints, "last_success_at")
  const last_failure_at = extreme(Math.max, endpoints, "last_failure_at")
  return {
    status,
    endpoints: { total: endpoints.length, active: active.length, disabled: endpoints.length - active.length },
    deliveries,
    ...oldestPending,
    ...rates,
    ...(last_success_at === undefined ? undefined : { last_success_at }),
    ...(last_failure_at === undefined ? undefined : { last_failure_at })
  }
}

const extreme = (
  pick: (one: number, other: number) => number,
  endpoints: ReadonlyArray<WebhookEndpointHealth>,
  field: "oldest_pending_at" | "last_success_at" | "last_failure_at"
): number | undefined => {
  const values = endpoints.flatMap((endpoint) => endpoint[field] ?? [])
  return values.length === 0 ? undefined : values.reduce((one, other) => pick(one, other))
}
