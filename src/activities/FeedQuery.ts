/** What is sought in one step through the feed. */
import type { ActivityFilter } from "./Activity.ts"
import type { SequenceRange } from "./ScanRange.ts"

export interface FeedQuery {
  readonly filter: ActivityFilter
  /** The ids under which the filter's records stand, where they are few. */
  readonly keys: ReadonlyArray<string> | undefined
  /** The events that a period can have. */
  readonly stretches: ReadonlyArray<SequenceRange>
  /** Activities below this number; undefined: from the newest on. */
  readonly below: number | undefined
  /** Rows that are looked at, and rows that are given. */
  readonly rowsMax: number
  readonly limit: number
}
