/** What the event log appends: events, and rows of the usage ledger. */
import type { Schema } from "effect"
import type { EventType, ResourceType } from "./EventType.ts"

/** An event without actor, time and request, which the log adds. */
export interface NewEvent {
  readonly event_type: EventType
  readonly resource_type: ResourceType
  readonly resource_id: string
  /** Changed field names with old and new values, ids. Never keys, tokens, secrets or bindings. */
  readonly metadata: { readonly [key: string]: Schema.Json }
}

/** A complete event except its sequence number. */
export interface EventRow extends NewEvent {
  readonly actor_type: string
  readonly actor_id: string
  readonly actor_name?: string | undefined
  readonly ip_address: string | undefined
  readonly created_at: number
}

export type UsageAction = "consume" | "reverse" | "reset" | "period_reset" | "top_up" | "set_limit"

/** A complete row of the usage ledger except its sequence numbers. A consumption is also the event `usage.consumed`. */
export interface UsageRow {
  readonly license_id: string
  readonly feature_id: string
  readonly action: UsageAction
  /** The caller's id of a consumption or reversal. */
  readonly event_id?: string | undefined
  readonly amount: number
  readonly balance_after: number
  readonly max_after?: number | undefined
  readonly credits?: number | undefined
  readonly overage?: number | undefined
  readonly reverses?: string | undefined
  readonly device_id?: string | undefined
  readonly actor_type: string
  readonly actor_id: string
  readonly actor_name?: string | undefined
  readonly request_id: string
  readonly occurred_at: number
  /** Only in the event of a consumption, as is `ip_address`. */
  readonly feature_code?: string | undefined
  readonly ip_address?: string | undefined
}

/** Events are numbered in the order of entries. */
export type Entry = EventRow | UsageRow

export const isUsage = (entry: Entry): entry is UsageRow => "action" in entry
