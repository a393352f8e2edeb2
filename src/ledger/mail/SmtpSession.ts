/**
 * One connection to the mail server. What must stay true: nothing is sent to a server without the TLS that the settings require,
 * no failure contains an address or what the server says, and a connection that is given up is closed.
 */
import MailComposer from "nodemailer/lib/mail-composer"
import SMTPConnection, { type Envelope as SmtpEnvelope } from "nodemailer/lib/smtp-connection"
import type { MailSender, MailServer } from "../../platform/config/MailSettings.ts"
import type { RenderedMail } from "./MailTemplates.ts"

/** For the name look-up and the connection, for the greeting, and for each reply. */
const connectMillisMax = 10_000
const replyMillisMax = 30_000
/** Bytes of a reply, and of a mail with all its parts. */
const replyBytesMax = 65_536
const mailBytesMax = 524_288

/** Whose mails are sent, and by which server. */
export interface Sender {
  readonly server: MailServer
  readonly from: MailSender
}

export interface OutgoingMail extends RenderedMail {
  readonly id: string
  readonly to: { readonly address: string; readonly name?: string | undefined }
  readonly created_at: number
}

/** Why the server did not take a connection or a mail. */
export interface SmtpFailure {
  /** As status_550, or what failed before the server replied. */
  readonly reason: string
  /** Whether the same mail would fail again. */
  readonly isFinal: boolean
  /** Whether the connection can take another mail. */
  readonly isConnected: boolean
}

type Done = (failure: SmtpFailure | undefined) => void

export interface SmtpSession {
  /** Calls back once. One mail at a time. */
  send(mail: OutgoingMail, done: Done): void
  /** Says goodbye to the server. */
  end(): void
  /** Closes the connection at once. */
  drop(): void
}

/** Connects and signs in. Calls back once, with a failure if there is no connection. */
export const openSession = ({ from, server }: Sender, done: Done): SmtpSession => {
  const domain = from.address.slice(from.address.lastIndexOf("@") + 1)
  const connection = new SMTPConnection(optionsOf(server, domain))
  let onEnd: Done | undefined = done
  let envelope: Envelope = {}
  const settle = (failure?: SmtpFailure) => {
    const settled = onEnd
    onEnd = undefined
    settled?.(failure)
  }
  const fail = (error: unknown) => {
    settle(failureOf(refusalOf(envelope) ?? error, false))
    connection.close()
  }
  // The listener stays: an error without one would end the process. Closing is an end, too.
  connection.on("error", fail)
  connection.once("end", () => fail({ code: "ECONNECTION" }))
  connection.connect((error) => {
    if (error) return fail(error)
    if (server.user === undefined) return settle()
    connection.login({ credentials: { user: server.user, pass: server.password } }, (refused) =>
      refused ? fail(refused) : settle()
    )
  })
  return {
    send: (mail, sent) => {
      onEnd = sent
      envelope = {}
      if (connection.destroyed) return fail({ code: "ECONNECTION" })
      const message = compose(mail, from, domain)
      message.build((unbuilt, bytes) => {
        if (unbuilt || bytes === undefined) return settle(failureOf({ code: "EMESSAGE" }, true))
        if (bytes.length > mailBytesMax) return settle({ ...tooLarge, isConnected: true })
        const { from: sender, to } = message.getEnvelope()
        envelope = { from: sender, to, size: bytes.length }
        connection.send(envelope, bytes, (error) => {
          if (!error) return settle()
          // Only a reply leaves the connection in a known state, from which it is reset. It also counts if the server then closes it.
          const isKnown = error.responseCode !== undefined || isTooLarge(error)
          if (!isKnown || error.responseCode === 421) return fail(error)
          onEnd = (failed) => sent(failureOf(error, failed === undefined))
          connection.reset((failed) => (failed ? fail(failed) : settle()))
        })
      })
    },
    end: () => {
      if (!connection.destroyed) connection.quit()
    },
    drop: () => connection.close()
  }
}

const optionsOf = ({ host, port, tls }: MailServer, name: string) => ({
  ...{ host, port, name },
  secure: tls === "implicit",
  requireTLS: tls === "required",
  ignoreTLS: tls === "none",
  tls: { minVersion: "TLSv1.2" as const },
  connectionTimeout: connectMillisMax,
  dnsTimeout: connectMillisMax,
  greetingTimeout: replyMillisMax,
  socketTimeout: replyMillisMax,
  maxResponseSize: replyBytesMax
})

const compose = ({ created_at, html, id, subject, text, to }: OutgoingMail, from: MailSender, domain: string) =>
  new MailComposer({
    from: { address: from.address, name: from.name ?? "" },
    to: { address: to.address, name: to.name ?? "" },
    subject,
    text,
    html,
    messageId: `<${id}@${domain}>`,
    date: new Date(created_at),
    // Out-of-office replies are not sent to it (RFC 3834).
    headers: { "Auto-Submitted": "auto-generated" },
    disableFileAccess: true,
    disableUrlAccess: true
  }).compile()

interface SmtpError {
  readonly code?: string | undefined
  readonly command?: string | undefined
  readonly message?: string | undefined
  readonly response?: string | undefined
  readonly responseCode?: number | undefined
}

/** The connection notes refused commands here while it waits for the replies to those that it sent with them. */
interface Envelope extends SmtpEnvelope {
  readonly mailError?: SmtpError
  readonly rejectedErrors?: ReadonlyArray<SmtpError>
}

/** Why a mail cannot be sent, although the replies to its later commands are missing. */
const refusalOf = ({ mailError, rejectedErrors }: Envelope): SmtpError | undefined =>
  mailError ?? rejectedErrors?.at(-1)

const reasons: { readonly [code: string]: string } = {
  EAUTH: "sign_in_refused",
  ETLS: "tls_failed",
  EDNS: "address_unknown",
  ETIMEDOUT: "timeout"
}

/** In the messages of certificates and TLS, which have no code of their own. */
const aboutTls = /certificate|altnames|\b(SSL|TLS)\b/i

/** Replies about a mail's size that say so in their enhanced status (RFC 3463). */
const aboutSize = /^5\d\d[ -]5\.(2\.3|3\.4)\b/

/** Whether the server accepts only smaller mails. The sender is refused with 552, or not sent to a server that announced its limit (RFC 1870). */
const isTooLarge = ({ code, command, response = "", responseCode }: SmtpError): boolean =>
  (command === "MAIL FROM" && (responseCode === 552 || code === "EMESSAGE")) || aboutSize.test(response)

/** Exchange Online refuses the sender only after the message, with one of these texts. */
const aboutSender = /SendAsDenied|permissions? to send as this sender/i

/** The parameters of MAIL FROM, which are those of one mail: its size, and whether its recipient needs SMTPUTF8. */
const aboutParameters = 555

/** What the server replies may contain the address, so only its number is kept. All mails have the same sender. */
const reasonOf = ({ code = "", command, message = "", response = "", responseCode }: SmtpError): string => {
  const known = reasons[code === "ESOCKET" && aboutTls.test(message) ? "ETLS" : code]
  if (known !== undefined) return known
  if (responseCode === undefined) return "connection_failed"
  if (aboutSender.test(response)) return senderRefused
  if (command !== "MAIL FROM" || responseCode < 500 || responseCode === aboutParameters) return `status_${responseCode}`
  return aboutTheClient.has(responseCode) ? "sign_in_refused" : senderRefused
}

const senderRefused = "sender_refused"

const tooLarge = { reason: "too_large", isFinal: true } as const

/** Replies that ask for a sign-in or TLS (RFC 4954, RFC 3207): another setting helps, so the mail is kept. */
const aboutTheClient = new Set([530, 534, 535, 538])

const failureOf = (error: unknown, isConnected: boolean): SmtpFailure => {
  const failure = error as SmtpError
  if (isTooLarge(failure)) return { ...tooLarge, isConnected }
  const { code, command, responseCode = 0 } = failure
  const isAboutMail = command === "RCPT TO" || command === "DATA" || (code === "EENVELOPE" && command === "API")
  const isRefused = (responseCode >= 500 && !aboutTheClient.has(responseCode)) || command === "API"
  const reason = reasonOf(failure)
  return { reason, isFinal: isAboutMail && isRefused && reason !== senderRefused, isConnected }
}
