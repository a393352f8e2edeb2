/**
 * The signing keys: one active, any number retired, all of them published.
 *
 * A key is used only after it was read from the table of published keys, so no response is signed with a key that clients cannot
 * find. Every node reads that table twice a second and so adopts a new key within a second.
 */
import { Clock, Context, Effect, Layer, Schedule, Semaphore } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { instant } from "../postgres/driver/Parameters.ts"
import { MasterKey } from "./MasterKey.ts"
import type { PublicKey } from "./PublicKey.ts"
import { algorithm, fromSeed, type SigningKey, seedLength } from "./SigningKey.ts"

const refreshInterval = "500 millis"

export class KeyRing extends Context.Service<
  KeyRing,
  {
    /** The active key, from memory. */
    current(): SigningKey
    /** Every key that ever signed: the active one first, then the newest. */
    readonly published: Effect.Effect<ReadonlyArray<PublicKey>>
    /**
     * Creates a new active key and retires the previous one, in one transaction. It joins the caller's transaction, if any. The
     * new key is used after the commit.
     */
    readonly rotate: Effect.Effect<PublicKey>
  }
>()("licensing/platform/signing/KeyRing") {
  /** Creates the first key if there is none. Fails with `MasterKeyMismatch` if the active one cannot be decrypted. */
  static readonly layer = Layer.effect(
    KeyRing,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { active, ensure, followMasterKey, replace } = yield* makeTable
      let current = yield* ensure

      const refresh = Effect.gen(function* () {
        const row = yield* active
        if (row?.kid !== current.kid) current = yield* ensure
        else yield* followMasterKey(row)
      })
      const follow = yield* supervised(refresh)
      yield* follow.pipe(Effect.delay(refreshInterval), Effect.repeat(Schedule.forever), Effect.forkScoped)

      const published = sql<PublicKey>`
        SELECT kid, algorithm, encode(public_key, 'base64') AS public_key, status, created_at
        FROM signing_keys ORDER BY status, created_at DESC, kid`.pipe(
        Effect.orDie,
        Effect.withSpan("KeyRing.published")
      )

      const rotate = replace.pipe(
        Effect.tap(sql.afterCommit(follow)),
        sql.withTransaction,
        Effect.orDie,
        Effect.withSpan("KeyRing.rotate")
      )
      return KeyRing.of({ current: () => current, published, rotate })
    })
  )
}

// Refreshes run one after another, so a slow read never restores an old key. After a failure the current key stays in use and
// published. Of consecutive failures only the first is logged; the next pass is the retry.
const supervised = Effect.fnUntraced(function* (refresh: Effect.Effect<void, Error>) {
  const semaphore = yield* Semaphore.make(1)
  let failing = false
  const note = (isFailing: boolean, log: Effect.Effect<void>) =>
    Effect.suspend(() => {
      if (failing === isFailing) return Effect.void
      failing = isFailing
      return log
    })
  return semaphore.withPermit(
    Effect.matchCauseEffect(refresh, {
      onFailure: (cause) =>
        note(true, Effect.logError("The signing keys cannot be read; keeping the current key.", cause)),
      onSuccess: () => note(false, Effect.logInfo("The signing keys can be read again."))
    })
  )
})

interface ActiveRow {
  readonly kid: string
  readonly public_key: Uint8Array
  readonly private_key_sealed: Uint8Array
}

/** The statements of the table `signing_keys`, with encryption and decryption of the private keys. */
const makeTable = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const masterKey = yield* MasterKey
  const random = yield* SecureRandom.SecureRandom
  // Binds a sealed key to its row.
  const aadOf = (kid: string) => `signing_keys/${kid}`

  const active = sql<ActiveRow>`
    SELECT kid, public_key, private_key_sealed FROM signing_keys WHERE status = 'active'`.pipe(
    Effect.orDie,
    Effect.map((rows) => rows[0])
  )

  // Nodes that start or rotate at the same time do so one after another, so that each reads the previous one's key.
  const lock = sql`SELECT pg_advisory_xact_lock(hashtextextended('licensing/signing_keys', 0))`

  const open = Effect.fnUntraced(function* (row: ActiveRow) {
    const key = fromSeed(yield* masterKey.open(row.private_key_sealed, aadOf(row.kid)))
    if (Buffer.compare(key.publicKey, row.public_key) === 0) return key
    return yield* Effect.die(new Error(`The public half of the signing key ${row.kid} was altered in the database.`))
  })

  const followMasterKey = (row: ActiveRow) => masterKey.sealUnderKeyOf(row.private_key_sealed, aadOf(row.kid))

  const add = Effect.gen(function* () {
    const seed = yield* random.randomBytes(seedLength)
    const key = fromSeed(seed)
    const sealed = yield* masterKey.seal(seed, aadOf(key.kid))
    const now = yield* Clock.currentTimeMillis
    yield* sql`
      INSERT INTO signing_keys (kid, algorithm, public_key, private_key_sealed, status, created_at)
      VALUES (${key.kid}, ${algorithm}, ${key.publicKey}, ${sealed}, 'active', ${instant(now)})`
    return { key, createdAt: now }
  })

  const ensure = Effect.gen(function* () {
    yield* lock
    const row = yield* active
    if (row === undefined) return (yield* add).key
    yield* followMasterKey(row)
    return yield* open(row)
  }).pipe(sql.withTransaction, Effect.catchTag("SqlError", Effect.die))

  const replace = Effect.gen(function* () {
    yield* lock
    const now = yield* Clock.currentTimeMillis
    // A retired key never signs again, so its private half is deleted; nodes that still use it have it in memory.
    yield* sql`
      UPDATE signing_keys SET status = 'retired', retired_at = ${instant(now)}, private_key_sealed = ''
      WHERE status = 'active'`
    const { key, createdAt } = yield* add
    const public_key = Buffer.from(key.publicKey).toString("base64")
    return {
      kid: key.kid,
      algorithm,
      public_key,
      status: "active",
      created_at: createdAt
    } satisfies PublicKey as PublicKey
  })

  return { active, ensure, followMasterKey, replace }
})
