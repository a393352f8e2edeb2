/** One license in one step: its requests, answers and rows. */
import type { Catalog, License } from "../model/Model.ts"
import type { Call } from "../requests/Operations.ts"
import type { Outcome } from "../requests/Outcome.ts"
import type { Remembered } from "./LostValidations.ts"
import type { Stored } from "./Rows.ts"

/** The catalog from an event on. */
export interface CatalogPeriod {
  /** The event's sequence number; 0 = before the step. */
  readonly since: number
  readonly catalog: Catalog
}

export interface LicenseStep {
  readonly before: License
  readonly stored: Stored
  /** All states of the catalog in the step, in order. */
  readonly periods: ReadonlyArray<CatalogPeriod>
  /** All times that the clocks showed in the step. */
  readonly nows: ReadonlyArray<number>
  readonly calls: ReadonlyArray<Call>
  readonly outcomes: ReadonlyMap<string, Outcome>
  /** Whether requests may have been refused because of contention. */
  readonly isContended: boolean
  /** What a failover has lost of each device, by binding: nodes may remember it. */
  readonly remembered: ReadonlyMap<string, Remembered>
  /** Validation intervals, in minutes, of policies that required no heartbeats: nodes may remember them. */
  readonly intervals: ReadonlySet<number>
}
