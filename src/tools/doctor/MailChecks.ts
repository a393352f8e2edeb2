/** Connects to the mail server as the service does, with TLS and sign-in, and sends nothing. */
import { Effect, Redacted, Result } from "effect"
import { type MailNotSent, Smtp } from "../../ledger/mail/Smtp.ts"
import { Settings } from "../../platform/config/Config.ts"
import { mailServerOf } from "../../platform/config/MailSettings.ts"
import { findingsOf } from "./Check.ts"

export const checkMail = Effect.gen(function* () {
  const { fail, ok } = findingsOf("mail")
  const { smtpUrl } = yield* Settings
  const server = smtpUrl === undefined ? undefined : mailServerOf(Redacted.value(smtpUrl))
  if (server === undefined) return ok("Off: LICENSING_SMTP_URL is not set")
  const name = `${server.host}:${server.port}`
  const connected = yield* Effect.result(
    Effect.scoped(
      Effect.provide(
        Smtp.use(({ connect }) => connect),
        Smtp.layer
      )
    )
  )
  if (Result.isSuccess(connected)) return ok(`${name} can be used; whether it accepts LICENSING_MAIL_FROM is not tried`)
  return fail(`${name} takes no mails: ${connected.failure.reason}`, adviceOf(connected.failure))
})

const adviceOf = ({ reason }: MailNotSent): string =>
  reason === "tls_failed"
    ? "Give the server a certificate that this machine trusts for its name (NODE_EXTRA_CA_CERTS), and STARTTLS for smtp://."
    : reason === "sign_in_refused"
      ? "Correct user and password in LICENSING_SMTP_URL."
      : "Correct LICENSING_SMTP_URL, or start the server; see also firewalls."
