/** When the typed client sends a request again: by a fake HTTP client and the test clock. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted } from "effect"
import { HttpClient, HttpClientError, type HttpClientRequest, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { Client, type ClientOptions, type Operations } from "../../../src/clients/client/Client.ts"

type Reply =
  | "lost"
  | "silent"
  | "stalled"
  | { readonly status: number; readonly body?: unknown; readonly headers?: Record<string, string> }

const meta = { request_id: "req_1", timestamp: "2030-01-31T12:00:00.000Z" }
const refusal = (status: number, code: string, headers: Record<string, string> = {}): Reply => ({
  status,
  body: { error: { code, message: "Try again." }, meta },
  headers: { "content-type": "application/json", ...headers }
})
const product = {
  id: "prod_1",
  name: "P",
  code: "p",
  metadata: {},
  created_at: meta.timestamp,
  updated_at: meta.timestamp
}
const created: Reply = { status: 201, body: { data: product, meta }, headers: { "content-type": "application/json" } }
const page: Reply = {
  status: 200,
  body: { data: [], page_info: { next_cursor: null }, meta },
  headers: { "content-type": "application/json" }
}

/** A client that gets these replies, and the requests that it sent. */
const scripted = Effect.fnUntraced(function* (replies: ReadonlyArray<Reply>, options: Partial<ClientOptions> = {}) {
  const sent: Array<HttpClientRequest.HttpClientRequest> = []
  const http = HttpClient.make((request) =>
    Effect.suspend(() => {
      const reply = replies[sent.length] ?? "lost"
      sent.push(request)
      if (reply === "silent") return Effect.never
      if (reply === "stalled")
        return Effect.succeed(HttpClientResponse.fromWeb(request, new Response(new ReadableStream())))
      if (reply === "lost") {
        const reason = new HttpClientError.TransportError({ request, cause: new Error("lost") })
        return Effect.fail(new HttpClientError.HttpClientError({ reason }))
      }
      const { body, headers = {}, status } = reply
      const text = typeof body === "string" ? body : JSON.stringify(body)
      return Effect.succeed(HttpClientResponse.fromWeb(request, new Response(text, { status, headers })))
    })
  )
  const layer = Client.layer({ baseUrl: "http://licensing", token: Redacted.make("lsm_x"), ...options })
  const client = yield* Effect.provide(Client, layer.pipe(Layer.provide(Layer.succeed(HttpClient.HttpClient, http))))
  /** Runs the call for so much time; its exit, or undefined if it still waits. */
  const within = <A, E>(seconds: number, call: (client: Operations) => Effect.Effect<A, E>) =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(Effect.result(call(client)))
      yield* TestClock.adjust(seconds * 1_000)
      return fiber.pollUnsafe() === undefined ? undefined : yield* Fiber.join(fiber)
    })
  return { sent, within }
})

const keys = (sent: ReadonlyArray<HttpClientRequest.HttpClientRequest>) =>
  sent.map(({ headers }) => headers["idempotency-key"])

describe("The typed client", () => {
  it.effect("repeats a change with the same Idempotency-Key", () =>
    Effect.gen(function* () {
      const replies = ["lost", refusal(503, "NOT_READY"), refusal(409, "IDEMPOTENCY_IN_PROGRESS"), created] as const
      const { sent, within } = yield* scripted(replies)
      const outcome = yield* within(10, (client) => client.createProduct({ payload: { name: "P", code: "p" } }))
      assert.strictEqual(outcome?._tag, "Success")
      assert.lengthOf(sent, 4)
      const [key, ...others] = keys(sent)
      assert.match(key ?? "", /^client-[0-9a-f]{32}$/)
      assert.deepStrictEqual(others, [key, key, key])
    })
  )

  it.effect("makes another key for another change", () =>
    Effect.gen(function* () {
      const { sent, within } = yield* scripted([created, created])
      const create = (client: Operations) => client.createProduct({ payload: { name: "P", code: "p" } })
      yield* within(1, create)
      yield* within(1, create)
      assert.lengthOf(new Set(keys(sent)), 2)
    })
  )

  it.effect("sends at most four times, or as often as it is told", () =>
    Effect.gen(function* () {
      const { sent, within } = yield* scripted([])
      const outcome = yield* within(60, (client) => client.listProducts({}))
      assert.strictEqual(outcome?._tag, "Failure")
      assert.lengthOf(sent, 4)
      assert.deepStrictEqual(keys(sent), [undefined, undefined, undefined, undefined])
      const once = yield* scripted([], { attemptsMax: 1 })
      yield* once.within(60, (client) => client.listProducts({}))
      assert.lengthOf(once.sent, 1)
    })
  )

  it.effect("waits as long as Retry-After says, and not for minutes", () =>
    Effect.gen(function* () {
      const limited = (seconds: string) => refusal(429, "RATE_LIMITED", { "retry-after": seconds })
      const { sent, within } = yield* scripted([limited("20"), page])
      assert.isUndefined(yield* within(19, (client) => client.listProducts({})))
      yield* TestClock.adjust(1_000)
      assert.lengthOf(sent, 2)
      const long = yield* scripted([limited("600")])
      assert.strictEqual((yield* long.within(1, (client) => client.listProducts({})))?._tag, "Failure")
      assert.lengthOf(long.sent, 1)
    })
  )

  it.effect("gives up an attempt without a response, and says so", () =>
    Effect.gen(function* () {
      const { sent, within } = yield* scripted(["silent", "silent"], { timeout: "2 seconds", attemptsMax: 2 })
      const outcome = yield* within(10, (client) => client.listProducts({}))
      assert.lengthOf(sent, 2)
      assert.deepInclude(outcome?._tag === "Failure" ? outcome.failure : {}, {
        _tag: "TimedOut",
        operation: "listProducts",
        millis: 2_000
      })
    })
  )

  it.effect("repeats after a response that stalls behind its head, unless a repetition could be refused", () =>
    Effect.gen(function* () {
      const { sent, within } = yield* scripted(["stalled", page], { timeout: "2 seconds" })
      assert.strictEqual((yield* within(5, (client) => client.listProducts({})))?._tag, "Success")
      assert.lengthOf(sent, 2)
      const once = yield* scripted(["stalled"], { timeout: "2 seconds" })
      yield* once.within(60, (client) => client.deactivateLicense({ payload: { fingerprint: "m" } }))
      assert.lengthOf(once.sent, 1)
    })
  )

  it.effect("repeats after a proxy's error page, but not after a refusal", () =>
    Effect.gen(function* () {
      const proxy = { status: 502, body: "<html>", headers: { "content-type": "text/html" } }
      const { sent, within } = yield* scripted([proxy, page])
      assert.strictEqual((yield* within(5, (client) => client.listProducts({})))?._tag, "Success")
      assert.lengthOf(sent, 2)
      const refused = yield* scripted([refusal(409, "DUPLICATE_CODE")])
      yield* refused.within(5, (client) => client.createProduct({ payload: { name: "P", code: "p" } }))
      assert.lengthOf(refused.sent, 1)
    })
  )

  it.effect("fails after a response that has a name twice, whose signed bytes are not clear", () =>
    Effect.gen(function* () {
      const signed = { signature: { alg: "Ed25519", kid: "k", value: "AAAA" }, meta }
      const error = { code: "LICENSE_SUSPENDED", message: "No.", license_id: "lic_1", issued_at: meta.timestamp }
      const body = JSON.stringify({ error, ...signed }).replace("{", '{"error":{},')
      const { sent, within } = yield* scripted([{ status: 403, body, headers: { "content-type": "application/json" } }])
      const outcome = yield* within(5, (client) => client.validateLicense({ payload: { fingerprint: "m" } }))
      assert.instanceOf(outcome?._tag === "Failure" && outcome.failure, HttpClientError.HttpClientError)
      assert.lengthOf(sent, 1)
    })
  )

  it.effect("fails at once if a request cannot be encoded", () =>
    Effect.gen(function* () {
      const { sent, within } = yield* scripted([])
      const outcome = yield* within(0, (client) => client.createProduct({ payload: { name: "", code: "p" } }))
      assert.strictEqual(outcome?._tag, "Failure")
      assert.lengthOf(sent, 0)
    })
  )

  it.effect("repeats runtime operations that name what they do, without an Idempotency-Key", () =>
    Effect.gen(function* () {
      const payload = { fingerprint: "m" }
      const count = (call: (client: Operations) => Effect.Effect<unknown, unknown>) =>
        Effect.gen(function* () {
          const { sent, within } = yield* scripted([])
          yield* within(60, call)
          assert.deepStrictEqual(new Set(keys(sent)), new Set([undefined]))
          return sent.length
        })
      const use = { ...payload, feature_code: "f", event_id: "e" }
      assert.strictEqual(yield* count((client) => client.consumeLicense({ payload: use })), 4)
      assert.strictEqual(yield* count((client) => client.checkoutFloatingLicense({ payload })), 4)
      assert.strictEqual(yield* count((client) => client.deactivateLicense({ payload })), 1)
      assert.strictEqual(yield* count((client) => client.checkinFloatingLicense({ payload: { lease_token: "l" } })), 1)
      const trial = { product_code: "p", policy_code: "t", binding: payload }
      assert.strictEqual(yield* count((client) => client.startTrial({ payload: trial })), 1)
    })
  )
})
