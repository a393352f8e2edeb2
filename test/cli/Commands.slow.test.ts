/** What an operator does from the command line, beside an instance that serves. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { Database } from "../support/Database.ts"
import { assertAnswered, assertRefused } from "../support/Http.ts"
import { type CommandResult, operatorSettings, runCommand } from "../support/Processes.ts"
import { masterKey, TestServer } from "../support/TestServer.ts"

/** Beside others on a busy machine. */
const minute = 60_000

const Subject = TestServer.layerOver().pipe(Layer.provideMerge(Database.layerUrl))

const command = (...args: ReadonlyArray<string>) =>
  Effect.flatMap(operatorSettings, (settings) => runCommand(settings, ...args))

const assertDone = ({ code, error, out }: CommandResult): ReadonlyArray<string> => {
  assert.strictEqual(code, 0, error)
  return out.trimEnd().split("\n")
}

/** A command that cannot be done: one line says why, and nothing was answered. */
const assertOneLine = ({ code, error, out }: CommandResult, line: RegExp) => {
  assert.deepStrictEqual([code, out], [1, ""])
  assert.match(error, line)
  assert.strictEqual(error.trimEnd().split("\n").length, 1, error)
}

layer(Subject, { timeout: 60_000 })("`licensing keys`", (it) => {
  it.effect(
    "rotates the signing key of an instance that serves, and lists what is published",
    () =>
      Effect.gen(function* () {
        const { client, send } = yield* TestServer
        const published = Effect.map(send({ path: "/api/v1/system/public-keys" }), (answer) =>
          (assertAnswered(answer, 200) as ReadonlyArray<{ kid: string; status: string; created_at: string }>).map(
            ({ created_at, kid, status }) => `${kid} ${status.padEnd(7)} ${created_at}`
          )
        )
        const [before] = yield* published
        assert.deepStrictEqual(assertDone(yield* command("keys", "list")), [before!])

        const [kid, ...rest] = assertDone(yield* command("keys", "rotate"))
        assert.match(kid!, /^[0-9a-f]{16}$/)
        assert.deepStrictEqual(rest, [])
        const keys = yield* published
        assert.strictEqual(keys.length, 2)
        assert.deepStrictEqual(assertDone(yield* command("keys", "list")), keys)
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
    "lets an operator in again who has no token left, and prints the token alone",
    () =>
      Effect.gen(function* () {
        const { send } = yield* TestServer
        const sql = yield* SqlClient.SqlClient
        yield* sql`UPDATE api_keys SET revoked_at = now(), is_active = FALSE`
        const created = yield* command("tokens", "create", "--name", "found again")
        const [token, ...rest] = assertDone(created)
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
    "gives the scopes that are asked for, and none that there is not",
    () =>
      Effect.gen(function* () {
        const { send } = yield* TestServer
        const narrow = yield* command("tokens", "create", "--name", "narrow", "--scopes", "product:read,event:read")
        const headers = { authorization: `Bearer ${assertDone(narrow)[0]}` }
        assertAnswered(yield* send({ path: "/api/v1/products", headers }), 200)
        assertRefused(yield* send({ path: "/api/v1/api-keys", headers }), 403, "TOKEN_SCOPE_DENIED")
        const sql = yield* SqlClient.SqlClient
        const before = yield* sql`SELECT id FROM api_keys`
        for (const args of [
          ["--name", "x", "--scopes", "everything"],
          ["--name", "", "--scopes", "admin"]
        ]) {
          assert.strictEqual((yield* command("tokens", "create", ...args)).code, 1, args.join(" "))
        }
        assert.lengthOf(yield* sql`SELECT id FROM api_keys`, before.length)
      }),
    minute
  )
})

layer(Subject, { timeout: 60_000 })("Commands that cannot be done", (it) => {
  it.effect(
    "say in one line that the master key is missing or another",
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
    "say in one line what a rotation of the master key needs",
    () =>
      Effect.gen(function* () {
        const settings = yield* operatorSettings
        const next = (key: string) =>
          runCommand({ ...settings, LICENSING_MASTER_KEY_NEXT: key }, "master-key", "rotate")
        assertOneLine(
          yield* runCommand(settings, "master-key", "rotate"),
          /^LICENSING_MASTER_KEY_NEXT must be set to the new key/
        )
        assertOneLine(
          yield* next(Redacted.value(masterKey)),
          /^LICENSING_MASTER_KEY_NEXT is the key that is used already/
        )
      }),
    minute
  )
})

layer(Subject, { timeout: 60_000 })("`licensing master-key rotate`", (it) => {
  it.effect(
    "moves every secret under the next key, and says what is left to do",
    () =>
      Effect.gen(function* () {
        const settings = yield* operatorSettings
        const next = Buffer.alloc(32, 8).toString("base64")
        const rotated = yield* runCommand({ ...settings, LICENSING_MASTER_KEY_NEXT: next }, "master-key", "rotate")
        const lines = assertDone(rotated)
        assert.include(lines, "signing_keys.private_key_sealed 1")
        assert.match(lines.at(-1)!, /^master key [0-9a-f]{8}$/)
        assert.include(rotated.error, "start each node with LICENSING_MASTER_KEY")
        for (const key of [next, settings.LICENSING_MASTER_KEY]) assert.notInclude(rotated.out + rotated.error, key)
        const listed = yield* runCommand({ ...settings, LICENSING_MASTER_KEY: next }, "keys", "list")
        assertDone(listed)
        assert.strictEqual((yield* runCommand(settings, "keys", "list")).code, 1)
      }),
    minute
  )
})
