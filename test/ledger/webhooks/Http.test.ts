/** Webhook endpoints over HTTP, and the running service's deliveries to them. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { verifyWebhook } from "../../../src/ledger/webhooks/VerifyWebhook.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { layerService, makeReceiver, untilDeliveries } from "../../support/http/Webhooks.ts"

const path = "/api/v1/webhooks"
const url = "https://8.8.8.8/hooks"

interface Endpoint {
  readonly id: string
  readonly name: string
  readonly [field: string]: unknown
}

const create = Effect.fnUntraced(function* (body: object) {
  const { send } = yield* TestServer
  return assertAnswered(yield* send({ method: "POST", path, body }), 201) as { webhook: Endpoint; secret: string }
})

layer(layerService())("Webhooks over HTTP", (it) => {
  it.effect("are created, read, listed, changed and deleted; the secret is shown once", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const { secret, webhook } = yield* create({ name: "billing", url, event_types: ["license.*"] })
      assert.deepStrictEqual(Object.keys(webhook).sort(), [
        "created_at",
        "event_types",
        "id",
        "is_active",
        "name",
        "secret_prefix",
        "updated_at",
        "url"
      ])
      const own = `${path}/${webhook.id}`
      const read = yield* send({ path: own })
      assert.deepStrictEqual(assertAnswered(read, 200), webhook)
      const list = yield* send({ path: `${path}?limit=200` })
      assert.deepInclude(assertAnswered(list, 200), webhook)
      const renamed = yield* send({ method: "PATCH", path: own, body: { name: "renamed" } })
      const { updated_at: _, ...changed } = assertAnswered(renamed, 200) as Endpoint
      assert.deepInclude(changed, { id: webhook.id, name: "renamed" })
      const given = yield* send({ method: "PATCH", path: own, body: { secret: "a secret of my own" } })
      assert.notProperty(assertAnswered(given, 200), "secret")
      const events = yield* send({ path: `/api/v1/events?resource_id=${webhook.id}` })
      for (const answer of [read, list, renamed, given, events]) {
        assert.notInclude(answer.text, secret)
        assert.notInclude(answer.text, "a secret of my own")
      }
      const rotated = yield* send({ method: "PATCH", path: own, body: { rotate_secret: true } })
      const again = assertAnswered(rotated, 200) as { webhook: Endpoint; secret: string }
      assert.deepStrictEqual(Object.keys(again).sort(), ["secret", "webhook"])
      assert.match(again.secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
      const removed = yield* send({ method: "DELETE", path: own })
      assert.deepStrictEqual([removed.status, removed.text], [204, ""])
      assertRefused(yield* send({ path: own }), 404, "NOT_FOUND", "id")
    })
  )

  it.effect("require webhook:write, for reading too", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { webhook } = yield* create({ name: "scoped", url })
      const tokenOf = (scopes: ReadonlyArray<"webhook:write" | "event:read" | "ops:read">) =>
        Effect.map(client["api-keys"].create({ payload: { name: "k", scopes } }), ({ token }) => ({
          authorization: `Bearer ${token}`
        }))
      const own = `${path}/${webhook.id}`
      const calls = [
        { path },
        { path: own },
        { method: "POST", path, body: { name: "n", url } },
        { method: "PATCH", path: own, body: {} },
        { method: "DELETE", path: own }
      ]
      const other = yield* tokenOf(["event:read", "ops:read"])
      for (const call of calls) {
        assertRefused(yield* send({ ...call, headers: other }), 403, "TOKEN_SCOPE_DENIED", "webhook:write")
        assertRefused(yield* send({ ...call, anonymous: true }), 401, "TOKEN_MISSING")
      }
      const writer = yield* tokenOf(["webhook:write"])
      for (const call of calls) assert.isBelow((yield* send({ ...call, headers: writer })).status, 300, call.method)
    })
  )

  it.effect("are refused with a field's path when a request is invalid", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const { webhook } = yield* create({ name: "faults", url })
      const own = `${path}/${webhook.id}`
      const short = "fifteen letters"
      const faults = [
        ["POST", {}, 422, "VALIDATION_ERROR", "name"],
        ["POST", { name: "x" }, 422, "VALIDATION_ERROR", "url"],
        ["POST", { name: "x", url: "http://8.8.8.8/#a" }, 422, "VALIDATION_ERROR", "url"],
        ["POST", { name: "x", url: "https://10.0.0.1/" }, 422, "VALIDATION_ERROR", "url"],
        ["POST", { name: "x", url: `https://8.8.8.8/${"p".repeat(2_048)}` }, 422, "VALIDATION_ERROR", "url"],
        ["POST", { name: "x", url, event_types: ["license.*", "nothing"] }, 422, "VALIDATION_ERROR", "event_types[1]"],
        ["POST", { name: "x", url, secret: short }, 422, "VALIDATION_ERROR", "secret"],
        ["POST", { name: "x", url, rotate_secret: true }, 400, "INVALID_JSON", "rotate_secret"],
        ["POST", { name: "x", url, is_active: null }, 400, "INVALID_JSON", "is_active"],
        ["POST", { name: "x", url, id: "wh_1" }, 400, "INVALID_JSON", "id"],
        ["PATCH", { rotate_secret: true, secret: `${short}!` }, 422, "VALIDATION_ERROR", "rotate_secret"],
        ["PATCH", { url: "https://127.0.0.1:1@8.8.8.8/" }, 422, "VALIDATION_ERROR", "url"],
        ["PATCH", { event_types: null }, 400, "INVALID_JSON", "event_types"],
        ["PATCH", { secret_prefix: "x" }, 400, "INVALID_JSON", "secret_prefix"]
      ] as const
      for (const [method, body, status, code, detail] of faults) {
        const answer = yield* send({ method, path: method === "POST" ? path : own, body })
        assertRefused(answer, status, code, detail)
      }
      assertRefused(yield* send({ method: "PATCH", path: `${path}/wh_1`, body: { name: "" } }), 404, "NOT_FOUND", "id")
      assertRefused(yield* send({ path: `${path}?is_active=maybe` }), 400, "INVALID_QUERY", "is_active")
    })
  )

  it.effect("show a secret again only when the identical creating request is repeated", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const request = {
        method: "POST",
        path,
        body: { name: "once", url },
        headers: { "idempotency-key": "make-this-one" }
      }
      const first = yield* send(request)
      const again = yield* send(request)
      assert.strictEqual(again.text, first.text)
      assert.strictEqual(again.headers["idempotency-replayed"], "true")
    })
  )

  it.effect("receive deliveries as events happen, and show the time of the last one", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const receiver = yield* makeReceiver
      const { secret, webhook } = yield* create({ name: "live", url: receiver.url })
      const product = yield* client.products.create({ payload: { name: "Editor", code: "delivered" } })
      const deliveries = [yield* receiver.next, yield* receiver.next]
      const types = deliveries.map(({ headers }) => headers["x-service-event-type"])
      assert.sameMembers(types, ["webhook.created", "product.created"])
      const received = deliveries[types.indexOf("product.created")]!
      const verified = verifyWebhook({ ...received, secret })
      if (!verified.valid) return assert.fail(verified.reason)
      const { items } = yield* client.events.list({ query: { resource_id: product.id } })
      const [event] = items
      assert.deepStrictEqual(verified.event, {
        id: `evt_${event!.sequence}`,
        type: "product.created",
        sequence: event!.sequence,
        created_at: new Date(event!.created_at).toISOString(),
        data: {
          actor_type: "api_key",
          actor_id: event!.actor_id,
          actor_name: "bootstrap",
          resource_type: "product",
          resource_id: product.id,
          metadata: event!.metadata
        }
      })
      // The receiver sees a delivery before its outcome is written.
      yield* untilDeliveries(
        webhook.id,
        (rows) => rows.length === 2 && rows.every(({ status }) => status === "delivered")
      )
      const read = yield* send({ path: `${path}/${webhook.id}` })
      const { last_delivery_at } = assertAnswered(read, 200) as { last_delivery_at: string }
      assert.isAtLeast(Date.parse(last_delivery_at), Math.floor(event!.created_at))
    })
  )
})
