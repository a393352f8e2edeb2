/**
 * Sessions of the customer's page. They are rows, so that every node knows them and a sign-out ends them at once. The cookie has a
 * random token, of which only the hash is stored.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { generateOpaque } from "../../access/Tokens.ts"
import { Identifiers } from "../../contract/api/Identifier.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { bytes, instant } from "../../platform/postgres/driver/Parameters.ts"
import { transaction } from "../../platform/postgres/queries/Sql.ts"
import { sha256 } from "../../platform/signing/Digest.ts"
import { exclusivelyUntilDone } from "../../platform/workers/Exclusive.ts"
import type { PortalOwner, PortalSession } from "./PortalAccess.ts"

type Session = PortalSession["Service"]

/** A working day. A sign-in is not extended by use. */
export const sessionMillis = 8 * 3_600_000

/** Rows per statement. */
const batchMax = 5_000

export class PortalSessions extends Context.Service<
  PortalSessions,
  {
    begin(owner: PortalOwner): Effect.Effect<{ readonly token: string; readonly session: Session }>
    /** Undefined if the session has ended, or the license has another key since. */
    find(token: string): Effect.Effect<Session | undefined>
    /** Ends the session of a token. */
    end(token: string): Effect.Effect<void>
    /** Deletes what has expired. */
    readonly pass: Effect.Effect<void>
  }
>()("licensing/licensing/portal/PortalSessions") {
  static readonly layer = Layer.effect(
    PortalSessions,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const events = yield* EventLog
      const ids = yield* Identifiers
      const random = yield* SecureRandom.SecureRandom
      const newToken = Effect.provideService(generateOpaque, SecureRandom.SecureRandom, random)

      const begin = Effect.fn("PortalSessions.begin")(function* (owner: PortalOwner) {
        const token = yield* newToken
        const id = yield* ids.make("portalSession")
        const now = yield* Clock.currentTimeMillis
        const expiresAt = now + sessionMillis
        const { licenseId, keyHash, address } = { licenseId: null, keyHash: null, address: null, ...owner }
        yield* sql`
          INSERT INTO portal_sessions (id, token_hash, license_id, key_hash, address, created_at, expires_at)
          VALUES (${id}, ${bytes(sha256(token))}, ${licenseId}, decode(${keyHash}, 'hex'), ${address}, ${instant(now)},
            ${instant(expiresAt)})`
        // An event of the license: who reads the events of the license or of its product finds it.
        yield* events.append({
          event_type: "portal.signed_in",
          ...(owner.kind === "license"
            ? { resource_type: "license", resource_id: owner.licenseId, metadata: { by: "key", session_id: id } }
            : { resource_type: "portal_session", resource_id: id, metadata: { by: "link" } })
        })
        return { token, session: { id, owner, expiresAt } }
      }, transaction(sql))

      const find = Effect.fn("PortalSessions.find")(function* (token: string) {
        const now = instant(yield* Clock.currentTimeMillis)
        const [row] = yield* sql<Row>`
          SELECT s.id, s.license_id, encode(s.key_hash, 'hex') AS key_hash, s.address, s.expires_at FROM portal_sessions s
          WHERE token_hash = ${bytes(sha256(token))} AND expires_at > ${now}
            AND (address IS NOT NULL OR EXISTS (SELECT FROM licenses l WHERE l.id = license_id AND l.key_hash = s.key_hash))`
        return row && sessionOf(row)
      }, Effect.orDie)

      const end = Effect.fn("PortalSessions.end")(function* (token: string) {
        yield* sql`DELETE FROM portal_sessions WHERE token_hash = ${bytes(sha256(token))}`
      }, Effect.orDie)

      const remove = (table: "portal_sessions" | "portal_links") =>
        Effect.gen(function* () {
          const now = instant(yield* Clock.currentTimeMillis)
          const removed = yield* sql`
            DELETE FROM ${sql(table)} WHERE token_hash IN (
              SELECT token_hash FROM ${sql(table)} WHERE expires_at <= ${now} ORDER BY expires_at LIMIT ${batchMax}
            ) RETURNING token_hash`
          return removed.length
        })
      const untilDone = (table: "portal_sessions" | "portal_links") =>
        exclusivelyUntilDone(sql, "portal-retention", batchMax, remove(table))
      const pass = Effect.andThen(untilDone("portal_sessions"), untilDone("portal_links"))

      return PortalSessions.of({ begin, find, end, pass: Effect.orDie(Effect.withSpan(pass, "PortalSessions.pass")) })
    })
  )
}

interface Row {
  readonly id: string
  readonly license_id: string | null
  readonly key_hash: string | null
  readonly address: string | null
  readonly expires_at: number
}

const sessionOf = ({ address, expires_at, id, key_hash, license_id }: Row): Session => ({
  id,
  expiresAt: expires_at,
  owner:
    address === null ? { kind: "license", licenseId: license_id!, keyHash: key_hash! } : { kind: "address", address }
})
