/**
 * The endpoints that this node delivers to, held in memory with their secrets opened. Each look-up names the revision that the
 * queue was read with, so an edit or a new secret holds for every delivery that is taken after it.
 */
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { columns } from "../postgres/Parameters.ts"
import { MasterKey } from "../signing/MasterKey.ts"
import type { SigningKeys } from "./Message.ts"
import * as Secret from "./Secret.ts"
import { secretPlace } from "./Webhooks.ts"

export interface CachedEndpoint {
  readonly id: string
  readonly revision: number
  readonly url: URL
  /**
   * The keys to sign with at an instant: the current secret's, and the one's before while its time is not over. None where
   * the secret can not be opened: one endpoint's trouble must not stop the others.
   */
  readonly keysAt: (now: number) => ReadonlyArray<SigningKeys>
}

/** Endpoints in memory; those not needed for longest are forgotten beyond. */
const knownMax = 10_000

interface EndpointRow {
  readonly id: string
  readonly revision: number
  readonly url: string
  readonly secret_sealed: Uint8Array
  readonly previous_secret_sealed: Uint8Array | null
  readonly previous_secret_until: number | null
}

export class EndpointCache extends Context.Service<
  EndpointCache,
  {
    /** The endpoints of these ids as of these revisions or later. One that was deleted meanwhile is missing. */
    find(revisions: ReadonlyMap<string, number>): Effect.Effect<ReadonlyMap<string, CachedEndpoint>>
  }
>()("licensing/webhooks/EndpointCache") {
  static readonly layer = Layer.effect(
    EndpointCache,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const masterKey = yield* MasterKey
      const known = new Map<string, CachedEndpoint>()

      const keysOf = Effect.fnUntraced(
        function* (sealed: Uint8Array | null, id: string) {
          if (sealed === null) return []
          const secret = Buffer.from(yield* masterKey.open(sealed, secretPlace(id))).toString()
          return [Secret.keysOf(secret)]
        },
        (keys, _, id) =>
          Effect.catchTag(keys, "MasterKeyMismatch", (error) =>
            Effect.as(
              Effect.logError("A webhook endpoint's secret can not be opened.", { webhook: id }, error.message),
              []
            )
          )
      )

      const opened = Effect.fnUntraced(function* (row: EndpointRow) {
        const current = yield* keysOf(row.secret_sealed, row.id)
        const previous = yield* keysOf(row.previous_secret_sealed, row.id)
        const until = row.previous_secret_until ?? 0
        const keysAt = (now: number) => (now < until && current.length > 0 ? [...current, ...previous] : current)
        return { id: row.id, revision: row.revision, url: new URL(row.url), keysAt } satisfies CachedEndpoint
      })

      const find = Effect.fn("KnownEndpoints.find")(function* (revisions: ReadonlyMap<string, number>) {
        const isKnown = (id: string) => (known.get(id)?.revision ?? 0) >= revisions.get(id)!
        const wanted = Array.from(revisions.keys()).filter((id) => !isKnown(id))
        if (wanted.length > 0) {
          const rows = yield* sql<EndpointRow>`
            SELECT id, revision, url, secret_sealed, previous_secret_sealed, previous_secret_until
            FROM webhook_endpoints WHERE id = ANY(${columns.text(wanted)})`
          for (const row of rows) known.set(row.id, yield* opened(row))
        }
        const found = new Map<string, CachedEndpoint>()
        for (const id of revisions.keys()) {
          const endpoint = known.get(id)
          if (endpoint === undefined || !isKnown(id)) continue
          found.set(id, endpoint)
          // Moved to the end: the first ones are those not needed for longest.
          known.delete(id)
          known.set(id, endpoint)
        }
        for (const id of known.keys()) {
          if (known.size <= knownMax) break
          known.delete(id)
        }
        return found
      }, Effect.orDie)

      return EndpointCache.of({ find })
    })
  )
}
