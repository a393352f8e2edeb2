import { Schema } from "effect"
import { Count } from "../../../contract/api/Int64.ts"
import { Instant } from "../../../contract/api/Timestamp.ts"

export const CustomerErasure = Schema.Struct({
  customer_id: Schema.String,
  status: Schema.Literals(["erasing", "erased"]).annotate({
    description:
      "`erasing`: the service continues in the background. Repeat the request without an Idempotency-Key to read the state again."
  }),
  erased_at: Schema.optionalKey(Instant("When the erasure was finished.")),
  failed_attempts: Schema.optionalKey(
    Count.annotate({
      description: "How often the next step has failed in a row; the log has the reason. Absent if nothing failed."
    })
  ),
  retry_at: Schema.optionalKey(Instant("When the failed step is retried; a repeated request retries it at once."))
}).annotate({
  identifier: "CustomerErasure",
  description: "The progress of the erasure of a customer's personal data."
})
export type CustomerErasure = typeof CustomerErasure.Type
