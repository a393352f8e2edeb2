/**
 * Links by mail that begin a session of the customer's page. What must stay true: the response to a request for a link, and its time,
 * is the same for every address. So the request only puts the address into a queue in memory; a fiber looks it up.
 */
import { Clock, Context, Effect, Layer, Queue } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { generateOpaque } from "../../access/Tokens.ts"
import { type Refusal, refuse } from "../../contract/api/Failure.ts"
import { Mail } from "../../ledger/mail/Mail.ts"
import { Settings } from "../../platform/config/Config.ts"
import { bytes, instant } from "../../platform/postgres/driver/Parameters.ts"
import { transaction } from "../../platform/postgres/queries/Sql.ts"
import { sha256 } from "../../platform/signing/Digest.ts"
import { PortalLicenses } from "./PortalLicenses.ts"

const linkMinutes = 15
/** Links of one address that are valid at the same time, so that a mailbox cannot be flooded. */
const linksMax = 3
/** Requests that wait. */
const queueMax = 1_000

interface LinkRequest {
  readonly address: string
  readonly language?: string
}

const noMail = refuse("VALIDATION_ERROR", "The service sends no links: sign in with a license key.", "address")
const isFull = refuse("NOT_READY", "Too many links are requested: try again in a moment.", undefined, {
  isTemporary: true
})
const invalidLink = refuse("TOKEN_INVALID", "The link was used already or is older than 15 minutes: request a new one.")

export class PortalLinks extends Context.Service<
  PortalLinks,
  {
    /** Whether links can be sent. */
    readonly isOn: boolean
    /** Sends a link, if licenses belong to the address. */
    request(request: LinkRequest): Effect.Effect<void, Refusal<"NOT_READY" | "VALIDATION_ERROR">>
    /** The address of a link, once. */
    redeem(token: string): Effect.Effect<string, Refusal<"TOKEN_INVALID">>
  }
>()("licensing/licensing/portal/PortalLinks") {
  static readonly layer = Layer.effect(
    PortalLinks,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const mail = yield* Mail
      const licenses = yield* PortalLicenses
      const random = yield* SecureRandom.SecureRandom
      const { baseUrl } = yield* Settings
      const isOn = mail.isOn && baseUrl !== undefined
      const waiting = yield* Queue.dropping<LinkRequest>(queueMax)

      const write = Effect.fnUntraced(function* ({ address, language }: LinkRequest) {
        const token = yield* Effect.provideService(generateOpaque, SecureRandom.SecureRandom, random)
        const now = yield* Clock.currentTimeMillis
        const expiresAt = now + linkMinutes * 60_000
        // Nodes count the links of an address one after another.
        yield* sql`SELECT pg_advisory_xact_lock(hashtextextended(${`licensing/portal_links/${address}`}, 0))`
        const written = yield* sql`
          INSERT INTO portal_links (token_hash, address, expires_at)
          SELECT ${bytes(sha256(token))}, ${address}, ${instant(expiresAt)}
          WHERE (SELECT count(*) FROM portal_links WHERE address = ${address} AND expires_at > ${instant(now)}) < ${linksMax}
          RETURNING address`
        if (written.length === 0) return
        // After the #, which browsers do not send.
        const link = `${baseUrl}/portal#link=${token}`
        yield* mail.queue({
          kind: "sign_in_link",
          to: { address, ...(language !== undefined && { language }) },
          values: { link, minutes: linkMinutes },
          expires_at: expiresAt
        })
      }, transaction(sql))

      const send = Effect.fn("PortalLinks.send")(function* (request: LinkRequest) {
        // By the database's rules, which licenses are found by: JavaScript makes other small letters of a few characters.
        const [row] = yield* sql<{ readonly address: string }>`SELECT lower(${request.address}) AS address`
        const { address } = row!
        const { items } = yield* licenses.list({ kind: "address", address }, { limit: 1 })
        if (items.length > 0) yield* write({ ...request, address })
      })
      const sending = Effect.flatMap(Queue.take(waiting), (request) =>
        Effect.catchCause(send(request), (cause) => Effect.logError("A sign-in link was not sent.", cause))
      )
      yield* Effect.forkScoped(Effect.forever(sending))

      const request = Effect.fn("PortalLinks.request")(function* (asked: LinkRequest) {
        if (!isOn) return yield* noMail
        if (!Queue.offerUnsafe(waiting, asked)) return yield* isFull
      })

      const redeem = Effect.fn("PortalLinks.redeem")(function* (token: string) {
        const now = instant(yield* Clock.currentTimeMillis)
        const [row] = yield* Effect.orDie(sql<{ readonly address: string }>`
          DELETE FROM portal_links WHERE token_hash = ${bytes(sha256(token))} AND expires_at > ${now} RETURNING address`)
        return row === undefined ? yield* invalidLink : row.address
      })

      return PortalLinks.of({ isOn, request, redeem })
    })
  )
}
