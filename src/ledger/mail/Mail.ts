/**
 * Queues mails: in the transaction of the change that they tell, so that neither is lost without the other. A worker
 * sends them. What must stay true: nothing of a mail is stored in clear, because it may contain a license key.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { type Refusal, refuse } from "../../contract/api/Failure.ts"
import { Identifiers } from "../../contract/api/Identifier.ts"
import { Settings } from "../../platform/config/Config.ts"
import { hmacKey, hmacSha256 } from "../../platform/signing/Hmac.ts"
import { MasterKey } from "../../platform/signing/MasterKey.ts"
import { countMails, insertMails, type MailRow, sealedFor } from "./MailRows.ts"
import type { MailContent, NewMail } from "./QueuedMail.ts"

/** After a day a mail is given up and its row removed, with the key in it. */
const waitMillisMax = 86_400_000
/** Waiting mails: an hour of sending at 28 a second. */
const queueMax = 100_000
/** Bytes of a mail's address, names and values: eight texts of the longest names and keys. */
const contentBytesMax = 16_384

export class Mail extends Context.Service<
  Mail,
  {
    /** Whether the settings name a mail server and a sender. */
    readonly isOn: boolean
    /** Refuses a request for a mail if mail is off, or too many mails wait. `field` of the request asks for it. */
    admit(field: string): Effect.Effect<void, Refusal<"VALIDATION_ERROR" | "NOT_READY">>
    /** Queues mails, within the running transaction if there is one. Without mail it does nothing. */
    queue(...mails: ReadonlyArray<NewMail>): Effect.Effect<void>
    /** The rows of mails, for a caller who writes them with `insertMails` in a transaction of its own. */
    rowsOf(mails: ReadonlyArray<NewMail>): Effect.Effect<ReadonlyArray<MailRow>>
  }
>()("licensing/ledger/mail/Mail") {
  static readonly layer = Layer.effect(
    Mail,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Identifiers
      const masterKey = yield* MasterKey
      const { smtpUrl } = yield* Settings
      const isOn = smtpUrl !== undefined

      const rowOf = Effect.fnUntraced(function* ({ expires_at, kind, license_id, to, values }: NewMail) {
        const id = yield* ids.make("mail")
        const now = yield* Clock.currentTimeMillis
        const content = Buffer.from(JSON.stringify({ to, values } satisfies MailContent))
        if (content.length > contentBytesMax) return yield* Effect.die(new Error(`A ${kind} mail is too large`))
        const row: MailRow = {
          id,
          kind,
          license_id,
          recipient_hash: recipientHash(masterKey.derive(recipientPurpose)!.secret, to.address),
          content_sealed: yield* masterKey.seal(content, sealedFor(id)),
          expires_at: Math.min(expires_at ?? Number.POSITIVE_INFINITY, now + waitMillisMax),
          created_at: now
        }
        return row
      })
      const rowsOf = (mails: ReadonlyArray<NewMail>) => (isOn ? Effect.forEach(mails, rowOf) : Effect.succeed([]))

      const queue = Effect.fn("Mail.queue")(function* (...mails: ReadonlyArray<NewMail>) {
        const rows = yield* rowsOf(mails)
        if (rows.length > 0) yield* insertMails(sql, rows)
      }, Effect.orDie)

      // Counting takes up to ten milliseconds, and the number changes little in a second.
      const isFull = yield* Effect.cachedWithTTL(
        Effect.map(Effect.orDie(countMails(sql, queueMax)), ([row]) => row!.count >= queueMax),
        "1 second"
      )
      const admit = Effect.fn("Mail.admit")(function* (field: string) {
        if (!isOn) return yield* mailIsOff(field)
        if (yield* isFull) return yield* queueIsFull(field)
      })
      return Mail.of({ isOn, admit, queue, rowsOf })
    })
  )
}

const mailIsOff = (field: string) =>
  refuse(
    "VALIDATION_ERROR",
    "The service sends no mail: leave the field out, or ask the operator to set LICENSING_SMTP_URL and LICENSING_MAIL_FROM.",
    field
  )

const queueIsFull = (field: string) =>
  refuse(
    "NOT_READY",
    `The queue of ${queueMax} mails is full: leave the field out, or send the request again later.`,
    field,
    { isTemporary: true }
  )

const recipientPurpose = "mail recipients"

/** All hashes that may find the mails to an address. */
export const recipientHashes = (masterKey: MasterKey["Service"], address: string): ReadonlyArray<Uint8Array> =>
  masterKey.deriveAll(recipientPurpose).map((secret) => recipientHash(secret, address))

/**
 * Finds the mails to an address without storing it. The secret is not in the database, so a copy of it cannot be searched for guessed
 * addresses. Case is ignored, as by nearly all mail servers.
 */
const recipientHash = (secret: Uint8Array, address: string): Uint8Array =>
  hmacSha256(hmacKey(secret), address.toLowerCase())
