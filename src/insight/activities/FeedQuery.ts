import type { ProductIds } from "../../access/CurrentActor.ts"
import type { ActivityFilter } from "./Activity.ts"
import type { SequenceRange } from "./ScanRange.ts"

export interface FeedQuery {
  readonly filter: ActivityFilter
  readonly products: ProductIds
  /** The resource ids of matching events; undefined if there are too many. */
  readonly resourceIds: ReadonlyArray<string> | undefined
  /** The ranges that contain the events of the filter's period. */
  readonly ranges: ReadonlyArray<SequenceRange>
  /** Only activities below this number; undefined: starts with the newest. */
  readonly below: number | undefined
  /** The most rows that a scan reads. */
  readonly rowsMax: number
  /** The most rows that a scan returns. */
  readonly limit: number
}
