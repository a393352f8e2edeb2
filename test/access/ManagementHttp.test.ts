import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import type { ManagementScope } from "../../src/access/Scope.ts"
import * as Tokens from "../../src/access/Tokens.ts"
import { ApiKeys } from "../../src/vendor/apiKeys/ApiKeys.ts"
import { authorize, layerOneNode, makeApiKey } from "../support/http/Authentication.ts"

layer(layerOneNode)("Management authorization", (it) => {
  it.effect("accepts a key and identifies the actor", () =>
    Effect.gen(function* () {
      const { actor, token } = yield* makeApiKey()
      for (const scheme of ["Bearer", "bearer", "BEARER", "Bearer  "]) {
        assert.deepStrictEqual(yield* authorize({ authorization: [`${scheme} ${token}`] }), actor)
      }
    })
  )

  it.effect("answers TOKEN_MISSING without a header and to a scheme without a token", () =>
    Effect.gen(function* () {
      for (const authorization of [[], [""], ["Bearer"], ["bearer "]]) {
        assert.deepStrictEqual(yield* authorize({ authorization }), ["TOKEN_MISSING", undefined])
      }
    })
  )

  it.effect("answers TOKEN_MALFORMED to other schemes, other formats, a wrong checksum and a repeated header", () =>
    Effect.gen(function* () {
      const { token } = yield* makeApiKey()
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
        assert.deepStrictEqual(
          yield* authorize({ authorization }),
          ["TOKEN_MALFORMED", undefined],
          authorization.join()
        )
      }
    })
  )

  it.effect("answers TOKEN_INVALID to an unknown token, and to a revoked one immediately", () =>
    Effect.gen(function* () {
      const unknown = Tokens.fromBytes(new Uint8Array(32).fill(9))
      assert.deepStrictEqual(yield* authorize({ authorization: [`Bearer ${unknown}`] }), ["TOKEN_INVALID", undefined])
      const { actor, bearer, id } = yield* makeApiKey()
      assert.deepStrictEqual(yield* authorize({ authorization: bearer }), actor)
      yield* (yield* ApiKeys).delete(id)
      assert.deepStrictEqual(yield* authorize({ authorization: bearer }), ["TOKEN_INVALID", undefined])
    })
  )

  it.effect("answers TOKEN_INACTIVE to a disabled key until it is enabled", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const { actor, bearer, id } = yield* makeApiKey()
      assert.deepStrictEqual(yield* authorize({ authorization: bearer }), actor)
      yield* keys.update(id, { is_active: false })
      assert.deepStrictEqual(yield* authorize({ authorization: bearer }), ["TOKEN_INACTIVE", undefined])
      yield* keys.update(id, { is_active: true })
      assert.deepStrictEqual(yield* authorize({ authorization: bearer }), actor)
    })
  )

  it.effect("answers TOKEN_EXPIRED from the instant of expiry on", () =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const { actor, bearer } = yield* makeApiKey({ expires_at: now + 100 })
      yield* TestClock.adjust(99)
      assert.deepStrictEqual(yield* authorize({ authorization: bearer }), actor)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* authorize({ authorization: bearer }), ["TOKEN_EXPIRED", undefined])
    })
  )

  it.effect("answers TOKEN_ADDRESS_BLOCKED to addresses outside the key's networks", () =>
    Effect.gen(function* () {
      const { actor, bearer } = yield* makeApiKey({ allowed_cidrs: ["203.0.113.0/24", "2001:db8::/32"] })
      for (const address of ["203.0.113.0", "203.0.113.255", "::ffff:203.0.113.9", "2001:db8::1"]) {
        assert.deepStrictEqual(yield* authorize({ authorization: bearer, address }), actor, address)
      }
      for (const address of ["203.0.112.255", "203.0.114.0", "::ffff:203.0.114.0", "2001:db9::1", "::1", undefined]) {
        const sent = address === undefined ? {} : { address }
        assert.deepStrictEqual(yield* authorize({ authorization: bearer, ...sent }), ["TOKEN_ADDRESS_BLOCKED", address])
      }
      const unrestricted = yield* makeApiKey()
      assert.deepStrictEqual(
        yield* authorize({ authorization: unrestricted.bearer, address: "198.51.100.1" }),
        unrestricted.actor
      )
    })
  )

  it.effect("answers TOKEN_SCOPE_DENIED with the required scopes; admin satisfies all", () =>
    Effect.gen(function* () {
      const reader = yield* makeApiKey({ scopes: ["product:read", "event:read"] })
      const writer = yield* makeApiKey({ scopes: ["product:write"] })
      const admin = yield* makeApiKey()
      const sending = (key: typeof admin, ...scopes: [ManagementScope, ...Array<ManagementScope>]) =>
        authorize({ authorization: key.bearer, scopes })
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

layer(layerOneNode)("Bootstrap tokens", (it) => {
  it.effect("are accepted in any format, and no other token of that format is", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const given = "überlang und von keiner Form, mit Leerzeichen"
      assert.deepStrictEqual(yield* authorize({ authorization: ["Bearer of any shape at all, before"] }), [
        "TOKEN_MALFORMED",
        undefined
      ])
      yield* keys.bootstrap(Redacted.make(given))
      yield* TestClock.adjust("1 second")
      const [key] = (yield* keys.list({})).items
      // As a client that writes UTF-8 sends it.
      const sent = `Bearer ${Buffer.from(given).toString("latin1")}`
      assert.deepStrictEqual(yield* authorize({ authorization: [sent], scopes: ["admin"] }), {
        actor_type: "api_key",
        actor_id: key?.id,
        actor_name: key?.name
      })
      assert.deepStrictEqual(yield* authorize({ authorization: [`${sent}!`] }), ["TOKEN_MALFORMED", undefined])
      yield* keys.delete(key?.id ?? "")
      assert.deepStrictEqual(yield* authorize({ authorization: [sent] }), ["TOKEN_INVALID", undefined])
    })
  )
})
