/** The notices that a policy's reminder_days give before an end. */
import { dayMillis } from "../../contract/api/Timestamp.ts"

/** More days than those of any reminder: means "no notice yet". */
export const noNotice = 366

export interface Reminded {
  readonly ends: number
  /** The days of the last notice given for this end. */
  readonly told: number
  /** Days before the end with a notice, by the license's policy. */
  readonly days: ReadonlyArray<number>
}

/**
 * The days of the latest due notice, the only one that is given: after an outage, and for an imported license, earlier
 * ones would tell the customer the same several times at once.
 */
export const reachedDays = ({ days, ends }: Reminded, now: number): number =>
  Math.min(noNotice, ...days.filter((before) => ends - before * dayMillis <= now))
