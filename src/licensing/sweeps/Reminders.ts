/** The notices that a policy's reminder_days give before an end: which is reached, and which were not given yet. */
import { dayMillis } from "../../contract/api/Timestamp.ts"

/** More days than those of any reminder: means "no notice yet". */
export const noNotice = 366

export interface Reminded {
  readonly ends: number
  readonly created_at: number
  /** The days of the last notice given for this end. */
  readonly told: number
  /** Days before the end with a notice, by the license's policy. */
  readonly days: ReadonlyArray<number>
}

/** The days of the latest due notice. */
export const reachedDays = ({ days, ends }: Reminded, now: number): number =>
  Math.min(noNotice, ...days.filter((before) => ends - before * dayMillis <= now))

/**
 * The days of the due notices since the last one: always the latest, and earlier ones if the license existed at their time. So an
 * outage loses no notice, and a trial of two days does not get three at once.
 */
export const dueDays = (row: Reminded, now: number): ReadonlyArray<number> => {
  const reached = reachedDays(row, now)
  return row.days
    .filter((days) => days >= reached && days < row.told)
    .filter((days) => days === reached || row.ends - days * dayMillis >= row.created_at)
    .toSorted((a, b) => b - a)
}
