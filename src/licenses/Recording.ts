/** How what rules decide becomes rows of the event log: with who caused it, when, and for which request. */
import type { EventRow, NewEvent } from "../events/EventLog.ts"
import type { Origin } from "./LicenseCommand.ts"

/** What time does to a license is done by the system, for no request. */
export const clockOrigin: Origin = {
  actor_type: "system",
  actor_id: "clock",
  request_id: "req_none",
  ip_address: undefined
}

export const recorded = (event: NewEvent, origin: Origin, now: number): EventRow => ({
  ...event,
  actor_type: origin.actor_type,
  actor_id: origin.actor_id,
  ip_address: origin.ip_address,
  created_at: now,
  metadata: { ...event.metadata, request_id: origin.request_id }
})
