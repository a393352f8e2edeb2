/**
 * Connections to the mail server. What must stay true: nothing is sent to a server without the TLS that the settings require,
 * no failure contains an address or what the server says, and a connection that is given up is closed.
 */
import { Context, Effect, Layer, Redacted, Schema, type Scope } from "effect"
import MailComposer from "nodemailer/lib/mail-composer"
import SMTPConnection from "nodemailer/lib/smtp-connection"
import { Settings } from "../../platform/config/Config.ts"
import { type MailServer, mailServerOf } from "../../platform/config/MailSettings.ts"
import type { RenderedMail } from "./MailTemplates.ts"

/** For the name look-up and the connection, for the greeting, and for each reply. */
const connectMillisMax = 10_000
const replyMillisMax = 30_000
/** Seconds for a connection with TLS and sign-in, and for a mail. */
const attemptSecondsMax = 60
/** Bytes of a reply, and of a mail with all its parts. */
const replyBytesMax = 65_536
const mailBytesMax = 524_288

export class MailNotSent extends Schema.TaggedError<MailNotSent>()("MailNotSent", {
  /** As status_550, or what failed before the server replied. */
  reason: Schema.String,
  /** Whether the same mail would fail again. */
  isFinal: Schema.Boolean,
  /** Whether the connection can take another mail. */
  isConnected: Schema.Boolean
}) {}

interface OutgoingMail extends RenderedMail {
  readonly id: string
  readonly to: { readonly address: string; readonly name?: string | undefined }
  readonly created_at: number
}

export interface MailConnection {
  send(mail: OutgoingMail): Effect.Effect<void, MailNotSent>
}

export class Smtp extends Context.Service<
  Smtp,
  {
    /** Connects and signs in; closes the connection with the scope. */
    readonly connect: Effect.Effect<MailConnection, MailNotSent, Scope.Scope>
  }
>()("licensing/ledger/mail/Smtp") {
  static readonly layer = Layer.effect(
    Smtp,
    Settings.useSync(({ mailFrom, smtpUrl }) => {
      const server = smtpUrl === undefined ? undefined : mailServerOf(Redacted.value(smtpUrl))
      if (server === undefined || mailFrom === undefined) return Smtp.of({ connect: Effect.fail(mailIsOff) })
      const domain = mailFrom.address.slice(mailFrom.address.lastIndexOf("@") + 1)
      const compose = ({ created_at, html, id, subject, text, to }: OutgoingMail) =>
        new MailComposer({
          from: { address: mailFrom.address, name: mailFrom.name ?? "" },
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
      return Smtp.of({
        connect: Effect.map(
          inTime(open(server, domain)),
          (connection): MailConnection => ({ send: (mail) => inTime(send(connection, compose(mail))) })
        )
      })
    })
  )
}

const mailIsOff = new MailNotSent({ reason: "off", isFinal: false, isConnected: false })

const inTime = <A, R>(attempt: Effect.Effect<A, MailNotSent, R>) =>
  Effect.timeoutOrElse(attempt, {
    duration: `${attemptSecondsMax} seconds`,
    orElse: () => Effect.fail(new MailNotSent({ reason: "timeout", isFinal: false, isConnected: false }))
  })

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

const open = (server: MailServer, name: string) =>
  Effect.acquireRelease(
    Effect.callback<SMTPConnection, MailNotSent>((resume) => {
      const connection = new SMTPConnection(optionsOf(server, name))
      const fail = (error: unknown) => {
        resume(Effect.fail(notConnected(error)))
        connection.close()
      }
      // The listener stays: an error without one would end the process. Closing is an end, too, so it comes last.
      connection.on("error", fail)
      connection.once("end", () => fail({ code: "ECONNECTION" }))
      connection.connect((error) => {
        if (error) return fail(error)
        if (server.user === undefined) return resume(Effect.succeed(connection))
        const credentials = { user: server.user, pass: server.password }
        connection.login({ credentials }, (refused) => (refused ? fail(refused) : resume(Effect.succeed(connection))))
      })
      return Effect.sync(() => connection.close())
    }),
    (connection) => Effect.sync(() => (connection.destroyed ? undefined : connection.quit())),
    { interruptible: true }
  )

const send = (connection: SMTPConnection, message: ReturnType<MailComposer["compile"]>) =>
  Effect.callback<void, MailNotSent>((resume) => {
    const fail = (error: unknown) => resume(Effect.fail(notSent(error, false)))
    const ended = () => fail({ code: "ECONNECTION" })
    connection.once("end", ended)
    message.build((unbuilt, bytes) => {
      if (unbuilt || bytes === undefined) return fail({ code: "EMESSAGE" })
      if (bytes.length > mailBytesMax)
        return resume(Effect.fail(new MailNotSent({ reason: "too_large", isFinal: true, isConnected: true })))
      const { from, to } = message.getEnvelope()
      connection.send({ from, to, size: bytes.length }, bytes, (error) => {
        connection.off("end", ended)
        if (!error) return resume(Effect.void)
        // Only a reply leaves the connection in a known state, from which it is reset.
        if (error.responseCode === undefined || error.responseCode === 421) return fail(error)
        connection.reset((failed) => resume(Effect.fail(notSent(error, !failed))))
      })
    })
    return Effect.sync(() => connection.close())
  })

interface Failure {
  readonly code?: string | undefined
  readonly command?: string | undefined
  readonly message?: string | undefined
  readonly responseCode?: number | undefined
}

const reasons: { readonly [code: string]: string } = {
  EAUTH: "sign_in_refused",
  ETLS: "tls_failed",
  EDNS: "address_unknown",
  ETIMEDOUT: "timeout"
}

/** In the messages of certificates and TLS, which have no code of their own. */
const aboutTls = /certificate|altnames|\b(SSL|TLS)\b/i

/** What the server replies may contain the address, so only its number is kept. */
const reasonOf = ({ code = "", message = "", responseCode }: Failure): string =>
  reasons[code === "ESOCKET" && aboutTls.test(message) ? "ETLS" : code] ??
  (responseCode === undefined ? "connection_failed" : `status_${responseCode}`)

const notConnected = (error: unknown) =>
  new MailNotSent({ reason: reasonOf(error as Failure), isFinal: false, isConnected: false })

/** Replies that ask for a sign-in or TLS (RFC 4954, RFC 3207): another setting helps, so the mail is kept. */
const aboutTheClient = new Set([530, 534, 535, 538])

const notSent = (error: unknown, isConnected: boolean) => {
  const failure = error as Failure
  const { code, command, responseCode = 0 } = failure
  const isAboutMail = command === "RCPT TO" || command === "DATA" || (code === "EENVELOPE" && command === "API")
  const isRefused = (responseCode >= 500 && !aboutTheClient.has(responseCode)) || command === "API"
  return new MailNotSent({ reason: reasonOf(failure), isFinal: isAboutMail && isRefused, isConnected })
}
