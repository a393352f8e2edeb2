/** Converts events and ledger entries into rows with actor, time and request. */
import type { EventRow, NewEvent, UsageRow } from "../../ledger/events/EventLog.ts"
import type { LedgerEntry } from "../model/LicenseRecords.ts"
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
