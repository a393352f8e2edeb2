/** What the retention of a table will remove, and when: for `doctor`, and for the log of a start. */
import { dayMillis, formatTimestamp } from "../../contract/api/Timestamp.ts"
import type { Parent } from "./PartitionEnd.ts"

/** A partition that stays for longer than this multiple of the retention is reported. */
const lateFactor = 2

/** How many days the rows of a table are kept, 0 = forever. */
export const retentionDaysOf = (
  settings: { readonly eventRetentionDays: number; readonly ledgerRetentionDays: number },
  { name }: Parent
): number => (name === "event_log" ? settings.eventRetentionDays : settings.ledgerRetentionDays)

/** The count of new rows of a table since an instant ($1). */
export const recentQuery = ({ name }: Parent): string =>
  name === "event_log"
    ? `SELECT last - coalesce((SELECT max(last_sequence) FROM event_spans WHERE last_at < $1::timestamptz), 0) FROM event_sequence`
    : "SELECT coalesce(sum(ledger_rows), 0)::bigint FROM usage_rollup_days WHERE day >= $1::timestamptz"

/** The partition of the next numbers, as a `PlanRow`. */
export const planQuery = (parent: Parent): string => `
  SELECT p.name, (p.end_sequence - s.${parent.last})::float8 AS numbers_left, (${recentQuery(parent)})::float8 AS recent,
    (SELECT extract(epoch FROM first_at)::float8 * 1000 FROM event_spans ORDER BY last_sequence LIMIT 1) AS oldest_at,
    (SELECT extract(epoch FROM first_at)::float8 * 1000 FROM event_spans WHERE last_sequence >= p.first_event
      ORDER BY last_sequence LIMIT 1) AS since
  FROM sequence_partitions p, event_sequence s
  WHERE p.parent = '${parent.name}' AND p.detached_at IS NULL AND p.first_sequence <= s.${parent.last} + 1
  ORDER BY p.first_sequence DESC LIMIT 1`

export interface PlanRow {
  readonly name: string
  /** Null if the partition has no end yet. */
  readonly numbers_left: number | null
  readonly recent: number
  /** Milliseconds: the oldest event of the table, and of the partition; null while there are few. */
  readonly oldest_at: number | null
  readonly since: number | null
}

export interface Plan {
  readonly message: string
  /** Whether rows stay for much longer than the retention. */
  readonly isLate: boolean
}

const dateOf = (millis: number) => formatTimestamp(millis).slice(0, 10)
const counted = (count: number) => count.toLocaleString("en-US")

/** The plan for a table whose rows are kept for some days, at least one. */
export const planOf = (parent: Parent, row: PlanRow, days: number, now: number): Plan => {
  const { name, numbers_left: left, oldest_at: oldest, recent, since } = row
  const [what, rows] = parent.name === "event_log" ? ["Events", "events"] : ["Ledger rows", "rows"]
  const kept = `${what} are kept for ${days} ${days === 1 ? "day" : "days"}`
  if (left === null)
    return { message: `${kept}. ${name} has no end yet; the worker is going to give it one`, isLate: false }
  const inPartition = `Those ${since === null ? "" : `from ${dateOf(since)} `}to today leave with ${name}, which ends after`
  const ends = `${kept}. ${inPartition} ${counted(left)} more ${rows}`
  // A new database has fewer days.
  const measuredDays = oldest === null ? days : Math.min(days, Math.max(1, (now - oldest) / dayMillis))
  if (recent === 0) return { message: `${ends}; none came in that time, so nothing of it is removed`, isLate: true }
  const daysLeft = (left / recent) * measuredDays
  const isLate = daysLeft + days > lateFactor * days
  const endsAt = now + daysLeft * dayMillis
  // A more distant date is meaningless.
  if (daysLeft > 36_500) return { message: `${ends}: in more than a hundred years`, isLate }
  const removed = dateOf(endsAt + days * dayMillis)
  return { message: `${ends}, about ${dateOf(endsAt)}, and are removed about ${removed}`, isLate }
}
