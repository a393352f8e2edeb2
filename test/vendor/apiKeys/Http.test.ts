import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { exchange } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const path = "/api/v1/api-keys"

layer(TestServer.layer)("API keys over HTTP", (it) => {
  it.effect("are created with a working token, and returned without it", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const created = yield* send({ method: "POST", path, body: { name: "ci", scopes: ["product:read"] } })
      assert.strictEqual(created.status, 201)
      const { data } = created.json as { data: { api_key: { id: string }; token: string } }
      const read = yield* send({ path: `${path}/${data.api_key.id}` })
      assert.deepStrictEqual([read.status, (read.json as { data: unknown }).data], [200, data.api_key])
      assert.notInclude(read.text, data.token)
      const headers = { authorization: `Bearer ${data.token}` }
      assert.strictEqual((yield* send({ path: "/api/v1/products", headers })).status, 200)
      const events = yield* client.events.list({ query: { resource_id: data.api_key.id } })
      assert.deepStrictEqual(
        events.items.map(({ actor_type, event_type, ip_address }) => [event_type, actor_type, ip_address]),
        [["api_key.created", "api_key", "127.0.0.1"]]
      )
    })
  )

  it.effect("are updated: null clears the expiry, and nothing else may be null", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const expires_at = Date.UTC(2100, 0, 1)
      const { api_key } = yield* client["api-keys"].create({ payload: { name: "expiring", expires_at } })
      const patch = (body: unknown) => send({ method: "PATCH", path: `${path}/${api_key.id}`, body })
      const cleared = yield* patch({ expires_at: null })
      assert.strictEqual(cleared.status, 200)
      assert.notProperty((cleared.json as { data: object }).data, "expires_at")
      const refused = yield* patch({ name: null })
      assert.deepStrictEqual([refused.status, refused.error.code, refused.error.detail], [400, "INVALID_JSON", "name"])
    })
  )

  it.effect("are revoked: 204, then 404, and the token is TOKEN_INVALID", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { api_key, token } = yield* client["api-keys"].create({ payload: { name: "gone" } })
      const headers = { authorization: `Bearer ${token}` }
      assert.strictEqual((yield* send({ path, headers })).status, 200)
      const removed = yield* send({ method: "DELETE", path: `${path}/${api_key.id}` })
      assert.deepStrictEqual([removed.status, removed.text], [204, ""])
      const again = yield* send({ path: `${path}/${api_key.id}` })
      assert.deepStrictEqual([again.status, again.error.code], [404, "NOT_FOUND"])
      const answer = yield* send({ path, headers })
      assert.deepStrictEqual([answer.status, answer.error.code], [401, "TOKEN_INVALID"])
      assert.strictEqual(answer.headers["www-authenticate"], 'Bearer realm="licensing", error="invalid_token"')
    })
  )

  it.effect("are refused with a field's path when a request is invalid", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const faults = [
        [{}, 422, "VALIDATION_ERROR", "name"],
        [{ name: "" }, 422, "VALIDATION_ERROR", "name"],
        [{ name: "a", scopes: ["root"] }, 422, "VALIDATION_ERROR", "scopes[0]"],
        [{ name: "a", scopes: [] }, 422, "VALIDATION_ERROR", "scopes"],
        [{ name: "a", allowed_cidrs: ["10.0.0.0/8", "10.0.0.1"] }, 422, "VALIDATION_ERROR", "allowed_cidrs[1]"],
        [{ name: "a", expires_at: "tomorrow" }, 422, "VALIDATION_ERROR", "expires_at"],
        [{ name: "a", expires_at: null }, 400, "INVALID_JSON", "expires_at"],
        [{ name: "a", is_active: false }, 400, "INVALID_JSON", "is_active"]
      ] as const
      for (const [body, status, code, detail] of faults) {
        const answer = yield* send({ method: "POST", path, body })
        assert.deepStrictEqual([answer.status, answer.error.code, answer.error.detail], [status, code, detail])
      }
      const list = yield* send({ path: `${path}?is_active=maybe` })
      assert.deepStrictEqual([list.status, list.error.code, list.error.detail], [400, "INVALID_QUERY", "is_active"])
    })
  )

  it.effect("cannot be used by a request with two Authorization headers", () =>
    Effect.gen(function* () {
      const { adminToken, port } = yield* TestServer
      const line = `Authorization: Bearer ${adminToken}\r\n`
      const request = (headers: string) =>
        `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${headers}\r\n`
      assert.strictEqual((yield* exchange(port, request(line))).status, 200)
      for (const second of [line, "authorization: Basic abc\r\n"]) {
        const { error, status } = yield* exchange(port, request(line + second))
        assert.deepStrictEqual([status, error.code], [401, "TOKEN_MALFORMED"])
      }
    })
  )

  it.effect("report what is wrong with a credential, each with its code", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const expired = yield* client["api-keys"].create({ payload: { name: "expired", expires_at: 0 } })
      const blocked = yield* client["api-keys"].create({
        payload: { name: "blocked", allowed_cidrs: ["192.0.2.0/24"] }
      })
      const inactive = yield* client["api-keys"].create({ payload: { name: "inactive" } })
      yield* client["api-keys"].update({ params: { id: inactive.api_key.id }, payload: { is_active: false } })
      const cases = [
        [undefined, "TOKEN_MISSING", 'Bearer realm="licensing"'],
        ["Bearer", "TOKEN_MISSING", 'Bearer realm="licensing"'],
        ["License LK-1", "TOKEN_MALFORMED", 'Bearer realm="licensing", error="invalid_token"'],
        [`Bearer ${expired.token}`, "TOKEN_EXPIRED", 'Bearer realm="licensing", error="invalid_token"'],
        [`Bearer ${blocked.token}`, "TOKEN_ADDRESS_BLOCKED", 'Bearer realm="licensing", error="invalid_token"'],
        [`Bearer ${inactive.token}`, "TOKEN_INACTIVE", 'Bearer realm="licensing", error="invalid_token"']
      ] as const
      for (const [authorization, code, challenge] of cases) {
        const headers = authorization === undefined ? {} : { authorization }
        const answer = yield* send({ path, anonymous: true, headers })
        assert.deepStrictEqual([answer.status, answer.error.code], [401, code])
        assert.strictEqual(answer.headers["www-authenticate"], challenge)
      }
    })
  )
})
