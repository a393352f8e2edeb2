/** A taken floating seat as the management API returns it. Only the client that checked it out gets its token. */
import { Schema } from "effect"
import { Instant } from "../../contract/api/Timestamp.ts"

export const Lease = Schema.Struct({
  id: Schema.String,
  license_id: Schema.String,
  device_id: Schema.String,
  status: Schema.Literal("live"),
  checked_out_at: Instant("When the seat was taken."),
  heartbeat_at: Instant("When the lease was last extended."),
  expires_at: Instant("When the seat becomes free unless a heartbeat comes first."),
  borrowed_until: Schema.optionalKey(
    Instant("Until when the seat is borrowed: its machine needs no heartbeat, and may be without a connection.")
  )
}).annotate({ identifier: "Lease" })
export type Lease = typeof Lease.Type

/** Absent: false. */
export const releaseBorrowed = Schema.optionalKey(
  Schema.Boolean.annotate({
    description: "True also frees a borrowed seat, which its machine may still use without a connection.",
    default: false
  })
)
