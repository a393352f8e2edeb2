import { assert, layer } from "@effect/vitest"
import { Clock, Context, Deferred, Effect, Fiber, Layer, Redacted } from "effect"
import { Headers, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiEndpoint } from "effect/http-api"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import type { Refusal } from "../../src/api/Failure.ts"
import { RequestContext } from "../../src/api/RequestContext.ts"
import { ApiKeysApi } from "../../src/apiKeys/Api.ts"
import type { ApiKeyCreate } from "../../src/apiKeys/ApiKey.ts"
import { ApiKeys } from "../../src/apiKeys/ApiKeys.ts"
import { KnownKeys } from "../../src/apiKeys/KnownKeys.ts"
import { CurrentActor } from "../../src/auth/CurrentActor.ts"
import { ManagementAuthorization, operation } from "../../src/auth/Management.ts"
import * as ManagementHttp from "../../src/auth/ManagementHttp.ts"
import type { ManagementScope } from "../../src/auth/Scope.ts"
import * as Tokens from "../../src/auth/Tokens.ts"
import { Foundations } from "../support/Slices.ts"

const Node = ManagementHttp.layer.pipe(Layer.provideMerge(ApiKeys.layer), Layer.provideMerge(KnownKeys.layer))
const Subject = Layer.provideMerge(Node, Foundations)

const endpointWith = (...scopes: [ManagementScope, ...Array<ManagementScope>]) =>
  HttpApiEndpoint.get("read", "/things").annotateMerge(operation({ id: "read", summary: "Read", scopes }))

/** A request with these header texts, as the middleware meets it. */
const requestWith = (...authorization: ReadonlyArray<string>) => {
  const rawHeaders = authorization.flatMap((text) => ["Authorization", text])
  const headers = Headers.fromInput(authorization.slice(0, 1).map((text) => ["authorization", text] as const))
  return { headers, source: { rawHeaders } } as HttpServerRequest.HttpServerRequest
}

const whoActs = Effect.map(CurrentActor, (actor) => HttpServerResponse.jsonUnsafe(actor))

interface Attempt {
  readonly authorization?: ReadonlyArray<string>
  readonly scopes?: [ManagementScope, ...Array<ManagementScope>]
  readonly address?: string
}

/** Sends a request through the middleware: who was let in, or why not. */
const attempt = Effect.fnUntraced(function* ({ authorization = [], scopes = ["product:read"], address }: Attempt) {
  const { ApiToken } = yield* ManagementAuthorization
  const admitted = ApiToken(whoActs, {
    credential: Redacted.make(""),
    endpoint: endpointWith(...scopes) as never,
    group: ApiKeysApi as never
  }) as Effect.Effect<HttpServerResponse.HttpServerResponse, Refusal, HttpServerRequest.HttpServerRequest>
  return yield* admitted.pipe(
    Effect.match({
      onSuccess: (response) => JSON.parse(new TextDecoder().decode((response.body as { body: Uint8Array }).body)),
      onFailure: (refusal) => [refusal.code, refusal.detail]
    }),
    Effect.provideService(HttpServerRequest.HttpServerRequest, requestWith(...authorization)),
    Effect.provideService(RequestContext, { requestId: "req_test", clientAddress: address })
  )
})

const makeKey = Effect.fnUntraced(function* (input: Partial<typeof ApiKeyCreate.Type> = {}) {
  const { api_key, token } = yield* (yield* ApiKeys).create({ name: "tested", ...input })
  return { id: api_key.id, token, bearer: [`Bearer ${token}`], actor: { actor_type: "api_key", actor_id: api_key.id } }
})

layer(Subject)("Management authorization", (it) => {
  it.effect("lets a key in and says who acts", () =>
    Effect.gen(function* () {
      const { actor, token } = yield* makeKey()
      for (const scheme of ["Bearer", "bearer", "BEARER", "Bearer  "]) {
        assert.deepStrictEqual(yield* attempt({ authorization: [`${scheme} ${token}`] }), actor)
      }
    })
  )

  it.effect("answers TOKEN_MISSING without a header and to a scheme alone", () =>
    Effect.gen(function* () {
      for (const authorization of [[], [""], ["Bearer"], ["bearer "]]) {
        assert.deepStrictEqual(yield* attempt({ authorization }), ["TOKEN_MISSING", undefined])
      }
    })
  )

  it.effect("answers TOKEN_MALFORMED to other schemes, other shapes, a bad check and a repeated header", () =>
    Effect.gen(function* () {
      const { token } = yield* makeKey()
      const other = token.endsWith("0") ? "1" : "0"
      const headers = [
        [`License ${token}`],
        [`Basic ${token}`],
        [token],
        ["Bearer abc"],
        [`Bearer ${token.slice(0, -1)}${other}`],
        [`Bearer ${token} ${token}`],
        [`Bearer ${token},${token}`],
        [`Bearer ${token}`, `Bearer ${token}`],
        [`Bearer ${token}`, "Basic abc"]
      ]
      for (const authorization of headers) {
        assert.deepStrictEqual(yield* attempt({ authorization }), ["TOKEN_MALFORMED", undefined], authorization.join())
      }
    })
  )

  it.effect("answers TOKEN_INVALID to a token that no key has, and to a revoked one at once", () =>
    Effect.gen(function* () {
      const unknown = Tokens.fromBytes(new Uint8Array(32).fill(9))
      assert.deepStrictEqual(yield* attempt({ authorization: [`Bearer ${unknown}`] }), ["TOKEN_INVALID", undefined])
      const { actor, bearer, id } = yield* makeKey()
      assert.deepStrictEqual(yield* attempt({ authorization: bearer }), actor)
      yield* (yield* ApiKeys).delete(id)
      assert.deepStrictEqual(yield* attempt({ authorization: bearer }), ["TOKEN_INVALID", undefined])
    })
  )

  it.effect("answers TOKEN_INACTIVE to a key that was switched off, until it is switched on", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const { actor, bearer, id } = yield* makeKey()
      assert.deepStrictEqual(yield* attempt({ authorization: bearer }), actor)
      yield* keys.update(id, { is_active: false })
      assert.deepStrictEqual(yield* attempt({ authorization: bearer }), ["TOKEN_INACTIVE", undefined])
      yield* keys.update(id, { is_active: true })
      assert.deepStrictEqual(yield* attempt({ authorization: bearer }), actor)
    })
  )

  it.effect("answers TOKEN_EXPIRED from the instant of expiry on", () =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const { actor, bearer } = yield* makeKey({ expires_at: now + 100 })
      yield* TestClock.adjust(99)
      assert.deepStrictEqual(yield* attempt({ authorization: bearer }), actor)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* attempt({ authorization: bearer }), ["TOKEN_EXPIRED", undefined])
    })
  )

  it.effect("answers TOKEN_ADDRESS_BLOCKED to addresses outside the key's networks", () =>
    Effect.gen(function* () {
      const { actor, bearer } = yield* makeKey({ allowed_cidrs: ["203.0.113.0/24", "2001:db8::/32"] })
      for (const address of ["203.0.113.0", "203.0.113.255", "::ffff:203.0.113.9", "2001:db8::1"]) {
        assert.deepStrictEqual(yield* attempt({ authorization: bearer, address }), actor, address)
      }
      for (const address of ["203.0.112.255", "203.0.114.0", "::ffff:203.0.114.0", "2001:db9::1", "::1", undefined]) {
        const sent = address === undefined ? {} : { address }
        assert.deepStrictEqual(yield* attempt({ authorization: bearer, ...sent }), ["TOKEN_ADDRESS_BLOCKED", address])
      }
      const anywhere = yield* makeKey()
      assert.deepStrictEqual(
        yield* attempt({ authorization: anywhere.bearer, address: "198.51.100.1" }),
        anywhere.actor
      )
    })
  )

  it.effect("answers TOKEN_SCOPE_DENIED with the scopes that are needed; admin satisfies all", () =>
    Effect.gen(function* () {
      const reader = yield* makeKey({ scopes: ["product:read", "event:read"] })
      const writer = yield* makeKey({ scopes: ["product:write"] })
      const admin = yield* makeKey()
      const sending = (key: typeof admin, ...scopes: [ManagementScope, ...Array<ManagementScope>]) =>
        attempt({ authorization: key.bearer, scopes })
      assert.deepStrictEqual(yield* sending(reader, "product:read"), reader.actor)
      assert.deepStrictEqual(yield* sending(reader, "product:read", "event:read"), reader.actor)
      assert.deepStrictEqual(yield* sending(reader, "product:write"), ["TOKEN_SCOPE_DENIED", "product:write"])
      assert.deepStrictEqual(yield* sending(reader, "product:read", "ops:read"), [
        "TOKEN_SCOPE_DENIED",
        "product:read, ops:read"
      ])
      assert.deepStrictEqual(yield* sending(writer, "product:read"), ["TOKEN_SCOPE_DENIED", "product:read"])
      assert.deepStrictEqual(yield* sending(writer, "admin"), ["TOKEN_SCOPE_DENIED", "admin"])
      assert.deepStrictEqual(yield* sending(admin, "admin"), admin.actor)
      assert.deepStrictEqual(yield* sending(admin, "product:write", "webhook:write"), admin.actor)
    })
  )
})

layer(Subject)("Management authorization on many nodes", (it) => {
  it.effect("honours a key that another node revoked, switched off or narrowed for less than a second", () =>
    Effect.gen(function* () {
      // The node under test holds its own memory; the changes are made with the one of another node.
      const other = Context.get(
        yield* Layer.build(Layer.fresh(Layer.provideMerge(ApiKeys.layer, KnownKeys.layer))),
        ApiKeys
      )
      const changes = [
        { change: (id: string) => other.delete(id), code: "TOKEN_INVALID" },
        { change: (id: string) => other.update(id, { is_active: false }), code: "TOKEN_INACTIVE" },
        { change: (id: string) => other.update(id, { scopes: ["ops:read"] }), code: "TOKEN_SCOPE_DENIED" }
      ]
      for (const { change, code } of changes) {
        const { actor, bearer, id } = yield* makeKey()
        assert.deepStrictEqual(yield* attempt({ authorization: bearer }), actor)
        yield* change(id)
        yield* TestClock.adjust("500 millis")
        assert.strictEqual((yield* attempt({ authorization: bearer }))[0], code)
      }
    })
  )

  it.effect("reads a key once for all requests of half a second", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { actor, bearer, id } = yield* makeKey()
      const attempts = Effect.replicateEffect(attempt({ authorization: bearer }), 20, { concurrency: "unbounded" })
      assert.isTrue((yield* attempts).every((answer) => answer.actor_id === actor.actor_id))
      // Whatever the row says meanwhile, nobody looks.
      yield* sql`UPDATE api_keys SET is_active = FALSE WHERE id = ${id}`
      yield* TestClock.adjust("499 millis")
      assert.deepStrictEqual(yield* attempt({ authorization: bearer }), actor)
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* attempt({ authorization: bearer }), ["TOKEN_INACTIVE", undefined])
    })
  )

  it.effect("does not share a read with a request that came half a second after it began", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { actor, bearer, id } = yield* makeKey()
      yield* slowReads(
        Effect.gen(function* () {
          const { release } = yield* holdReads
          const early = yield* Effect.forkChild(attempt({ authorization: bearer }))
          yield* readsAreWaiting
          yield* TestClock.adjust("500 millis")
          yield* sql`UPDATE api_keys_stored SET is_active = FALSE WHERE id = ${id}`
          const late = yield* Effect.forkChild(attempt({ authorization: bearer }), { startImmediately: true })
          yield* release
          assert.deepStrictEqual(yield* Fiber.join(early), actor)
          assert.deepStrictEqual(yield* Fiber.join(late), ["TOKEN_INACTIVE", undefined])
        })
      )
    })
  )
})

/** Puts a view in the table's place whose reads, their snapshot taken, wait for a lock that a test can hold. */
const slowReads = <A, E, R>(body: Effect.Effect<A, E, R>) =>
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

const holdReads = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const held = yield* Deferred.make<void>()
  const released = yield* Deferred.make<void>()
  const holder = yield* sql`SELECT pg_advisory_xact_lock(42)`.pipe(
    Effect.andThen(Deferred.succeed(held, undefined)),
    Effect.andThen(Deferred.await(released)),
    sql.withTransaction,
    Effect.forkChild
  )
  yield* Deferred.await(held)
  return { release: Effect.andThen(Deferred.succeed(released, undefined), Fiber.join(holder)) }
})

const readsAreWaiting = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`.pipe(
    Effect.repeat({ until: (rows) => rows.length > 0 })
  )
})

layer(Subject)("Bootstrap tokens", (it) => {
  it.effect("are accepted in any shape, and nothing else of that shape is", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const given = "überlang und von keiner Form, mit Leerzeichen"
      assert.deepStrictEqual(yield* attempt({ authorization: ["Bearer of any shape at all, before"] }), [
        "TOKEN_MALFORMED",
        undefined
      ])
      yield* keys.bootstrap(Redacted.make(given))
      yield* TestClock.adjust("1 second")
      const [key] = (yield* keys.list({})).items
      // As a client sends it that writes UTF-8.
      const sent = `Bearer ${Buffer.from(given).toString("latin1")}`
      assert.deepStrictEqual(yield* attempt({ authorization: [sent], scopes: ["admin"] }), {
        actor_type: "api_key",
        actor_id: key?.id
      })
      assert.deepStrictEqual(yield* attempt({ authorization: [`${sent}!`] }), ["TOKEN_MALFORMED", undefined])
      yield* keys.delete(key?.id ?? "")
      assert.deepStrictEqual(yield* attempt({ authorization: [sent] }), ["TOKEN_INVALID", undefined])
    })
  )
})

layer(Foundations)("The last use of a key", (it) => {
  const Fresh = Layer.fresh(Node)
  const readLastUsed = Effect.fnUntraced(function* (id: string) {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql<{ last_used_at: number | null }>`SELECT last_used_at FROM api_keys WHERE id = ${id}`
    return row?.last_used_at
  })

  it.effect("is written within half a minute, and without an event", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const now = yield* Clock.currentTimeMillis
      const used = yield* makeKey()
      const unused = yield* makeKey()
      yield* attempt({ authorization: used.bearer })
      yield* TestClock.adjust("1 second")
      yield* attempt({ authorization: used.bearer, scopes: ["ops:read"] })
      assert.isNull(yield* readLastUsed(used.id))
      const events = yield* sql`SELECT sequence FROM events`
      yield* TestClock.adjust("29 seconds")
      yield* readLastUsed(used.id).pipe(Effect.repeat({ until: (at) => at === now + 1000 }))
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
        const key = yield* makeKey()
        yield* attempt({ authorization: key.bearer })
        return key.id
      }).pipe(Effect.provide(Fresh))
      assert.strictEqual(yield* readLastUsed(id), now)
    })
  )
})
