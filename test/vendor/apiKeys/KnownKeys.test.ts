import { assert, layer } from "@effect/vitest"
import { Clock, Context, Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { ApiKeyCache } from "../../../src/vendor/apiKeys/ApiKeyCache.ts"
import { ApiKeys } from "../../../src/vendor/apiKeys/ApiKeys.ts"
import { holdLock, untilBlockedOn } from "../../support/database/Database.ts"
import { Foundations } from "../../support/database/Services.ts"
import { authorize, layerNode, layerOneNode, makeApiKey } from "../../support/http/Authentication.ts"
import { poll } from "../../support/rules/Poll.ts"

layer(layerOneNode)("Cached API keys", (it) => {
  it.effect("accepts a key that another node revoked, disabled or restricted for less than a second", () =>
    Effect.gen(function* () {
      // The node under test has its own cache; the changes are made with the cache of another node.
      const other = Context.get(
        yield* Layer.build(Layer.fresh(Layer.provideMerge(ApiKeys.layer, ApiKeyCache.layer))),
        ApiKeys
      )
      const changes = [
        { change: (id: string) => other.delete(id), code: "TOKEN_INVALID" },
        { change: (id: string) => other.update(id, { is_active: false }), code: "TOKEN_INACTIVE" },
        { change: (id: string) => other.update(id, { scopes: ["ops:read"] }), code: "TOKEN_SCOPE_DENIED" }
      ]
      for (const { change, code } of changes) {
        const { actor, bearer, id } = yield* makeApiKey()
        assert.deepStrictEqual(yield* authorize({ authorization: bearer }), actor)
        yield* change(id)
        yield* TestClock.adjust("500 millis")
        assert.strictEqual((yield* authorize({ authorization: bearer }))[0], code)
      }
    })
  )

  it.effect("reads a key once for all requests within half a second", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { actor, bearer, id } = yield* makeApiKey()
      const attempts = Effect.replicateEffect(authorize({ authorization: bearer }), 20, { concurrency: "unbounded" })
      assert.isTrue((yield* attempts).every((answer) => answer.actor_id === actor.actor_id))
      // The row's changes are not read until then.
      yield* sql`UPDATE api_keys SET is_active = FALSE WHERE id = ${id}`
      yield* TestClock.adjust("499 millis")
      assert.deepStrictEqual(yield* authorize({ authorization: bearer }), actor)
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* authorize({ authorization: bearer }), ["TOKEN_INACTIVE", undefined])
    })
  )

  it.effect("does not share a read with a request that began half a second after it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { actor, bearer, id } = yield* makeApiKey()
      yield* delayedReads(
        Effect.gen(function* () {
          const { release } = yield* blockReads
          const early = yield* Effect.forkChild(authorize({ authorization: bearer }))
          yield* untilBlockedOn("locktype = 'advisory' AND objid = 42")
          yield* TestClock.adjust("500 millis")
          yield* sql`UPDATE api_keys_stored SET is_active = FALSE WHERE id = ${id}`
          const late = yield* Effect.forkChild(authorize({ authorization: bearer }), { startImmediately: true })
          yield* release
          assert.deepStrictEqual(yield* Fiber.join(early), actor)
          assert.deepStrictEqual(yield* Fiber.join(late), ["TOKEN_INACTIVE", undefined])
        })
      )
    })
  )
})

/** Replaces the table by a view whose reads, after taking their snapshot, wait for a lock that a test can take. */
const delayedReads = <A, E, R>(body: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    return yield* Effect.acquireUseRelease(
      Effect.andThen(
        sql`ALTER TABLE api_keys RENAME TO api_keys_stored`,
        sql`CREATE VIEW api_keys AS SELECT * FROM api_keys_stored WHERE pg_advisory_xact_lock_shared(42) IS NOT NULL`
      ),
      () => body,
      () => Effect.andThen(sql`DROP VIEW api_keys`, sql`ALTER TABLE api_keys_stored RENAME TO api_keys`)
    )
  })

const blockReads = holdLock((sql) => sql`SELECT pg_advisory_xact_lock(42)`)

layer(Foundations)("The last use of a key", (it) => {
  const Fresh = Layer.fresh(layerNode)
  const readLastUsed = Effect.fnUntraced(function* (id: string) {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql<{ last_used_at: number | null }>`SELECT last_used_at FROM api_keys WHERE id = ${id}`
    return row?.last_used_at
  })

  it.effect("is written within half a minute, without an event", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const now = yield* Clock.currentTimeMillis
      const used = yield* makeApiKey()
      const unused = yield* makeApiKey()
      yield* authorize({ authorization: used.bearer })
      yield* TestClock.adjust("1 second")
      yield* authorize({ authorization: used.bearer, scopes: ["ops:read"] })
      assert.isNull(yield* readLastUsed(used.id))
      const events = yield* sql`SELECT sequence FROM events`
      yield* TestClock.adjust("29 seconds")
      yield* poll(readLastUsed(used.id), (at) => at === now + 1000)
      assert.isNull(yield* readLastUsed(unused.id))
      assert.strictEqual((yield* (yield* ApiKeys).get(used.id)).last_used_at, now + 1000)
      assert.lengthOf(yield* sql`SELECT sequence FROM events`, events.length)
    }).pipe(Effect.provide(Fresh))
  )

  it.effect("is written when the service stops", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust("1 minute")
      const now = yield* Clock.currentTimeMillis
      const id = yield* Effect.gen(function* () {
        const key = yield* makeApiKey()
        yield* authorize({ authorization: key.bearer })
        return key.id
      }).pipe(Effect.provide(Fresh))
      assert.strictEqual(yield* readLastUsed(id), now)
    })
  )
})
