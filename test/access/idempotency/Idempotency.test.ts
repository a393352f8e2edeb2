import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { Database, holdLock, untilBlocked } from "../../support/database/Database.ts"
import type { Answer, Message } from "../../support/http/Http.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { startServer, TestServer } from "../../support/http/TestServer.ts"

let keyCount = 0
const freshKey = () => `n${++keyCount}`

const create = (code: string, key: string, more: Partial<Message> = {}): Message => ({
  method: "POST",
  path: "/api/v1/customers",
  body: { name: "C", code },
  ...more,
  headers: { "idempotency-key": key, ...more.headers }
})

const assertReplayed = (answer: Answer, first: Answer) => {
  assert.deepStrictEqual([answer.status, answer.text], [first.status, first.text])
  assert.strictEqual(answer.headers["idempotency-replayed"], "true")
  assert.strictEqual(answer.headers["content-type"], first.headers["content-type"])
  assert.notStrictEqual(answer.headers["x-request-id"], first.headers["x-request-id"])
}

const count = (table: string, condition = "TRUE") =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql<{
      count: number
    }>`SELECT count(*)::int AS count FROM ${sql(table)} WHERE ${sql.literal(condition)}`
    return row!.count
  })

/** Locks a table so that its writers wait until the test releases it. */
const lockTable = Effect.fnUntraced(function* (table: string) {
  const { release } = yield* holdLock((sql) => sql`LOCK TABLE ${sql(table)} IN EXCLUSIVE MODE`)
  return { writerWaits: untilBlocked, release }
})

layer(TestServer.layer)("A request with an Idempotency-Key", (it) => {
  it.effect("runs once, and always gets the same response afterwards", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const [code, key] = [freshKey(), freshKey()]
      const first = yield* send(create(code, key))
      assertAnswered(first, 201)
      assert.notProperty(first.headers, "idempotency-replayed")
      for (let index = 0; index < 3; index++) assertReplayed(yield* send(create(code, key)), first)
      assert.strictEqual(yield* count("customers", `code = '${code}'`), 1)
      assert.strictEqual(yield* count("events", `metadata->>'code' = '${code}'`), 1)
    })
  )

  it.effect("runs once, however its path is written", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const license = yield* issue()
      const [code, key] = [freshKey(), freshKey()]
      const first = yield* send(create(code, key))
      assertReplayed(yield* send(create(code, key, { path: "/api/v1/customer%73" })), first)
      assertReplayed(yield* send(create(code, key, { path: "/%61pi/v1/customers?" })), first)
      const suspend = (id: string) =>
        send({ method: "POST", path: `/api/v1/licenses/${id}/suspend`, headers: { "idempotency-key": key } })
      const suspended = yield* suspend(license.id)
      assertAnswered(suspended, 200)
      assertReplayed(yield* suspend(license.id.replace("_", "%5F")), suspended)
      assertRefused(yield* suspend(`${license.id}%2Fx`), 404, "NOT_FOUND")
    })
  )

  it.effect("that is sent many times at once runs once; the others get 409 or its response", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const license = yield* issue()
      const suspend = license.post("suspend", undefined, { "idempotency-key": freshKey() })
      for (const request of [send(create(freshKey(), freshKey())), suspend]) {
        const answers = yield* Effect.replicateEffect(request, 24, { concurrency: "unbounded" })
        const [first, ...others] = answers.filter(({ status }) => status < 300)
        assert.isDefined(first)
        for (const { text } of others) assert.strictEqual(text, first.text)
        for (const answer of answers.filter(({ status }) => status >= 300)) {
          assertRefused(answer, 409, "IDEMPOTENCY_IN_PROGRESS", "Idempotency-Key")
        }
        assert.strictEqual(
          answers.filter((answer) => answer.headers["idempotency-replayed"] !== "true" && answer.status < 300).length,
          1
        )
        assertReplayed(yield* request, first)
      }
      assert.strictEqual(
        yield* count("events", `resource_id = '${license.id}' AND event_type = 'license.suspended'`),
        1
      )
    })
  )

  it.effect("whose response is stored gets it also if it is sent many times at once", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const license = yield* issue()
      const renew = license.post("renew", { extend_by_days: 30 }, { "idempotency-key": freshKey() })
      for (const request of [send(create(freshKey(), freshKey())), renew]) {
        const first = yield* request
        assert.isBelow(first.status, 300)
        const answers = yield* Effect.replicateEffect(request, 12, { concurrency: "unbounded" })
        for (const answer of answers) assertReplayed(answer, first)
      }
    })
  )

  it.effect("is 409 while the first still runs, immediately, with any body", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const [code, key] = [freshKey(), freshKey()]
      const { release, writerWaits } = yield* lockTable("customers")
      const first = yield* Effect.forkChild(send(create(code, key)))
      yield* writerWaits
      assertRefused(yield* send(create(code, key)), 409, "IDEMPOTENCY_IN_PROGRESS")
      assertRefused(yield* send(create(freshKey(), key)), 409, "IDEMPOTENCY_IN_PROGRESS")
      yield* release
      const answer = yield* Fiber.join(first)
      assertAnswered(answer, 201)
      assertReplayed(yield* send(create(code, key)), answer)
    })
  )

  it.effect("is 422 with another body, compared by bytes, and does not change the stored response", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const [code, key] = [freshKey(), freshKey()]
      const first = yield* send(create(code, key))
      const bodies = [
        { name: "C", code: freshKey() },
        `{"name": "C", "code": "${code}"}`,
        `{"code":"${code}","name":"C"}`,
        "{",
        ""
      ]
      for (const body of bodies) {
        assertRefused(yield* send(create(code, key, { body })), 422, "IDEMPOTENCY_KEY_REUSED", "Idempotency-Key")
      }
      assertReplayed(yield* send(create(code, key)), first)
    })
  )

  it.effect("accepts keys of 1 to 255 characters", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const longest = "k".repeat(255)
      const first = yield* send(create(freshKey(), longest))
      assertAnswered(first, 201)
      assertRefused(yield* send(create(freshKey(), longest)), 422, "IDEMPOTENCY_KEY_REUSED")
      assertRefused(yield* send(create(freshKey(), `${longest}k`)), 400, "BAD_REQUEST", "Idempotency-Key")
      assertAnswered(yield* send(create(freshKey(), "k")), 201)
      assertRefused(yield* send(create(freshKey(), "")), 400, "BAD_REQUEST", "Idempotency-Key")
    })
  )

  it.effect("has a key per credential, method and path", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const key = freshKey()
      const { token } = yield* client["api-keys"].create({ payload: { name: "another", scopes: ["admin"] } })
      const body = { name: "C", code: freshKey() }
      const first = yield* send(create("", key, { body }))
      const { id } = assertAnswered(first, 201) as { readonly id: string }
      const another = yield* send(create("", key, { body, headers: { authorization: `Bearer ${token}` } }))
      assertRefused(another, 409, "DUPLICATE_CODE")
      assertAnswered(yield* send(create("", key, { path: "/api/v1/products", body })), 201)
      const path = `/api/v1/customers/${id}`
      assertAnswered(yield* send({ method: "PATCH", path, body, headers: { "idempotency-key": key } }), 200)
      const unknown = { method: "PATCH", path: `${path}x`, body, headers: { "idempotency-key": key } }
      assertRefused(yield* send(unknown), 404, "NOT_FOUND")
      const deletion = { method: "DELETE", path, headers: { "idempotency-key": key } }
      assert.deepStrictEqual([(yield* send(deletion)).status, (yield* send(deletion)).status], [204, 204])
      assertReplayed(yield* send(create("", key, { body, path: "/api/v1/customers?ignored=1" })), first)
    })
  )

  it.effect("ignores the key if nothing is changed", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const headers = { "idempotency-key": freshKey() }
      const before = yield* count("idempotent_answers")
      for (let index = 0; index < 2; index++) {
        const answer = yield* send({ path: "/api/v1/customers", headers })
        assertAnswered(answer, 200)
        assert.notProperty(answer.headers, "idempotency-replayed")
      }
      assert.strictEqual(yield* count("idempotent_answers"), before)
    })
  )

  it.effect("of a renewal belongs to the license, for every caller, permanently", () =>
    Effect.gen(function* () {
      const { advance, client, send } = yield* TestServer
      const license = yield* issue()
      const { token } = yield* client["api-keys"].create({ payload: { name: "another", scopes: ["license:write"] } })
      const key = freshKey()
      const renew = (authorization?: string) =>
        send({
          method: "POST",
          path: `${license.path}/renew`,
          body: { extend_by_days: 30 },
          headers: { "idempotency-key": key, ...(authorization === undefined ? undefined : { authorization }) }
        })
      const first = yield* renew()
      assertAnswered(first, 200)
      assertReplayed(yield* renew(`Bearer ${token}`), first)
      yield* advance(400 * 86_400)
      assertReplayed(yield* renew(), first)
      assertRefused(yield* license.post("renew", { extend_by_days: 30 }), 400, "IDEMPOTENCY_KEY_REQUIRED")
      const other = yield* license.post("renew", { extend_by_days: 1 }, { "idempotency-key": key })
      assertRefused(other, 422, "IDEMPOTENCY_KEY_REUSED")
    })
  )

  it.effect("of a refused renewal is free again after 24 hours", () =>
    Effect.gen(function* () {
      const { advance, client } = yield* TestServer
      const { expires_at, id, post } = yield* issue()
      const [key, end] = [freshKey(), new Date(expires_at).toISOString()]
      const renew = () => post("renew", { expires_at: end }, { "idempotency-key": key })
      const first = yield* renew()
      assertRefused(first, 422, "RENEWAL_NOT_LATER")
      yield* client.licenses.update({ params: { id }, payload: { expires_at: expires_at - 86_400_000 } })
      assertReplayed(yield* renew(), first)
      yield* advance(86_401)
      const renewed = yield* renew()
      assertAnswered(renewed, 200)
      yield* advance(86_401)
      assertReplayed(yield* renew(), renewed)
    })
  )
})

layer(Database.layer, { timeout: 60_000 })("The response to a request with an Idempotency-Key", (it) => {
  it.effect("is returned by other instances, and after a restart", () =>
    Effect.gen(function* () {
      const license = yield* Effect.flatMap(startServer(), (one) =>
        Effect.gen(function* () {
          const other = yield* startServer()
          const license = yield* issue().pipe(Effect.provideService(TestServer, one))
          const suspend = {
            method: "POST",
            path: `${license.path}/suspend`,
            headers: { "idempotency-key": "same" }
          }
          const first = yield* one.send(suspend)
          assertAnswered(first, 200)
          assertReplayed(yield* other.send(suspend), first)
          const rotated = yield* license.post("rotate-key", undefined, { "idempotency-key": "same" })
          return { ...license, rotated }
        })
      ).pipe(Effect.scoped)
      const later = yield* startServer()
      const again = { method: "POST", path: `${license.path}/rotate-key`, headers: { "idempotency-key": "same" } }
      assertReplayed(yield* later.send(again), license.rotated)
      yield* later.advance(86_401)
      const repeated = yield* later.send(again)
      assertAnswered(repeated, 200)
      assert.notProperty(repeated.headers, "idempotency-replayed")
      assert.notStrictEqual(repeated.text, license.rotated.text)
    }).pipe(Effect.scoped)
  )

  it.effect("is 409 on another instance while the first runs", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* startServer(), yield* startServer()]
      const { release, writerWaits } = yield* lockTable("customers")
      const first = yield* Effect.forkChild(one.send(create("held", "held")))
      yield* writerWaits
      assertRefused(yield* other.send(create("held", "held")), 409, "IDEMPOTENCY_IN_PROGRESS")
      yield* release
      const answer = yield* Fiber.join(first)
      assertReplayed(yield* other.send(create("held", "held")), answer)
    }).pipe(Effect.scoped)
  )
})
