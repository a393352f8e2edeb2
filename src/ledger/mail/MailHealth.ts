/** The health of mail, in the words of the health of webhook deliveries. */
import { Schema } from "effect"
import { Count } from "../../contract/api/Int64.ts"
import { Timestamp } from "../../contract/api/Timestamp.ts"

export const MailHealth = Schema.Struct({
  status: Schema.Literals(["off", "healthy", "degraded", "failing"]).annotate({
    description:
      "off: the settings name no mail server. degraded: a mail is being retried, waits for 5 minutes or was given up within 24 " +
      "hours. failing: a mail waits for an hour, or most attempts of the last 24 hours failed."
  }),
  mails: Schema.Struct({
    pending: Count.annotate({ description: "Mails that wait to be sent." }),
    retrying: Count.annotate({ description: "Pending mails that have failed before." }),
    sent_24h: Count.annotate({ description: "Mails that the server took within the last 24 hours, to ten minutes." }),
    failed_24h: Count.annotate({
      description: "Failed attempts, including the last ones of mails that were given up, and failed connections."
    }),
    given_up_24h: Count.annotate({ description: "Mails that were refused for good, or not sent in time." })
  }).annotate({ description: "The mails by state." }),
  oldest_pending_at: Schema.optionalKey(Timestamp),
  oldest_pending_age_seconds: Schema.optionalKey(Count),
  success_rate_24h: Schema.optionalKey(
    Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })).annotate({
      description: "Share of successful attempts of the last 24 hours, 0 to 1; absent without attempts."
    })
  ),
  last_success_at: Schema.optionalKey(Timestamp),
  last_failure_at: Schema.optionalKey(Timestamp),
  last_failure_reason: Schema.optionalKey(
    Schema.String.annotate({
      description: "status_<n>, timeout, connection_failed, tls_failed, sign_in_refused, sender_refused, …"
    })
  )
}).annotate({ identifier: "MailHealth", description: "How mails go: how many are pending, sent and failed." })
export type MailHealth = typeof MailHealth.Type
