/**
 * How many things there are, without counting them: sums over `kept_counts`, which the database keeps as rows come, go and
 * change their status. The number of statements and of rows read does not depend on how many licenses or devices there are.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { endsAfter } from "../licenses/engine/LicenseRows.ts"
import type { LicenseStatus } from "../licenses/model/License.ts"
import { instant } from "../postgres/Parameters.ts"

/** Changes that are left as they are; more become one row for each name. */
const changesMax = 256

export interface Counts {
  /** By `table.status`, or by table where rows have no status. What is zero may be absent. */
  readonly kept: ReadonlyMap<string, number>
  readonly leasesLive: number
  readonly eventSequence: number
}

interface ClockChanges {
  readonly was: string
  readonly is: string
  readonly count: number
}

export class OpsCounts extends Context.Service<
  OpsCounts,
  {
    /** Licenses are counted under the status that the clock gives them, whether or not a sweep has written it down. */
    readonly read: Effect.Effect<Counts>
    /** Makes the sums short again. A pass of a worker. */
    readonly fold: Effect.Effect<void, SqlError.SqlError>
  }
>()("licensing/ops/OpsCounts") {
  static readonly layer = Layer.effect(
    OpsCounts,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const read = Effect.fn("OpsCounts.read")(function* () {
        const now = yield* Clock.currentTimeMillis
        const sums = yield* keptCounts(sql)
        const moved = yield* movedByClock(sql, now)
        const [numbers] = yield* otherNumbers(sql, now)
        const kept = new Map(sums.map(({ name, count }) => [name, count]))
        const add = (status: string, count: number) =>
          kept.set(`licenses.${status}`, (kept.get(`licenses.${status}`) ?? 0) + count)
        for (const { was, is, count } of moved) {
          add(was, -count)
          add(is, count)
        }
        return { kept, leasesLive: numbers?.leases_live ?? 0, eventSequence: numbers?.event_sequence ?? 0 }
      })

      return OpsCounts.of({ read: Effect.orDie(read()), fold: fold(sql) })
    })
  )
}

export const keptCounts = (sql: SqlClient.SqlClient) => sql<{ readonly name: string; readonly count: number }>`
  SELECT name, sum(delta)::bigint AS count FROM kept_counts GROUP BY name`

/**
 * Licenses whose stored status is not what the clock says: those that a sweep has yet to come to, found policy by policy as
 * ranges of the index that the sweep itself walks.
 */
export const movedByClock = (sql: SqlClient.SqlClient, now: number) => {
  // Worded as the index is, so that no plan can choose another one.
  const expiry = sql.literal("(s.expires_at AT TIME ZONE 'UTC')")
  const range = (was: LicenseStatus, is: LicenseStatus, condition: Statement.Fragment) => sql`
    SELECT ${was}::text AS was, ${is}::text AS "is", count(*) AS count FROM license_states s
    WHERE s.expires_at IS NOT NULL AND (s.policy_id || ' ' || s.status) = (p.id || ' ' || ${was}) AND ${condition}`
  const at = sql`(${instant(now)} AT TIME ZONE 'UTC')`
  const graceBegan = sql`((${instant(now)} - make_interval(days => p.grace_period_days)) AT TIME ZONE 'UTC')`
  const ranges = [
    range("active", "grace_period", sql`${expiry} <= ${at} AND ${expiry} > ${graceBegan}`),
    range("active", "expired", sql`${expiry} <= ${at} AND ${expiry} <= ${graceBegan}`),
    range("grace_period", "active", sql`${expiry} > ${at}`),
    range("grace_period", "expired", sql`${expiry} <= ${graceBegan}`),
    range("expired", "active", sql`${expiry} > ${at}`),
    range("expired", "grace_period", sql`${expiry} <= ${at} AND ${expiry} > ${graceBegan}`)
  ]
  const union = ranges.slice(1).reduce((all, one) => sql`${all} UNION ALL ${one}`, ranges[0]!)
  return sql<ClockChanges>`
    SELECT was, "is", sum(count)::bigint AS count FROM policies p CROSS JOIN LATERAL (${union}) AS moved
    WHERE count > 0 GROUP BY was, "is"`
}

/** Of the leases that are live as written, those are taken off that have lapsed: the sweep's index leads to them. */
export const otherNumbers = (sql: SqlClient.SqlClient, now: number) => sql<{
  readonly leases_live: number
  readonly event_sequence: number
}>`
  SELECT (SELECT count(*) FROM leases WHERE status = 'live')
      - (SELECT count(*) FROM leases e WHERE e.status = 'live' AND ${sql.literal(endsAfter)} <= ${instant(now)}
        AND e.expires_at <= ${instant(now)}) AS leases_live,
    (SELECT last FROM event_sequence) AS event_sequence`

// Two nodes that fold at once take different rows: each row is summed by the one that deletes it.
const fold = (sql: SqlClient.SqlClient) =>
  Effect.gen(function* () {
    const [row] = yield* sql<{ readonly many: boolean }>`
      SELECT count(*) > ${changesMax} AS many FROM (SELECT FROM kept_counts LIMIT ${changesMax + 1}) AS few`
    if (row?.many !== true) return
    yield* sql`
      WITH gone AS (DELETE FROM kept_counts RETURNING name, delta)
      INSERT INTO kept_counts SELECT name, sum(delta) FROM gone GROUP BY name`
  })
