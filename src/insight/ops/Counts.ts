/**
 * Counts licenses, devices, products and customers. A worker counts the rows once a minute and the node caches the result, so
 * that dashboards take the same time at every size of the tables.
 */
import { Clock, Context, Effect, Layer, Semaphore } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import type { LicenseStatus } from "../../licensing/model/License.ts"
import { clockLag, endsAfter } from "../../licensing/rows/LicenseRows.ts"
import { instant } from "../../platform/postgres/driver/Parameters.ts"
import { unionAll } from "../../platform/postgres/queries/Sql.ts"

/** Three passes of the worker: a reader counts itself only if no worker runs. */
const ageMillisMax = 180_000

export interface Counts {
  /** By `table.status`, or by table if its rows have no status, as of the last count. Zero counts may be absent. */
  readonly rows: ReadonlyMap<string, number>
  /** Current, as is the event sequence: both are read from few index entries. */
  readonly leasesLive: number
  readonly eventSequence: number
}

interface NamedCount {
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
    /** Licenses are counted under the status that applies at this time, before and after a sweep has stored it. */
    readonly read: Effect.Effect<Counts>
    /** The worker's pass. */
    readonly count: Effect.Effect<void, SqlError.SqlError>
  }
>()("licensing/insight/ops/OpsCounts") {
  static readonly layer = Layer.effect(
    OpsCounts,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const exclusive = (yield* Semaphore.make(1)).withPermits(1)
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
        // The second check serves readers that waited for another reader's count.
        const rows =
          (yield* current) ??
          (yield* exclusive(Effect.flatMap(current, (rows) => (rows ? Effect.succeed(rows) : count))))
        const [numbers] = yield* currentNumbers(sql, yield* Clock.currentTimeMillis)
        return { rows, leasesLive: numbers?.leases_live ?? 0, eventSequence: numbers?.event_sequence ?? 0 }
      })

      return OpsCounts.of({
        read: Effect.orDie(read()),
        count: Effect.withSpan(Effect.asVoid(exclusive(count)), "OpsCounts.count")
      })
    })
  )
}

/**
 * Counts in one snapshot. Reads a whole index of license states and the whole table of devices: 0.15 s and 0.4 s of the
 * server's CPU for a million rows each.
 */
const countRows = Effect.fnUntraced(
  function* (sql: SqlClient.SqlClient, now: number) {
    yield* sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`
    // Parallel workers would take CPU time from requests, and no request waits for this count.
    yield* sql`SET LOCAL max_parallel_workers_per_gather = 0`
    const stored = yield* Effect.all(storedCounts(sql))
    const changes = yield* clockChanges(sql, now)
    const rows = new Map(stored.flat().map(({ count, name }) => [name, count]))
    const add = (status: string, count: number) =>
      rows.set(`licenses.${status}`, (rows.get(`licenses.${status}`) ?? 0) + count)
    for (const { was, is, count } of changes) {
      add(was, -count)
      add(is, count)
    }
    return rows
  },
  (counting, sql) => sql.withTransaction(counting)
)

/** The time limit applies to each statement, so each large table has its own. */
export const storedCounts = (sql: SqlClient.SqlClient): ReadonlyArray<Statement.Statement<NamedCount>> => [
  sql`SELECT 'licenses.' || status AS name, count(*) AS count FROM license_states GROUP BY status`,
  sql`SELECT 'devices.' || status AS name, count(*) AS count FROM devices GROUP BY status`,
  sql`SELECT 'products' AS name, count(*) AS count FROM products UNION ALL SELECT 'customers', count(*) FROM customers`
]

/**
 * Counts licenses whose stored status is out of date because no sweep has updated them. Finds them per policy as ranges
 * of the index that the sweep uses.
 */
export const clockChanges = (sql: SqlClient.SqlClient, now: number) => {
  // Must equal the expression in the index, so that the plan uses the index.
  const expiry = sql.literal("(s.expires_at AT TIME ZONE 'UTC')")
  const range = (was: LicenseStatus, is: LicenseStatus, condition: Statement.Fragment) => sql`
    SELECT ${was}::text AS was, ${is}::text AS "is", count(*) AS count FROM license_states s
    WHERE s.expires_at IS NOT NULL AND (s.policy_id || ' ' || s.status) = (p.id || ' ' || ${was}) AND ${condition}`
  const at = sql`(${instant(now)} AT TIME ZONE 'UTC')`
  const lag = sql.literal(clockLag)
  const graceBegan = sql`((${instant(now)} - make_interval(days => p.grace_period_days)) AT TIME ZONE 'UTC')`
  const ranges = [
    range("active", "grace_period", sql`${expiry} <= ${at} AND ${expiry} > ${graceBegan}`),
    range("active", "expired", sql`${expiry} <= ${at} AND ${expiry} <= ${graceBegan}`),
    range("grace_period", "active", sql`${expiry} > ${at} + ${lag}`),
    range("grace_period", "expired", sql`${expiry} <= ${graceBegan}`),
    range("expired", "active", sql`${expiry} > ${at} + ${lag}`),
    range("expired", "grace_period", sql`${expiry} <= ${at} + ${lag} AND ${expiry} > ${graceBegan} + ${lag}`)
  ]
  return sql<ClockChanges>`
    SELECT was, "is", sum(count)::bigint AS count FROM policies p CROSS JOIN LATERAL (${unionAll(sql, ranges)}) AS changes
    WHERE count > 0 GROUP BY was, "is"`
}

/** Subtracts expired leases that are still stored as live; the sweep's index finds them. */
export const currentNumbers = (sql: SqlClient.SqlClient, now: number) => sql<{
  readonly leases_live: number
  readonly event_sequence: number
}>`
  SELECT (SELECT count(*) FROM leases WHERE status = 'live')
      - (SELECT count(*) FROM leases e WHERE e.status = 'live' AND ${sql.literal(endsAfter)} <= ${instant(now)}
        AND e.expires_at <= ${instant(now)}) AS leases_live,
    (SELECT last FROM event_sequence) AS event_sequence`
