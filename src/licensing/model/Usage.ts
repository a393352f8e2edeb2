/** What licenses consume of their features, and the rows of the ledger about it. */
import type { UsageAction } from "../../ledger/events/Entry.ts"
import type { ResetAnchor, ResetPeriod } from "../../vendor/policies/ResetPeriod.ts"

/** What may be consumed. */
export interface Quota {
  /** The quota, of each period if there are periods; absent: unlimited. */
  readonly max_consumptions?: number | undefined
  readonly reset_period?: ResetPeriod | undefined
  readonly reset_anchor?: ResetAnchor | undefined
  readonly rollover_max?: number | undefined
  /** -1: without limit. */
  readonly overage_max?: number | undefined
  /** From where periods are counted: the start of the license or of the subscription's period. */
  readonly period_anchor?: number | undefined
  /** No period begins at or after this instant: the end of the subscription's period. */
  readonly periods_end_at?: number | undefined
}

/** What was consumed, and what is left beside the quota. What is 0 is absent. */
export interface Usage {
  /** In the current period, if there are periods: of the quota, of bought credits and beyond both. */
  readonly total_consumptions: number
  /** The part of it that was taken from bought credits. */
  readonly credits_used?: number | undefined
  /** The part of it beyond the quota and bought credits. */
  readonly overage?: number | undefined
  /** What the current period got from the one before, in addition to the quota. */
  readonly rolled_over?: number | undefined
  /** Bought credits that are left. */
  readonly extra_credits?: number | undefined
  readonly period_start?: number | undefined
  /** The end of the current period; absent: no further period begins. */
  readonly resets_at?: number | undefined
}

/** A plain number is a count without periods, as earlier versions stored it. */
export type KeptCount = number | Usage

/** A row of the usage ledger without the fields that the commit adds: sequence, license, actor, request. */
export interface LedgerEntry {
  readonly feature_id: string
  readonly action: UsageAction
  readonly event_id?: string | undefined
  readonly amount: number
  readonly balance_after: number
  /** The quota, including what was rolled over. */
  readonly max_after?: number | undefined
  /** The change of the bought credits that are left. */
  readonly credits?: number | undefined
  /** The change of the consumption beyond the quota and bought credits. */
  readonly overage?: number | undefined
  /** The event id of the consumption that was taken back. */
  readonly reverses?: string | undefined
  readonly device_id?: string | undefined
  /** For a consumption, whose row is also its event: the feature's code may change or disappear later. */
  readonly feature_code?: string | undefined
}

/** What an event id was used for. The amount of a reversal is negative. */
export interface CountedUsage {
  readonly feature_code: string
  readonly amount: number
}

/** The ledger row of a feature that decides whether a consumption can be taken back. */
export type ReversalMark = Pick<LedgerEntry, "action" | "amount" | "event_id">
