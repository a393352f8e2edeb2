/**
 * Caches the API keys in use by the hash of their token, so that an authorized request costs no query.
 *
 * What must stay true: a request is checked against a row read less than 500 ms before the request arrived. A revocation,
 * deactivation or changed scope therefore takes effect on every node within half a second of its commit, and at once on the
 * node that made it. A read that takes longer than that is not shared with requests that arrive later.
 */
import { Cache, Clock, Context, Duration, Effect, Exit, Layer, Option, Result, Schedule } from "effect"
import type { IpNetwork } from "effect/net"
import { SqlClient } from "effect/sql"
import type { ProductIds } from "../../access/CurrentActor.ts"
import type { ManagementScope } from "../../access/Scope.ts"
import { networkFromString } from "../../contract/api/Network.ts"
import { makeBatcher } from "../../platform/postgres/driver/Batcher.ts"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import { retryTransaction } from "../../platform/postgres/driver/Transactions.ts"

/** The parts of a key that authorization checks. Revoked keys are not cached. */
export interface CachedApiKey {
  readonly id: string
  readonly name: string
  readonly scopes: ReadonlySet<ManagementScope>
  /** Empty = any address. */
  readonly networks: ReadonlyArray<IpNetwork.IpNetwork>
  readonly is_active: boolean
  readonly expires_at: number | undefined
  readonly product_ids: ProductIds
}

export class ApiKeyCache extends Context.Service<
  ApiKeyCache,
  {
    /** The key whose token has this hash; None if there is none or it is revoked. */
    find(tokenHash: Uint8Array): Effect.Effect<Option.Option<CachedApiKey>>
    /** True for the first admin token, whose format the operator may choose freely. */
    isBootstrap(tokenHash: Uint8Array): Effect.Effect<boolean>
    forget(tokenHash: Uint8Array): Effect.Effect<void>
    /** Records that a key was used now; written later, in a batch. */
    used(id: string): Effect.Effect<void>
  }
>()("licensing/vendor/apiKeys/ApiKeyCache") {
  static readonly layer = Layer.effect(
    ApiKeyCache,
    Effect.gen(function* () {
      const { find, forget } = yield* makeKeys
      const isBootstrap = yield* makeBootstrap
      const used = yield* makeUsage
      return ApiKeyCache.of({ find, forget, isBootstrap, used })
    })
  )
}

const freshNanos = Duration.toNanosUnsafe("500 millis")
/** Cached keys; beyond them the oldest entry is evicted. */
const cachedMax = 10_000

const hex = (hash: Uint8Array) => Buffer.from(hash).toString("hex")

interface Row {
  readonly hash: string
  readonly id: string
  readonly name: string
  readonly scopes: ReadonlyArray<ManagementScope>
  readonly allowed_cidrs: ReadonlyArray<string>
  readonly is_active: boolean
  readonly expires_at: number | null
  readonly product_ids: ReadonlyArray<string> | null
}

const cachedKeyOf = (row: Row): CachedApiKey => ({
  id: row.id,
  name: row.name,
  scopes: new Set(row.scopes),
  networks: row.allowed_cidrs.map((cidr) => Result.getOrThrow(networkFromString(cidr))),
  is_active: row.is_active,
  expires_at: row.expires_at ?? undefined,
  product_ids: row.product_ids ?? undefined
})

const makeKeys = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // Many tokens in one statement: a client that guesses thousands of tokens a second must not load the database.
  const { request: read } = yield* makeBatcher({
    name: "api_keys.read",
    concurrency: 2,
    batchMax: 256,
    run: Effect.fnUntraced(function* (hashes: ReadonlyArray<string>) {
      const readAt = yield* Clock.monotonicTimeNanos
      const rows = yield* sql<Row>`
        SELECT encode(token_hash, 'hex') AS hash, id, name, coalesce(limited_scopes, scopes) AS scopes, allowed_cidrs,
          is_active, expires_at, product_ids
        FROM api_keys
        WHERE token_hash = ANY(${columns.bytea(hashes.map((hash) => Buffer.from(hash, "hex")))}) AND revoked_at IS NULL`
      const keys = new Map(rows.map((row) => [row.hash, cachedKeyOf(row)]))
      return hashes.map((hash) => ({ readAt, key: Option.fromUndefinedOr(keys.get(hash)) }))
    }, Effect.orDie)
  })

  // Unknown tokens are not cached, so that guessing cannot fill the memory.
  const cache = yield* Cache.makeWith(read, {
    capacity: cachedMax,
    timeToLive: (exit) => (Exit.isSuccess(exit) && Option.isSome(exit.value.key) ? Duration.infinity : Duration.zero)
  })

  const find = Effect.fnUntraced(function* (tokenHash: Uint8Array) {
    const hash = hex(tokenHash)
    const now = yield* Clock.monotonicTimeNanos
    const cached = yield* Cache.get(cache, hash)
    if (now - cached.readAt < freshNanos) return cached.key
    yield* Cache.invalidateWhen(cache, hash, (current) => current === cached)
    return (yield* Cache.get(cache, hash)).key
  })

  return { find, forget: (tokenHash: Uint8Array) => Cache.invalidate(cache, hex(tokenHash)) }
})

// The bootstrap key is created once and before any other key, so its hash never changes once it exists.
const makeBootstrap = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const read = sql<{ token_hash: Uint8Array }>`SELECT token_hash FROM api_keys WHERE is_bootstrap`.pipe(
    Effect.orDie,
    Effect.map(([row]) => (row === undefined ? undefined : hex(row.token_hash)))
  )
  const cache = yield* Cache.makeWith((_: "bootstrap") => read, {
    capacity: 1,
    timeToLive: (exit) =>
      Exit.isSuccess(exit) ? (exit.value === undefined ? "500 millis" : Duration.infinity) : Duration.zero
  })
  return (tokenHash: Uint8Array) => Effect.map(Cache.get(cache, "bootstrap"), (hash) => hash === hex(tokenHash))
})

const writeInterval = "30 seconds"

// One statement for all keys used since the last write, instead of a write per request. With the first use of any key the
// stored first token goes.
const makeUsage = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const lastUsed = new Map<string, number>()

  const write = Effect.gen(function* () {
    const batch = Array.from(lastUsed).sort(([a], [b]) => (a < b ? -1 : 1))
    if (batch.length === 0) return
    yield* sql`
      UPDATE api_keys SET last_used_at = GREATEST(api_keys.last_used_at, used.at), token_sealed = NULL
      FROM api_keys key LEFT JOIN unnest(
        ${columns.text(batch.map(([id]) => id))}, ${columns.timestamptz(batch.map(([, at]) => at))}
      ) AS used (id, at) ON used.id = key.id
      WHERE api_keys.id = key.id AND (used.id IS NOT NULL OR key.token_sealed IS NOT NULL)`.pipe(retryTransaction)
    for (const [id, at] of batch) if (lastUsed.get(id) === at) lastUsed.delete(id)
  }).pipe(
    Effect.withSpan("ApiKeyCache.write"),
    Effect.catchCause((cause) => Effect.logWarning("Writing the last use of API keys failed; retrying later.", cause))
  )

  yield* Effect.addFinalizer(() => write)
  yield* write.pipe(Effect.delay(writeInterval), Effect.repeat(Schedule.forever), Effect.forkScoped)
  return Effect.fnUntraced(function* (id: string) {
    lastUsed.set(id, yield* Clock.currentTimeMillis)
  })
})
