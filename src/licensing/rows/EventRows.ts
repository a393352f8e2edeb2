/** Converts events and ledger entries into rows with actor, time and request. */
import { type Entry, type EventRow, isUsage, type NewEvent, type UsageRow } from "../../ledger/events/Entry.ts"
import type { LedgerEntry, ReversalMark } from "../model/Usage.ts"
import type { Origin } from "../rules/LicenseCommand.ts"

/** The origin of changes by the clock. */
export const clockOrigin: Origin = {
  actor_type: "system",
  actor_id: "clock",
  request_id: "req_none",
  ip_address: undefined
}

export const eventRow = (event: NewEvent, origin: Origin, now: number): EventRow => ({
  ...event,
  actor_type: origin.actor_type,
  actor_id: origin.actor_id,
  actor_name: origin.actor_name,
  ip_address: origin.ip_address,
  created_at: now,
  metadata: {
    ...event.metadata,
    ...(origin.bulk_job_id === undefined ? undefined : { bulk_job_id: origin.bulk_job_id }),
    request_id: origin.request_id
  }
})

export const usageRow = (entry: LedgerEntry, license_id: string, origin: Origin, now: number): UsageRow => ({
  feature_id: entry.feature_id,
  action: entry.action,
  event_id: entry.event_id,
  amount: entry.amount,
  balance_after: entry.balance_after,
  max_after: entry.max_after,
  credits: entry.credits,
  overage: entry.overage,
  reverses: entry.reverses,
  device_id: entry.device_id,
  feature_code: entry.feature_code,
  license_id,
  actor_type: origin.actor_type,
  actor_id: origin.actor_id,
  actor_name: origin.actor_name,
  request_id: origin.request_id,
  ip_address: entry.action === "consume" ? origin.ip_address : undefined,
  occurred_at: now
})

/** The row among pending ones that decides whether a consumption can be taken back: the rule of `LicenseLookups.reversalMark`. */
export const pendingMark = (
  entries: ReadonlyArray<Entry>,
  featureId: string,
  eventId: string
): ReversalMark | undefined =>
  entries.filter(isUsage).findLast((row) => row.feature_id === featureId && isMark(row, eventId))

const isMark = ({ action, event_id, reverses }: UsageRow, eventId: string): boolean =>
  action === "reset" ||
  action === "period_reset" ||
  reverses === eventId ||
  (action === "consume" && event_id === eventId)
