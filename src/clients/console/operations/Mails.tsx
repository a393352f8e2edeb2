/** The health of mail. */

import type { MailHealth } from "../../../ledger/mail/MailHealth.ts"
import { countOf, sentenceOf } from "../parts/Format.ts"
import { Facts, Status, Time } from "../parts/Show.tsx"

const failures: Readonly<Record<string, string>> = {
  timeout: "The mail server did not respond in time",
  connection_failed: "The mail server could not be reached",
  address_unknown: "The mail server’s name is not known",
  tls_failed: "The mail server’s certificate was not accepted",
  sign_in_refused: "The mail server refused the sign-in",
  sender_refused: "The mail server refused the sender: see LICENSING_MAIL_FROM",
  too_large: "A mail was larger than the mail server accepts"
}

const failureOf = (reason: string): string => {
  const status = /^status_(\d+)$/.exec(reason)?.[1]
  return status === undefined ? (failures[reason] ?? sentenceOf(reason)) : `Refused by the mail server (${status})`
}

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
        ["Last failure", last_failure_reason === undefined ? "none" : failureOf(last_failure_reason)]
      ]}
    />
  )
