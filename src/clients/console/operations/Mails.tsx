/** The health of mail. */

import type { MailHealth } from "../../../ledger/mail/MailHealth.ts"
import { countOf } from "../parts/Format.ts"
import { Facts, Status, Time } from "../parts/Show.tsx"

export const Mails = ({
  of: { last_failure_reason, mails, oldest_pending_at, status }
}: {
  readonly of: MailHealth
}) =>
  status === "off" ? (
    <p className="quiet">The service sends no mail: no mail server is set.</p>
  ) : (
    <Facts
      of={[
        ["State", <Status key="status" of={status} />],
        ["Sent in 24 hours", countOf(mails.sent_24h)],
        ["Failed attempts", countOf(mails.failed_24h)],
        ["Given up", countOf(mails.given_up_24h)],
        ["Waiting", countOf(mails.pending)],
        ["Oldest waiting", <Time key="oldest" at={oldest_pending_at} none="none" />],
        ["Last failure", last_failure_reason ?? "none"]
      ]}
    />
  )
