/** What an operator does from the command line, beside a running instance. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { openSession } from "../../../src/platform/postgres/driver/Postgres.ts"
import { Database } from "../../support/database/Database.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { masterKey, TestServer } from "../../support/http/TestServer.ts"
import { operatorSettings } from "../../support/processes/CommandLine.ts"
import { type CommandResult, runCommand } from "../../support/processes/Processes.ts"

/** Allows for other tests on a busy machine. */
const minute = 180_000

const Subject = TestServer.layerOver().pipe(Layer.provideMerge(Database.layerUrl))

const command = (...args: ReadonlyArray<string>) =>
  Effect.flatMap(operatorSettings, (settings) => runCommand(settings, ...args))

const assertSucceeded = ({ code, error, out }: CommandResult): ReadonlyArray<string> => {
  assert.strictEqual(code, 0, error)
  return out.trimEnd().split("\n")
}

/** A command that fails: one line states why, and nothing is printed to standard output. */
const assertOneLine = ({ code, error, out }: CommandResult, line: RegExp) => {
  assert.deepStrictEqual([code, out], [1, ""])
  assert.match(error, line)
  assert.strictEqual(error.trimEnd().split("\n").length, 1, error)
}

layer(Subject, { timeout: 60_000 })("`licensing keys`", (it) => {
  it.effect(
    "rotates the signing key of a running instance, and lists the published keys",
    () =>
      Effect.gen(function* () {
        const { client, send } = yield* TestServer
        const published = Effect.map(send({ path: "/api/v1/system/public-keys" }), (answer) =>
          (assertAnswered(answer, 200) as ReadonlyArray<{ kid: string; status: string; created_at: string }>).map(
            ({ created_at, kid, status }) => `${kid} ${status.padEnd(7)} ${created_at}`
          )
        )
        const [before] = yield* published
        assert.deepStrictEqual(assertSucceeded(yield* command("keys", "list")), [before!])

        const [kid, ...rest] = assertSucceeded(yield* command("keys", "rotate"))
        assert.match(kid!, /^[0-9a-f]{16}$/)
        assert.deepStrictEqual(rest, [])
        const keys = yield* published
        assert.strictEqual(keys.length, 2)
        assert.deepStrictEqual(assertSucceeded(yield* command("keys", "list")), keys)
        assert.match(keys[0]!, new RegExp(`^${kid} active `))

        const [event] = (yield* client.events.list({ query: { event_type: "signing_key.rotated" } })).items
        assert.deepStrictEqual([event?.actor_type, event?.actor_id], ["system", "cli"])
        assert.deepStrictEqual([event?.resource_type, event?.resource_id], ["signing_key", kid])
        const { request_id, ...metadata } = event!.metadata
        assert.deepStrictEqual(metadata, { kid: kid!, retired_kid: before!.slice(0, 16) })
        assert.match(String(request_id), /^req_\w{26}$/)
      }),
    minute
  )
})

layer(Subject, { timeout: 60_000 })("`licensing tokens create`", (it) => {
  it.effect(
    "restores access for an operator without a token, and prints only the token",
    () =>
      Effect.gen(function* () {
        const { send } = yield* TestServer
        const sql = yield* SqlClient.SqlClient
        yield* sql`UPDATE api_keys SET revoked_at = now(), is_active = FALSE`
        const created = yield* command("tokens", "create", "--name", "found again")
        const [token, ...rest] = assertSucceeded(created)
        assert.deepStrictEqual(rest, [])
        assert.match(token!, /^lsm_/)
        assert.notInclude(created.error, token!)
        const headers = { authorization: `Bearer ${token}` }
        const answer = yield* send({ path: "/api/v1/api-keys", headers })
        const [key] = assertAnswered(answer, 200) as ReadonlyArray<{ name: string; scopes: ReadonlyArray<string> }>
        assert.deepStrictEqual([key?.name, key?.scopes], ["found again", ["admin"]])
        const events = yield* send({ path: "/api/v1/events?event_type=api_key.created&limit=1", headers })
        const [event] = assertAnswered(events, 200) as ReadonlyArray<{ actor_id: string }>
        assert.strictEqual(event?.actor_id, "cli")
      }),
    minute
  )

  it.effect(
    "grants the requested scopes, and refuses unknown ones",
    () =>
      Effect.gen(function* () {
        const { send } = yield* TestServer
        const narrow = yield* command("tokens", "create", "--name", "narrow", "--scopes", "product:read,event:read")
        const headers = { authorization: `Bearer ${assertSucceeded(narrow)[0]}` }
        assertAnswered(yield* send({ path: "/api/v1/products", headers }), 200)
        assertRefused(yield* send({ path: "/api/v1/api-keys", headers }), 403, "TOKEN_SCOPE_DENIED")
        const sql = yield* SqlClient.SqlClient
        const before = yield* sql`SELECT id FROM api_keys`
        for (const args of [
          ["--name", "x", "--scopes", "everything"],
          ["--name", "", "--scopes", "admin"]
        ]) {
          assert.strictEqual((yield* command("tokens", "create", ...args)).code, 2, args.join(" "))
        }
        assert.lengthOf(yield* sql`SELECT id FROM api_keys`, before.length)
      }),
    minute
  )
})

layer(Subject, { timeout: 60_000 })("Commands that fail", (it) => {
  it.effect(
    "report in one line that the master key is missing or differs",
    () =>
      Effect.gen(function* () {
        const { LICENSING_DATABASE_URL } = yield* operatorSettings
        const other = Buffer.alloc(32, 8).toString("base64")
        for (const args of [["serve"], ["keys", "list"]]) {
          const missing = yield* runCommand({ LICENSING_DATABASE_URL }, ...args)
          assertOneLine(missing, /^LICENSING_MASTER_KEY must be set together with LICENSING_DATABASE_URL: .*\n$/)
          const wrong = yield* runCommand({ LICENSING_DATABASE_URL, LICENSING_MASTER_KEY: other }, ...args)
          assert.strictEqual(wrong.code, 1)
          assert.match(
            wrong.error,
            /^A stored secret is encrypted with the master key \w{8}, but the configured master key is \w{8}: .*\n$/
          )
        }
      }),
    minute
  )

  it.effect(
    "report in one line what a rotation of the master key needs",
    () =>
      Effect.gen(function* () {
        const settings = yield* operatorSettings
        const next = (key: string) =>
          runCommand({ ...settings, LICENSING_MASTER_KEY_NEXT: key }, "master-key", "rotate")
        assertOneLine(
          yield* runCommand(settings, "master-key", "rotate"),
          /^Set LICENSING_MASTER_KEY_NEXT to a new key/
        )
        assertOneLine(yield* next(Redacted.value(masterKey)), /^LICENSING_MASTER_KEY_NEXT is the current key/)
      }),
    minute
  )

  it.effect(
    "report in one line that another rotation of the master key is running",
    () =>
      Effect.gen(function* () {
        const settings = yield* operatorSettings
        const running = yield* openSession((yield* Database).url)
        yield* running.values("SELECT pg_advisory_lock(hashtextextended('licensing/master_key', 0))")
        const next = Buffer.alloc(32, 6).toString("base64")
        const second = yield* runCommand({ ...settings, LICENSING_MASTER_KEY_NEXT: next }, "master-key", "rotate")
        assertOneLine(second, /^Another rotation of the master key is running: wait for its end\.\n$/)
      }).pipe(Effect.scoped),
    minute
  )
})

layer(Subject, { timeout: 60_000 })("`licensing master-key rotate`", (it) => {
  it.effect(
    "reseals every secret under the next key, and prints the remaining steps",
    () =>
      Effect.gen(function* () {
        const settings = yield* operatorSettings
        const next = Buffer.alloc(32, 8).toString("base64")
        const rotated = yield* runCommand({ ...settings, LICENSING_MASTER_KEY_NEXT: next }, "master-key", "rotate")
        const lines = assertSucceeded(rotated)
        assert.include(lines, "signing_keys.private_key_sealed 1")
        assert.match(lines.at(-1)!, /^master key [0-9a-f]{8}$/)
        assert.include(rotated.error, "start each node with LICENSING_MASTER_KEY")
        for (const key of [next, settings.LICENSING_MASTER_KEY]) assert.notInclude(rotated.out + rotated.error, key)
        const listed = yield* runCommand({ ...settings, LICENSING_MASTER_KEY: next }, "keys", "list")
        assertSucceeded(listed)
        assert.strictEqual((yield* runCommand(settings, "keys", "list")).code, 1)
      }),
    minute
  )
})
