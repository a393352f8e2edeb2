/**
 * Where the figures of a summary are read. Hours and days of UTC that are summed up beforehand are taken from the rollup, and
 * everything else from the ledger: what is cut off at the ends of the period, days that are not over, and days that rows have come
 * for since they were summed up. All of it is asked in the summary's own snapshot, so the two together are always what the
 * ledger alone would give.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { instant } from "../../postgres/Parameters.ts"
import type { Grouping, UsageSummaryFilter } from "../model/Filter.ts"
import { startOf } from "./LedgerRows.ts"

/** From the first instant up to, and without, the second; epoch milliseconds, or Infinity. */
export interface TimeRange {
  readonly from: number
  readonly to: number
}

/** Stretches that do not touch each other, the earliest first. What is rolled up begins and ends with an hour or day. */
export interface Sources {
  readonly rolled: ReadonlyArray<TimeRange>
  readonly ledger: ReadonlyArray<TimeRange>
}

const hourMillis = 3_600_000
const dayMillis = 86_400_000

/** Rows of the ledger that the rollup has not come to: about 30 ms. Where there are more, the ledger is read alone. */
const behindMax = 100_000
/** Stretches of the ledger in one statement. Days that would make more are read from it with all that lies between them. */
const stretchesMax = 12

const rolledGroupings: ReadonlySet<Grouping> = new Set(["product_id", "feature_code"])

/** Whether hours and days were summed up in a way that answers this: by these fields alone, in these buckets. */
const isRolled = ({ bucket, group_by = ["feature_code"], tz = "UTC", ...filter }: UsageSummaryFilter) =>
  bucket !== undefined &&
  tz === "UTC" &&
  group_by.every((field) => rolledGroupings.has(field)) &&
  (["customer_id", "license_id", "order_id", "subscription_id"] as const).every((field) => filter[field] === undefined)

/** Finds where to read a summary. `unsure`: more days for the ledger. */
export const sourcesOf = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  filter: UsageSummaryFilter & { readonly from: number },
  unsure: ReadonlyArray<number> = []
) {
  const { bucket, from, to = Number.POSITIVE_INFINITY } = filter
  const whole: Sources = { rolled: [], ledger: [{ from, to }] }
  if (!isRolled(filter)) return whole
  const unit = bucket === "1h" ? hourMillis : dayMillis
  const rolled = { from: Math.ceil(from / unit) * unit, to: Number.isFinite(to) ? Math.floor(to / unit) * unit : to }
  if (rolled.from >= rolled.to) return whole
  const open = yield* openDays(sql, rolled)
  return open === undefined ? whole : splitPeriod({ from, to }, rolled, [...open, ...unsure])
})

/** The days of a stretch that the rollup does not tell the whole of; undefined where it is too far behind to find out. */
const openDays = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, { from, to }: TimeRange) {
  const [progress] = yield* sql<{ readonly sequence: number; readonly behind: number }>`
    SELECT sequence, ledger_last - sequence AS behind FROM usage_rollup_progress, event_sequence`
  if (progress === undefined || progress.behind > behindMax) return undefined
  const before = (column: string) => (Number.isFinite(to) ? sql`${sql.literal(column)} < ${instant(to)}` : sql`TRUE`)
  const rows = yield* sql<{ readonly day: number }>`
    SELECT day FROM usage_rollup_days
    WHERE rolled_rows <> ledger_rows AND day > ${instant(from - dayMillis)} AND ${before("day")}
    UNION
    SELECT ${sql.literal(startOf("day", "occurred_at"))} FROM usage_ledger
    WHERE sequence > ${progress.sequence} AND occurred_at >= ${instant(from)} AND ${before("occurred_at")}`
  return rows.map(({ day }) => day)
})

/** Divides a period: of the part that could be rolled up, these days are the ledger's. */
export const splitPeriod = (period: TimeRange, rollable: TimeRange, days: ReadonlyArray<number>): Sources => {
  const inside = joined(
    days.toSorted((a, b) => a - b).map((day) => clipped({ from: day, to: day + dayMillis }, rollable))
  )
  const surplus = inside.splice(0, Math.max(0, inside.length - stretchesMax))
  if (surplus.length > 0) inside.splice(0, 1, { from: surplus[0]!.from, to: inside[0]!.to })
  const ledger = joined([{ from: period.from, to: rollable.from }, ...inside, { from: rollable.to, to: period.to }])
  const ends = [period.from, ...ledger.flatMap(({ from, to }) => [from, to]), period.to]
  const between = Array.from({ length: ends.length / 2 }, (_, index) => ({
    from: ends[2 * index]!,
    to: ends[2 * index + 1]!
  }))
  return { rolled: between.filter(isSome), ledger }
}

const clipped = ({ from, to }: TimeRange, { from: first, to: last }: TimeRange): TimeRange => ({
  from: Math.max(from, first),
  to: Math.min(to, last)
})

const isSome = ({ from, to }: TimeRange) => from < to

/** Stretches in their order, those that touch as one, empty ones left out. */
const joined = (stretches: ReadonlyArray<TimeRange>): Array<TimeRange> => {
  const apart: Array<TimeRange> = []
  for (const stretch of stretches.filter(isSome)) {
    const last = apart.at(-1)
    if (last === undefined || last.to < stretch.from) apart.push(stretch)
    else apart[apart.length - 1] = { from: last.from, to: Math.max(last.to, stretch.to) }
  }
  return apart
}

/** The condition that a time lies in one of these stretches. */
export const inRanges = (sql: SqlClient.SqlClient, column: string, stretches: ReadonlyArray<TimeRange>) =>
  sql.or(
    stretches.map(({ from, to }) =>
      Number.isFinite(to)
        ? sql`(${sql.literal(column)} >= ${instant(from)} AND ${sql.literal(column)} < ${instant(to)})`
        : sql`${sql.literal(column)} >= ${instant(from)}`
    )
  )
