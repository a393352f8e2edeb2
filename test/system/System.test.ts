import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { KeyRing } from "../../src/signing/KeyRing.ts"
import { assertAnswered, assertRefused } from "../support/Envelopes.ts"
import { TestServer } from "../support/TestServer.ts"

layer(TestServer.layer)("Probes", (it) => {
  for (const path of ["/health", "/healthz"]) {
    it.effect(`${path} says that the service runs, to anyone`, () =>
      Effect.gen(function* () {
        const server = yield* TestServer
        const answer = yield* server.send({ path, anonymous: true })
        assert.deepStrictEqual(assertAnswered(answer, 200), { status: "ok" })
      })
    )
  }

  it.effect("/readyz says that the service can do its work, to anyone", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const answer = yield* server.send({ path: "/readyz", anonymous: true })
      assert.deepStrictEqual(assertAnswered(answer, 200), {
        status: "ready",
        checks: { database: "ok", migrations: "ok", signing_key: "ok", shutdown: "ok" }
      })
    })
  )

  it.effect("/readyz names a migration that is missing", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      yield* sql`UPDATE schema_migrations SET id = -id WHERE id = 1`
      assertRefused(yield* server.send({ path: "/readyz" }), 503, "NOT_READY", "migrations")
      yield* sql`UPDATE schema_migrations SET id = -id WHERE id = -1`
      assertAnswered(yield* server.send({ path: "/readyz" }), 200)
    })
  )

  it.effect("/readyz notices a signing key that nobody can look up", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const { kid } = yield* (yield* KeyRing).current
      yield* sql`UPDATE signing_keys SET kid = 'hidden'`
      assertRefused(yield* server.send({ path: "/readyz" }), 503, "NOT_READY", "signing_key")
      yield* sql`UPDATE signing_keys SET kid = ${kid}`
      assertAnswered(yield* server.send({ path: "/readyz" }), 200)
    })
  )
})

layer(TestServer.layer)("Public keys", (it) => {
  it.effect("are a list of one page, the active one first, to anyone", () =>
    Effect.gen(function* () {
      const server = yield* TestServer
      const before = yield* (yield* KeyRing).current
      const rotated = yield* (yield* KeyRing).rotate
      const answer = yield* server.send({ path: "/api/v1/system/public-keys?limit=1", anonymous: true })
      const keys = assertAnswered(answer, 200) as ReadonlyArray<Record<string, string>>
      assert.deepStrictEqual(
        keys.map(({ kid, algorithm, status }) => [kid, algorithm, status]),
        [
          [rotated.kid, "Ed25519", "active"],
          [before.kid, "Ed25519", "retired"]
        ]
      )
      assert.strictEqual(Buffer.from(keys[0]!["public_key"]!, "base64").length, 32)
      assert.deepStrictEqual((answer.json as { page_info: unknown }).page_info, { next_cursor: null })
    })
  )
})
