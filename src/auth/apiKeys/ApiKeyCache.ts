/**
 * The API keys in use, held in memory by the hash of their token, so that an authorized request costs no query.
 *
 * What must stay true: a request is judged by what the database said less than 500 ms before it came in. A revocation,
 * deactivation or changed scope therefore holds on every node within half a second of its commit, and at once on the node
 * that made it. A read that takes longer than that is not shared with requests that came in later.
 */
import { Cache, Clock, Context, Duration, Effect, Exit, Layer, Option, Result, Schedule } from "effect"
import type { IpNetwork } from "effect/net"
import { SqlClient } from "effect/sql"
import { networkFromString } from "../../api/Network.ts"
import { makeBatcher } from "../../postgres/Batcher.ts"
import { columns } from "../../postgres/Parameters.ts"
import { retryTransaction } from "../../postgres/Transactions.ts"
import type { ManagementScope } from "../Scope.ts"

/** A key that is not revoked, as requests are judged by it. */
export interface CachedApiKey {
  readonly id: string
  readonly scopes: ReadonlySet<ManagementScope>
  /** Empty = any address. */
  readonly networks: ReadonlyArray<IpNetwork.IpNetwork>
  readonly is_active: boolean
  readonly expires_at: number | undefined
}

export class ApiKeyCache extends Context.Service<
  ApiKeyCache,
  {
    /** The key whose token has this hash; None where there is none or it is revoked. */
    find(tokenHash: Uint8Array): Effect.Effect<Option.Option<CachedApiKey>>
    /** Whether this is the hash of the first admin token, which an operator may have chosen in any shape. */
    isBootstrap(tokenHash: Uint8Array): Effect.Effect<boolean>
    /** Drops what is held of a token: the next request reads it anew. */
    forget(tokenHash: Uint8Array): Effect.Effect<void>
    /** Notes that a key was used now. Written later, together with others. */
    used(id: string): Effect.Effect<void>
  }
>()("licensing/auth/apiKeys/ApiKeyCache") {
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
/** Keys held at most; beyond them the one held longest is read again. */
const heldMax = 10_000

const hex = (hash: Uint8Array) => Buffer.from(hash).toString("hex")

interface Row {
  readonly hash: string
  readonly id: string
  readonly scopes: ReadonlyArray<ManagementScope>
  readonly allowed_cidrs: ReadonlyArray<string>
  readonly is_active: boolean
  readonly expires_at: number | null
}

const known = (row: Row): CachedApiKey => ({
  id: row.id,
  scopes: new Set(row.scopes),
  networks: row.allowed_cidrs.map((cidr) => Result.getOrThrow(networkFromString(cidr))),
  is_active: row.is_active,
  expires_at: row.expires_at ?? undefined
})

const makeKeys = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // Many tokens in one statement: whoever guesses thousands of them a second is to cost the database little.
  const { ask: read } = yield* makeBatcher({
    lanes: 2,
    batchMax: 256,
    run: Effect.fnUntraced(function* (hashes: ReadonlyArray<string>) {
      const readAt = yield* Clock.monotonicTimeNanos
      const rows = yield* sql<Row>`
        SELECT encode(token_hash, 'hex') AS hash, id, scopes, allowed_cidrs, is_active, expires_at FROM api_keys
        WHERE token_hash = ANY(${columns.bytea(hashes.map((hash) => Buffer.from(hash, "hex")))}) AND revoked_at IS NULL`
      const found = new Map(rows.map((row) => [row.hash, known(row)]))
      return hashes.map((hash) => ({ readAt, key: Option.fromUndefinedOr(found.get(hash)) }))
    }, Effect.orDie)
  })

  // Tokens that name no key are not held: whoever guesses must not fill the memory.
  const cache = yield* Cache.makeWith(read, {
    capacity: heldMax,
    timeToLive: (exit) => (Exit.isSuccess(exit) && Option.isSome(exit.value.key) ? Duration.infinity : Duration.zero)
  })

  const find = Effect.fnUntraced(function* (tokenHash: Uint8Array) {
    const hash = hex(tokenHash)
    const now = yield* Clock.monotonicTimeNanos
    const held = yield* Cache.get(cache, hash)
    if (now - held.readAt < freshNanos) return held.key
    yield* Cache.invalidateWhen(cache, hash, (current) => current === held)
    return (yield* Cache.get(cache, hash)).key
  })

  return { find, forget: (tokenHash: Uint8Array) => Cache.invalidate(cache, hex(tokenHash)) }
})

// A bootstrap key is made once and before any other, so its hash never changes once it is there.
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

// One statement for all keys used since the last one, instead of a write with every request.
const makeUsage = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const lastUsed = new Map<string, number>()

  const write = Effect.gen(function* () {
    const batch = Array.from(lastUsed).sort(([one], [other]) => (one < other ? -1 : 1))
    if (batch.length === 0) return
    yield* sql`
      UPDATE api_keys SET last_used_at = used.at, token_sealed = NULL
      FROM unnest(${columns.text(batch.map(([id]) => id))}, ${columns.timestamptz(batch.map(([, at]) => at))}) AS used (id, at)
      WHERE api_keys.id = used.id AND (last_used_at IS NULL OR last_used_at < used.at)`.pipe(retryTransaction)
    for (const [id, at] of batch) if (lastUsed.get(id) === at) lastUsed.delete(id)
  }).pipe(
    Effect.withSpan("KnownKeys.write"),
    Effect.catchCause((cause) =>
      Effect.logWarning("When API keys were last used cannot be written; trying again later.", cause)
    )
  )

  yield* Effect.addFinalizer(() => write)
  yield* write.pipe(Effect.delay(writeInterval), Effect.repeat(Schedule.forever), Effect.forkScoped)
  return Effect.fnUntraced(function* (id: string) {
    lastUsed.set(id, yield* Clock.currentTimeMillis)
  })
})
