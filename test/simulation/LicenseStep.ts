/** One license in one step: what was asked and answered, and what there is to read of it. */
import type { Catalog, License } from "./model/Model.ts"
import type { Call } from "./Operations.ts"
import type { Outcome } from "./Outcome.ts"
import type { Stored } from "./Rows.ts"

/** What the surroundings were from an event on. */
export interface CatalogPeriod {
  /** The event's sequence number; 0 = before the step. */
  readonly since: number
  readonly catalog: Catalog
}

export interface LicenseStep {
  readonly before: License
  readonly stored: Stored
  /** All that held at some time in the step, in order. */
  readonly periods: ReadonlyArray<CatalogPeriod>
  /** All that the clock showed in the step. */
  readonly nows: ReadonlyArray<number>
  readonly calls: ReadonlyArray<Call>
  readonly outcomes: ReadonlyMap<string, Outcome>
  /** Whether an order may have been refused for want of a quiet moment. */
  readonly isContended: boolean
}
