/**
 * Moves the periods of the quotas that follow a subscription, when its period changes. Each license gets a new revision, so that
 * no decision on the earlier periods is committed. A license that is linked at the same time reads the subscription under its
 * lock.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { columns, instant, int8 } from "../../platform/postgres/driver/Parameters.ts"
import { mayTakeLong } from "../../platform/postgres/driver/Transactions.ts"
import { nextRevision } from "../../platform/postgres/queries/Revision.ts"
import { subscriptionResets } from "../policies/ResetPeriod.ts"
import type { Subscription } from "./Subscription.ts"

/** Within the transaction that has locked the subscription. Licenses are locked in the order of their ids, as everywhere. */
export const movePeriods = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  {
    current_period_end,
    current_period_start,
    id
  }: Pick<Subscription, "id" | "current_period_start" | "current_period_end">,
  now: number
) {
  yield* mayTakeLong(sql)
  const follows = sql`(a.reset_period = 'subscription' OR (a.reset_period IS NOT NULL AND a.reset_anchor = 'subscription'))`
  const licenses = yield* sql<{ readonly id: string }>`
    SELECT l.id FROM licenses l WHERE l.subscription_id = ${id}
      AND EXISTS (SELECT FROM license_features a WHERE a.license_id = l.id AND ${follows})
    ORDER BY l.id FOR NO KEY UPDATE`
  if (licenses.length === 0) return
  const start = instant(current_period_start)
  const end = instant(current_period_end)
  const at = instant(now)
  const resets = subscriptionResets(current_period_start, current_period_end, now).map(
    ({ first, period, second }) => sql`
        WHEN a.reset_period = ${period} AND a.period_start >= ${instant(first)} THEN ${instant(second)}
        WHEN a.reset_period = ${period} THEN ${instant(first)}`
  )
  const ids = columns.text(licenses.map((license) => license.id))
  // The rule of `UsagePeriods.withPeriods`: a period that has ended already stays, for the clock to close it.
  yield* sql`
    UPDATE license_features a SET period_anchor = ${start}, periods_end_at = ${end},
      period_start = coalesce(a.period_start, ${start}),
      resets_at = CASE
        WHEN a.resets_at <= ${at} AND a.resets_at < coalesce(a.periods_end_at, 'infinity') THEN a.resets_at
        WHEN a.period_start < ${start} AND (${current_period_start <= now} OR a.reset_period = 'subscription') THEN ${start}
        ${sql.join(" ", false)(resets)}
        ELSE ${end}
      END
    WHERE a.license_id = ANY(${ids}) AND ${follows}`
  yield* sql`UPDATE licenses SET revision = ${int8(yield* nextRevision)} WHERE id = ANY(${ids})`
})
