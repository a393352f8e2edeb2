/** One license in one step: what was asked and answered, and what there is to read of it. */
import type { License, Surroundings } from "./model/Model.ts"
import type { Outcome } from "./Outcome.ts"
import type { Stored } from "./Rows.ts"
import type { Order } from "./Verbs.ts"

/** What the surroundings were from an event on. */
export interface Era {
  /** The event's sequence number; 0 = before the step. */
  readonly since: number
  readonly around: Surroundings
}

export interface Episode {
  readonly before: License
  readonly stored: Stored
  /** All that held at some time in the step, in order. */
  readonly eras: ReadonlyArray<Era>
  /** All that the clock showed in the step. */
  readonly nows: ReadonlyArray<number>
  readonly orders: ReadonlyArray<Order>
  readonly outcomes: ReadonlyMap<string, Outcome>
  /** Whether an order may have been refused for want of a quiet moment. */
  readonly isContended: boolean
}
