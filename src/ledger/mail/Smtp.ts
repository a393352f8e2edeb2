/** Connections to the mail server, with a limit on how long each attempt may take. */
import { Context, Effect, Layer, Redacted, Schema, type Scope } from "effect"
import { Settings } from "../../platform/config/Config.ts"
import { mailServerOf } from "../../platform/config/MailSettings.ts"
import type { OutgoingMail, SmtpFailure } from "./SmtpSession.ts"
import { makeSmtpThread } from "./SmtpThread.ts"

/** Seconds for a connection with TLS and sign-in, and for a mail. */
const attemptSecondsMax = 60

export class MailNotSent extends Schema.TaggedError<MailNotSent>()("MailNotSent", {
  /** As status_550, or what failed before the server replied. */
  reason: Schema.String,
  /** Whether the same mail would fail again. */
  isFinal: Schema.Boolean,
  /** Whether the connection can take another mail. */
  isConnected: Schema.Boolean
}) {}

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
    Effect.gen(function* () {
      const { mailFrom: from, smtpUrl } = yield* Settings
      const server = smtpUrl === undefined ? undefined : mailServerOf(Redacted.value(smtpUrl))
      if (server === undefined || from === undefined) return Smtp.of({ connect: Effect.fail(mailIsOff) })
      const connect = yield* makeSmtpThread({ server, from })
      return Smtp.of({
        connect: Effect.map(
          inTime(connect),
          (connection): MailConnection => ({ send: (mail) => inTime(connection.send(mail)) })
        )
      })
    })
  )
}

const mailIsOff = new MailNotSent({ reason: "off", isFinal: false, isConnected: false })

const inTime = <A, R>(attempt: Effect.Effect<A, SmtpFailure, R>) =>
  Effect.timeoutOrElse(
    Effect.mapError(attempt, (failure) => new MailNotSent(failure)),
    {
      duration: `${attemptSecondsMax} seconds`,
      orElse: () => Effect.fail(new MailNotSent({ reason: "timeout", isFinal: false, isConnected: false }))
    }
  )
