/**
 * Decides where the figures of a summary are read. Complete hours and days of UTC come from the rollup, everything else from the
 * ledger: partial buckets at the ends of the period, days that are not over, and days with rows added since they were summed. Both
 * are read in the summary's own snapshot, so the result always equals that of the ledger alone.
 */
import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { Count } from "../../../contract/api/Int64.ts"
import { dayMillis, hourMillis, Timestamp } from "../../../contract/api/Timestamp.ts"
import { ledgerRemovedAt } from "../../../ledger/partitions/Removed.ts"
import { instant } from "../../../platform/postgres/driver/Parameters.ts"
import { decodeRows } from "../../../platform/postgres/queries/Sql.ts"
import type { Grouping, UsageSummaryFilter } from "../model/Filter.ts"
import { startOf } from "./LedgerRows.ts"

const decodeProgress = decodeRows(Schema.Struct({ sequence: Count, lag: Schema.Number }))
const decodeRemoved = decodeRows(Schema.Struct({ at: Schema.optionalKey(Timestamp) }))
const decodeDays = decodeRows(Schema.Struct({ day: Timestamp }))

/** `from` is inclusive, `to` exclusive; in epoch milliseconds or Infinity. */
export interface TimeRange {
  readonly from: number
  readonly to: number
}

/** Disjoint ranges, the earliest first. Ranges of the rollup begin and end with an hour or day. */
export interface Sources {
  readonly rollup: ReadonlyArray<TimeRange>
  readonly ledger: ReadonlyArray<TimeRange>
}

/** Reading this many unscanned ledger rows takes 30 ms. If there are more, only days with removed rows come from the rollup. */
const lagRowsMax = 100_000
/** If there are more ranges, the earliest ones and the time between them become one range. */
const rangesMax = 12

const rollupGroupings: ReadonlySet<Grouping> = new Set(["product_id", "feature_code"])

/** The rollup has the sums only for its own fields and buckets. */
const isInRollup = ({ bucket, group_by = ["feature_code"], tz = "UTC", ...filter }: UsageSummaryFilter) =>
  bucket !== undefined &&
  tz === "UTC" &&
  group_by.every((field) => rollupGroupings.has(field)) &&
  (["customer_id", "license_id", "order_id", "subscription_id"] as const).every((field) => filter[field] === undefined)

/** `ambiguousDays` are read from the ledger, too. */
export const sourcesOf = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  filter: UsageSummaryFilter & { readonly from: number },
  ambiguousDays: ReadonlyArray<number> = []
) {
  const { bucket, from, to = Number.POSITIVE_INFINITY } = filter
  const whole: Sources = { rollup: [], ledger: [{ from, to }] }
  if (!isInRollup(filter)) return whole
  const unit = bucket === "1h" ? hourMillis : dayMillis
  const rollup = { from: Math.ceil(from / unit) * unit, to: Number.isFinite(to) ? Math.floor(to / unit) * unit : to }
  if (rollup.from >= rollup.to) return whole
  const incomplete = yield* incompleteDays(sql, rollup)
  if (incomplete !== undefined) return splitPeriod({ from, to }, rollup, [...incomplete, ...ambiguousDays])
  const removed = intersect(rollup, { from, to: yield* removedDaysEnd(sql) })
  return isNotEmpty(removed) ? splitPeriod({ from, to }, removed, ambiguousDays) : whole
})

/** The end of the last day with removed rows, which were all summed before, or -Infinity. */
const removedDaysEnd = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const [removed] = yield* decodeRemoved(sql`SELECT nullif(${ledgerRemovedAt(sql)}, '-infinity') AS at`)
  return removed?.at === undefined ? Number.NEGATIVE_INFINITY : (Math.floor(removed.at / dayMillis) + 1) * dayMillis
})

/** Undefined if the rollup lags too far behind to know. */
const incompleteDays = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, { from, to }: TimeRange) {
  const [progress] = yield* decodeProgress(sql`
    SELECT sequence, ledger_last - sequence AS lag FROM usage_rollup_progress, event_sequence`)
  if (progress === undefined || progress.lag > lagRowsMax) return undefined
  const before = (column: string) => (Number.isFinite(to) ? sql`${sql.literal(column)} < ${instant(to)}` : sql`TRUE`)
  const rows = yield* decodeDays(sql`
    SELECT day FROM usage_rollup_days
    WHERE rolled_rows <> ledger_rows AND day > ${instant(from - dayMillis)} AND ${before("day")} AND day > ${ledgerRemovedAt(sql)}
    UNION
    SELECT ${sql.literal(startOf("day", "occurred_at"))} FROM usage_ledger
    WHERE sequence > ${progress.sequence} AND occurred_at >= ${instant(from)} AND ${before("occurred_at")}`)
  return rows.map(({ day }) => day)
})

/** The rollup has `rollable`, except for these days. */
export const splitPeriod = (period: TimeRange, rollable: TimeRange, days: ReadonlyArray<number>): Sources => {
  const inside = mergeRanges(
    days.toSorted((a, b) => a - b).map((day) => intersect({ from: day, to: day + dayMillis }, rollable))
  )
  const surplus = inside.splice(0, Math.max(0, inside.length - rangesMax))
  if (surplus.length > 0) inside.splice(0, 1, { from: surplus[0]!.from, to: inside[0]!.to })
  const ledger = mergeRanges([
    { from: period.from, to: rollable.from },
    ...inside,
    { from: rollable.to, to: period.to }
  ])
  const ends = [period.from, ...ledger.flatMap(({ from, to }) => [from, to]), period.to]
  const between = Array.from({ length: ends.length / 2 }, (_, index) => ({
    from: ends[2 * index]!,
    to: ends[2 * index + 1]!
  }))
  return { rollup: between.filter(isNotEmpty), ledger }
}

const intersect = ({ from, to }: TimeRange, { from: first, to: last }: TimeRange): TimeRange => ({
  from: Math.max(from, first),
  to: Math.min(to, last)
})

const isNotEmpty = ({ from, to }: TimeRange) => from < to

/** The ranges must be in order. */
const mergeRanges = (ranges: ReadonlyArray<TimeRange>): Array<TimeRange> => {
  const merged: Array<TimeRange> = []
  for (const range of ranges.filter(isNotEmpty)) {
    const last = merged.at(-1)
    if (last === undefined || last.to < range.from) merged.push(range)
    else merged[merged.length - 1] = { from: last.from, to: Math.max(last.to, range.to) }
  }
  return merged
}

export const inRanges = (sql: SqlClient.SqlClient, column: string, ranges: ReadonlyArray<TimeRange>) =>
  sql.or(
    ranges.map(({ from, to }) =>
      Number.isFinite(to)
        ? sql`(${sql.literal(column)} >= ${instant(from)} AND ${sql.literal(column)} < ${instant(to)})`
        : sql`${sql.literal(column)} >= ${instant(from)}`
    )
  )
