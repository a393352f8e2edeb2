import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Exit, Layer, Option, Redacted, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import * as Tokens from "../../../src/access/Tokens.ts"
import { ApiKeyCreate, ApiKeyUpdate } from "../../../src/vendor/apiKeys/ApiKey.ts"
import { ApiKeyCache } from "../../../src/vendor/apiKeys/ApiKeyCache.ts"
import { ApiKeys } from "../../../src/vendor/apiKeys/ApiKeys.ts"
import { eventsOf, Foundations, recorded, refusalOf, walk } from "../../support/database/Services.ts"
import { poll } from "../../support/rules/Poll.ts"

const Subject = ApiKeys.layer.pipe(Layer.provideMerge(ApiKeyCache.layer), Layer.provideMerge(Foundations))

layer(Subject)("ApiKeys", (it) => {
  it.effect("creates an active admin key and returns its token once", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const now = yield* Clock.currentTimeMillis
      const { answer, events } = yield* recorded(keys.create({ name: "build server" }))
      const { api_key, token } = answer
      assert.deepStrictEqual(api_key, {
        id: api_key.id,
        name: "build server",
        key_prefix: token.slice(0, 12),
        scopes: ["admin"],
        allowed_cidrs: [],
        is_active: true,
        created_at: now
      })
      assert.match(api_key.id, /^key_/)
      assert.isTrue(Tokens.isApiToken(token))
      assert.deepStrictEqual(yield* keys.get(api_key.id), api_key)
      assert.deepStrictEqual(
        events.map(({ event_type, resource_type }) => [event_type, resource_type]),
        [["api_key.created", "api_key"]]
      )
      assert.notInclude(JSON.stringify(yield* eventsOf(api_key.id)), token)
    })
  )

  it.effect("stores the token's hash and not the token", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { api_key, token } = yield* (yield* ApiKeys).create({ name: "hashed" })
      const [row] = yield* sql<{ token_hash: Uint8Array; text: string }>`
        SELECT token_hash, api_keys::text AS text FROM api_keys WHERE id = ${api_key.id}`
      assert.deepStrictEqual(
        row?.token_hash === undefined ? undefined : Buffer.from(row.token_hash).toString("hex"),
        Buffer.from(Tokens.hash(token)).toString("hex")
      )
      assert.notInclude(row?.text, token)
    })
  )

  it.effect("keeps scopes, networks and expiry as given, with each scope once", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const { api_key } = yield* keys.create({
        name: "reader",
        scopes: ["license:read", "event:read", "license:read"],
        allowed_cidrs: ["203.0.113.0/24", "2001:db8::/32"],
        expires_at: 1_900_000_000_000
      })
      const read = yield* keys.get(api_key.id)
      assert.deepStrictEqual(read.scopes, ["license:read", "event:read"])
      assert.deepStrictEqual(read.allowed_cidrs, ["203.0.113.0/24", "2001:db8::/32"])
      assert.strictEqual(read.expires_at, 1_900_000_000_000)
    })
  )

  it.effect("updates the given fields, records the changes, and clears the expiry with null", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const { api_key } = yield* keys.create({ name: "old", scopes: ["ops:read"], expires_at: 1_900_000_000_000 })
      const { answer, events } = yield* recorded(
        keys.update(api_key.id, { name: "new", is_active: false, expires_at: null, allowed_cidrs: ["10.0.0.0/8"] })
      )
      const { expires_at: _, ...rest } = api_key
      assert.deepStrictEqual(answer, { ...rest, name: "new", is_active: false, allowed_cidrs: ["10.0.0.0/8"] })
      assert.deepStrictEqual(yield* keys.get(api_key.id), answer)
      assert.deepStrictEqual(events, [
        {
          event_type: "api_key.updated",
          resource_type: "api_key",
          metadata: {
            changes: {
              name: { old: "old", new: "new" },
              is_active: { old: true, new: false },
              expires_at: { old: "2030-03-17T17:46:40.000Z", new: null },
              allowed_cidrs: { old: [], new: ["10.0.0.0/8"] }
            }
          }
        }
      ])
    })
  )

  it.effect("writes nothing and records nothing when nothing changes", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const { api_key } = yield* keys.create({ name: "same", scopes: ["ops:read"] })
      for (const input of [{}, { name: "same" }, { scopes: ["ops:read", "ops:read"] as const, expires_at: null }]) {
        const { answer, events } = yield* recorded(keys.update(api_key.id, input))
        assert.deepStrictEqual([answer, events], [api_key, []])
      }
    })
  )

  it.effect("revokes permanently: the key is not found, listed, changed or revoked again", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const { api_key } = yield* keys.create({ name: "gone" })
      const { events } = yield* recorded(keys.delete(api_key.id))
      assert.deepStrictEqual(
        events.map(({ event_type }) => event_type),
        ["api_key.revoked"]
      )
      for (const attempt of [
        keys.get(api_key.id),
        keys.update(api_key.id, { is_active: true }),
        keys.delete(api_key.id)
      ]) {
        assert.deepStrictEqual(yield* refusalOf(attempt), ["NOT_FOUND", "id"])
      }
      assert.notInclude(
        (yield* keys.list({ limit: 200 })).items.map(({ id }) => id),
        api_key.id
      )
    })
  )

  it.effect("lists the newest first, and paging returns every key once while keys are created", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const make = Effect.andThen(TestClock.adjust(1), keys.create({ name: "walked" }))
      for (let count = 0; count < 7; count++) yield* make
      const before = (yield* keys.list({ limit: 200 })).items.map(({ id }) => id)
      const walked = (yield* walk(keys.list, 3, make)).map(({ id }) => id)
      assert.deepStrictEqual(walked, before)
      const inactive = yield* keys.update(walked[0] ?? "", { is_active: false })
      const listed = (yield* keys.list({ is_active: "false" })).items
      assert.include(
        listed.map(({ id }) => id),
        inactive.id
      )
      assert.isTrue(listed.every(({ is_active }) => !is_active))
    })
  )
})

/** The token that a start shows. */
const shown = (keys: ApiKeys["Service"], given?: Redacted.Redacted<string>) =>
  Effect.map(keys.bootstrap(given), (token) => Option.getOrUndefined(Option.map(token, Redacted.value)))

for (const used of ["the first", "another"]) {
  layer(Subject)(`The first token, until ${used} is used`, (it) => {
    it.effect("is shown by each start, and is forgotten then", () =>
      Effect.gen(function* () {
        const keys = yield* ApiKeys
        const sql = yield* SqlClient.SqlClient
        const cache = yield* ApiKeyCache
        const token = yield* shown(keys)
        assert.isDefined(token)
        const other = yield* keys.create({ name: "other" })
        assert.strictEqual(yield* shown(keys), token)
        // An operator who sets a token of his own too late sees the one that is valid.
        assert.strictEqual(yield* shown(keys, Redacted.make("an operator's own token of any shape")), token)
        const found = yield* cache.find(Tokens.hash(used === "another" ? other.token : token))
        yield* cache.used(Option.getOrThrow(found).id)
        yield* TestClock.adjust("30 seconds")
        yield* poll(sql`SELECT 1 AS found FROM api_keys WHERE last_used_at IS NOT NULL`, (rows) => rows.length === 1)
        const sealed = sql`SELECT id FROM api_keys WHERE token_sealed IS NOT NULL`
        assert.deepStrictEqual(yield* sealed, [])
        assert.isUndefined(yield* shown(keys))
        assert.isTrue(Option.isSome(yield* cache.find(Tokens.hash(token))), "it stays valid")
      })
    )
  })
}

layer(Subject)("The first token, when its master key is lost", (it) => {
  it.effect("is forgotten, for nothing opens it", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const sql = yield* SqlClient.SqlClient
      assert.isDefined(yield* shown(keys))
      yield* sql`UPDATE api_keys SET token_sealed = 'lost with its key'`
      assert.isUndefined(yield* shown(keys))
      assert.deepStrictEqual(yield* sql`SELECT id FROM api_keys WHERE token_sealed IS NOT NULL`, [])
    })
  )
})

layer(Subject)("ApiKeys.bootstrap", (it) => {
  it.effect(
    "creates one admin key when many nodes start together, returns its token to all, and never creates another",
    () =>
      Effect.gen(function* () {
        const keys = yield* ApiKeys
        const started = yield* Effect.all(
          Array.from({ length: 5 }, () => shown(keys)),
          { concurrency: "unbounded" }
        )
        const [token, ...others] = new Set(started)
        assert.deepStrictEqual(others, [])
        assert.isTrue(Tokens.isApiToken(token ?? ""))
        const stored = yield* (yield* SqlClient.SqlClient)`SELECT api_keys::text AS text FROM api_keys`
        assert.notInclude(JSON.stringify(stored), Buffer.from(token ?? "").toString("hex"))
        const { items } = yield* keys.list({})
        assert.deepStrictEqual(
          items.map(({ name, scopes, key_prefix }) => ({ name, scopes, key_prefix })),
          [{ name: "bootstrap", scopes: ["admin"], key_prefix: (token ?? "").slice(0, 12) }]
        )
        const [created] = yield* eventsOf(items[0]?.id ?? "")
        assert.deepStrictEqual([created?.event_type, created?.actor_type], ["api_key.created", "system"])

        yield* keys.delete(items[0]?.id ?? "")
        const own = Redacted.make("an operator's own token of any shape")
        assert.isUndefined(yield* shown(keys, own))
        assert.isUndefined(yield* shown(keys))
      })
  )
})

layer(Subject)("ApiKeys.bootstrap with a given token", (it) => {
  it.effect("stores that token's hash and never shows it", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const cache = yield* ApiKeyCache
      const given = Redacted.make("an operator's own token of any shape")
      for (const token of [given, given, undefined]) assert.isUndefined(yield* shown(keys, token))
      const hash = Tokens.hash(Redacted.value(given))
      assert.isTrue(Option.isSome(yield* cache.find(hash)))
      assert.isTrue(yield* cache.isBootstrap(hash))
      const { token } = yield* keys.create({ name: "second" })
      assert.isFalse(yield* cache.isBootstrap(Tokens.hash(token)))
    })
  )
})

layer(Layer.empty)("API key requests", (it) => {
  const isAccepted = (schema: Schema.Decoder<unknown>, input: unknown) =>
    Effect.map(Effect.exit(Schema.decodeUnknownEffect(schema)(input)), Exit.isSuccess)

  it.effect("take networks in CIDR notation only", () =>
    Effect.gen(function* () {
      for (const cidr of ["10.0.0.0/8", "203.0.113.7/32", "0.0.0.0/0", "::/0", "2001:db8::/32", "::1/128"]) {
        assert.isTrue(yield* isAccepted(ApiKeyCreate, { name: "a", allowed_cidrs: [cidr] }), cidr)
        assert.isTrue(yield* isAccepted(ApiKeyUpdate, { allowed_cidrs: [cidr] }), cidr)
      }
      for (const cidr of [
        "",
        "10.0.0.1",
        "10.0.0.1/8",
        "10.0.0.0/33",
        "2001:db8::/129",
        "2001:db8::1/32",
        "example.com/8",
        "*"
      ]) {
        assert.isFalse(yield* isAccepted(ApiKeyCreate, { name: "a", allowed_cidrs: [cidr] }), cidr)
      }
    })
  )

  it.effect("need at least one scope, and only known ones", () =>
    Effect.gen(function* () {
      assert.isFalse(yield* isAccepted(ApiKeyCreate, { name: "a", scopes: [] }))
      assert.isFalse(yield* isAccepted(ApiKeyCreate, { name: "a", scopes: ["root"] }))
      assert.isFalse(yield* isAccepted(ApiKeyUpdate, { scopes: [] }))
      assert.isTrue(yield* isAccepted(ApiKeyCreate, { name: "a", scopes: ["license:read", "device:write"] }))
    })
  )
})
