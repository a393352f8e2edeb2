/**
 * Caches the endpoints that this node delivers to, with their decrypted secrets. Each lookup names the revision that
 * the claim read, so an edit applies to every later claim. A cached endpoint of any other revision is read again, also
 * of a higher one: a failover may have lost its edit.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Count } from "../../contract/api/Int64.ts"
import { Timestamp } from "../../contract/api/Timestamp.ts"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import { decodeRows } from "../../platform/postgres/queries/Sql.ts"
import { MasterKey } from "../../platform/signing/MasterKey.ts"
import type { SigningKeys } from "./Message.ts"
import * as Secret from "./Secret.ts"
import { secretPlace } from "./Webhooks.ts"

export interface CachedEndpoint {
  readonly id: string
  readonly revision: number
  readonly url: URL
  /**
   * The signing keys at an instant: those of the current secret, and of the previous one during the overlap. Empty if
   * the secret cannot be decrypted, so that the fault of one endpoint does not stop the others.
   */
  readonly keysAt: (now: number) => ReadonlyArray<SigningKeys>
}

/** Cached endpoints. Above this the least recently used ones are removed. */
const cachedMax = 10_000

const EndpointRow = Schema.Struct({
  id: Schema.String,
  revision: Count,
  url: Schema.String,
  secret_sealed: Schema.Uint8Array,
  previous_secret_sealed: Schema.optionalKey(Schema.Uint8Array),
  previous_secret_until: Schema.optionalKey(Timestamp)
})
const decodeEndpoints = decodeRows(EndpointRow)

export class EndpointCache extends Context.Service<
  EndpointCache,
  {
    /** The endpoints with these ids, at these revisions or as they are now, except deleted ones. */
    find(revisions: ReadonlyMap<string, number>): Effect.Effect<ReadonlyMap<string, CachedEndpoint>>
  }
>()("licensing/ledger/webhooks/EndpointCache") {
  static readonly layer = Layer.effect(
    EndpointCache,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const masterKey = yield* MasterKey
      const cache = new Map<string, CachedEndpoint>()

      const keysOf = Effect.fnUntraced(
        function* (sealed: Uint8Array | undefined, id: string) {
          if (sealed === undefined) return []
          const secret = Buffer.from(yield* masterKey.open(sealed, secretPlace(id))).toString()
          return [Secret.keysOf(secret)]
        },
        (keys, _, id) =>
          Effect.catchTag(keys, "MasterKeyMismatch", (error) =>
            Effect.as(
              Effect.logError("A webhook endpoint's secret cannot be decrypted.", { webhook: id }, error.message),
              []
            )
          )
      )

      const decrypt = Effect.fnUntraced(function* (row: typeof EndpointRow.Type) {
        const current = yield* keysOf(row.secret_sealed, row.id)
        const previous = yield* keysOf(row.previous_secret_sealed, row.id)
        const until = row.previous_secret_until ?? 0
        const keysAt = (now: number) => (now < until && current.length > 0 ? [...current, ...previous] : current)
        return { id: row.id, revision: row.revision, url: new URL(row.url), keysAt } satisfies CachedEndpoint
      })

      const find = Effect.fn("EndpointCache.find")(function* (revisions: ReadonlyMap<string, number>) {
        const missing = Array.from(revisions.keys()).filter((id) => cache.get(id)?.revision !== revisions.get(id))
        if (missing.length > 0) {
          const rows = yield* decodeEndpoints(sql`
            SELECT id, revision, url, secret_sealed, previous_secret_sealed, previous_secret_until
            FROM webhook_endpoints WHERE id = ANY(${columns.text(missing)})`)
          const read = yield* Effect.forEach(rows, decrypt)
          for (const id of missing) cache.delete(id)
          for (const endpoint of read) cache.set(endpoint.id, endpoint)
        }
        const endpoints = new Map<string, CachedEndpoint>()
        for (const id of revisions.keys()) {
          const endpoint = cache.get(id)
          if (endpoint === undefined) continue
          endpoints.set(id, endpoint)
          // The first entries are the least recently used.
          cache.delete(id)
          cache.set(id, endpoint)
        }
        for (const id of cache.keys()) {
          if (cache.size <= cachedMax) break
          cache.delete(id)
        }
        return endpoints
      }, Effect.orDie)

      return EndpointCache.of({ find })
    })
  )
}
