/**
 * How many licenses, devices, products and customers there are. A worker counts the rows once a minute and the result stays in the
 * node's memory, so that dashboards take the same time at every size of the tables.
 */
import { Clock, Context, Effect, Layer, Semaphore } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { endsAfter } from "../licenses/engine/LicenseRows.ts"
import type { LicenseStatus } from "../licenses/model/License.ts"
import { instant } from "../postgres/Parameters.ts"

/** Three of the worker's minutes, so that a reader waits for a count only where no worker counts. */
const ageMillisMax = 180_000

export interface Counts {
  /** By `table.status`, or by table where rows have no status, as of the last count. What is zero may be absent. */
  readonly rows: ReadonlyMap<string, number>
  /** As of now, as is the event sequence: both are read from few entries of an index. */
  readonly leasesLive: number
  readonly eventSequence: number
}

interface Counted {
  readonly name: string
  readonly count: number
}

interface ClockChanges {
  readonly was: string
  readonly is: string
  readonly count: number
}

export class OpsCounts extends Context.Service<
  OpsCounts,
  {
    /** Licenses are counted under the status that the clock gives them, before and after a sweep has written it. */
    readonly read: Effect.Effect<Counts>
    /** Counts the rows for the readers of the next minute. A pass of a worker. */
    readonly count: Effect.Effect<void, SqlError.SqlError>
  }
>()("licensing/ops/OpsCounts") {
  static readonly layer = Layer.effect(
    OpsCounts,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const alone = (yield* Semaphore.make(1)).withPermits(1)
      let last: { readonly at: number; readonly rows: ReadonlyMap<string, number> } | undefined

      const count = Effect.gen(function* () {
        const at = yield* Clock.currentTimeMillis
        last = { at, rows: yield* countRows(sql, at) }
        return last.rows
      })
      const current = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        return last !== undefined && now - last.at < ageMillisMax ? last.rows : undefined
      })

      const read = Effect.fn("OpsCounts.read")(function* () {
        // The second look is for those who have waited for the count of another reader.
        const rows =
          (yield* current) ?? (yield* alone(Effect.flatMap(current, (rows) => (rows ? Effect.succeed(rows) : count))))
        const [numbers] = yield* liveLeasesAndSequence(sql, yield* Clock.currentTimeMillis)
        return { rows, leasesLive: numbers?.leases_live ?? 0, eventSequence: numbers?.event_sequence ?? 0 }
      })

      return OpsCounts.of({
        read: Effect.orDie(read()),
        count: Effect.withSpan(Effect.asVoid(alone(count)), "OpsCounts.count")
      })
    })
  )
}

/**
 * All counts of one moment. Reads an index of license states and the table of devices whole: 0.15 s and 0.4 s of the server's CPU
 * for a million rows each.
 */
const countRows = Effect.fnUntraced(
  function* (sql: SqlClient.SqlClient, now: number) {
    yield* sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`
    // Nobody waits for it: more processes would only take more from requests.
    yield* sql`SET LOCAL max_parallel_workers_per_gather = 0`
    const stored = yield* Effect.all(storedCounts(sql))
    const moved = yield* movedByClock(sql, now)
    const rows = new Map(stored.flat().map(({ count, name }) => [name, count]))
    const add = (status: string, count: number) =>
      rows.set(`licenses.${status}`, (rows.get(`licenses.${status}`) ?? 0) + count)
    for (const { was, is, count } of moved) {
      add(was, -count)
      add(is, count)
    }
    return rows
  },
  (counting, sql) => sql.withTransaction(counting)
)

/** A statement for each large table: the time limit holds for each by itself. */
export const storedCounts = (sql: SqlClient.SqlClient): ReadonlyArray<Statement.Statement<Counted>> => [
  sql`SELECT 'licenses.' || status AS name, count(*) AS count FROM license_states GROUP BY status`,
  sql`SELECT 'devices.' || status AS name, count(*) AS count FROM devices GROUP BY status`,
  sql`SELECT 'products' AS name, count(*) AS count FROM products UNION ALL SELECT 'customers', count(*) FROM customers`
]

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

/** Live leases without those that have lapsed, which the index of the lease sweep finds, and the newest event's number. */
export const liveLeasesAndSequence = (sql: SqlClient.SqlClient, now: number) => sql<{
  readonly leases_live: number
  readonly event_sequence: number
}>`
  SELECT (SELECT count(*) FROM leases WHERE status = 'live')
      - (SELECT count(*) FROM leases e WHERE e.status = 'live' AND ${sql.literal(endsAfter)} <= ${instant(now)}
        AND e.expires_at <= ${instant(now)}) AS leases_live,
    (SELECT last FROM event_sequence) AS event_sequence`
