/** What a sampled request exports, which requests are sampled, and how their context is taken over and handed on. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { issue, makeMetered } from "../../support/http/IssuedLicenses.ts"
import { layerTelemetry, type ReceivedSpan, TelemetryReceiver } from "../../support/http/TelemetryReceiver.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { layerService, makeReceiver } from "../../support/http/Webhooks.ts"
import { poll } from "../../support/rules/Poll.ts"

const callerSpan = "00f067aa0ba902b7"
let traces = 0
const newTraceId = () => (++traces).toString(16).padStart(32, "a")
const contextOf = (traceId: string, isSampled = true) => ({
  traceparent: `00-${traceId}-${callerSpan}-${isSampled ? "01" : "00"}`
})

const Subject = (variables: Readonly<Record<string, string>> = {}) =>
  layerService().pipe(Layer.provide(layerTelemetry(variables)), Layer.provideMerge(TelemetryReceiver.layer))

/** Waits for spans of a trace with these names. */
const awaitSpans = Effect.fnUntraced(function* (traceId: string, ...names: ReadonlyArray<string>) {
  const { spans, until } = yield* TelemetryReceiver
  return yield* until(() => {
    const found = names.map((name) => spans.find((span) => span.traceId === traceId && span.name === name))
    return found.every((span) => span !== undefined) ? (found as ReadonlyArray<ReceivedSpan>) : undefined
  })
})

const call = (licenseKey: string, operation: string, body: unknown, headers: Readonly<Record<string, string>>) =>
  Effect.flatMap(TestServer, ({ send }) =>
    send({
      method: "POST",
      path: `/api/v1/license/${operation}`,
      headers: { authorization: `License ${licenseKey}`, ...headers },
      body
    })
  )

layer(Subject(), { excludeTestServices: true })("A sampled request", (it) => {
  it.effect("is one trace from its caller to its statements", () =>
    Effect.gen(function* () {
      const { spans } = yield* TelemetryReceiver
      const { license_key, id } = yield* issue()
      const traceId = newTraceId()
      const { status } = yield* call(license_key, "activate", { fingerprint: "a machine" }, contextOf(traceId))
      assert.strictEqual(status, 200)
      const route = "/api/v1/license/activate"
      const [request, command, commit] = yield* awaitSpans(
        traceId,
        `POST ${route}`,
        "license activate",
        "journal.commit"
      )
      assert.deepInclude(request, { parentSpanId: callerSpan, kind: "SERVER", status: "UNSET", events: 0 })
      assert.deepStrictEqual(request!.attributes, {
        "http.request.method": "POST",
        "http.route": route,
        "url.path": route,
        "url.scheme": "http",
        "http.response.status_code": 200
      })
      assert.deepInclude(command, { parentSpanId: request!.spanId, kind: "INTERNAL" })
      assert.strictEqual(command!.attributes["licensing.license.id"], id)
      assert.strictEqual(commit!.parentSpanId, command!.spanId)
      assert.deepStrictEqual(commit!.links, [{ traceId, spanId: command!.spanId }])
      const statements = spans.filter(({ parentSpanId }) => parentSpanId === commit!.spanId)
      assert.isAbove(statements.length, 1)
      for (const { attributes, kind, name } of statements) {
        assert.strictEqual(kind, "CLIENT")
        assert.strictEqual(attributes["db.system.name"], "postgresql")
        assert.isString(attributes["db.namespace"])
        assert.isString(attributes["db.query.text"])
        assert.strictEqual(attributes["db.query.summary"], name)
      }
      assert.include(statements.map(({ name }) => name).join(), "INSERT devices")
    })
  )

  it.effect("that reads a license leads to the statement that loads it", () =>
    Effect.gen(function* () {
      const { license_key } = yield* issue()
      const traceId = newTraceId()
      yield* call(license_key, "check", { fingerprint: "nobody" }, contextOf(traceId))
      const [command, load] = yield* awaitSpans(traceId, "license check", "licenses.load")
      assert.strictEqual(load!.parentSpanId, command!.spanId)
    })
  )

  it.effect("shares the span of its commit with the others of its group, which are linked", () =>
    Effect.gen(function* () {
      const { spans, until } = yield* TelemetryReceiver
      const licenses = yield* Effect.all(Array.from({ length: 16 }, () => issue({ max_activations: 0 })))
      let machines = 0
      const round = Effect.gen(function* () {
        const ids = licenses.map(newTraceId)
        yield* Effect.forEach(
          licenses,
          ({ license_key }, index) =>
            call(license_key, "activate", { fingerprint: `machine-${++machines}` }, contextOf(ids[index]!)),
          { concurrency: "unbounded" }
        )
        yield* Effect.forEach(ids, (id) => awaitSpans(id, "license activate"))
        const isShared = ({ links, name, traceId }: ReceivedSpan) =>
          name === "journal.commit" && ids.includes(traceId) && links.length > 1
        return spans.find(isShared)
      })
      const commit = (yield* poll(round, (found) => found !== undefined))!
      assert.strictEqual(commit.attributes["licensing.batch.size"], commit.links.length)
      for (const [index, link] of commit.links.entries()) {
        const isLinked = ({ spanId }: ReceivedSpan) => spanId === link.spanId
        const command = yield* until(() => spans.find(isLinked))
        assert.deepInclude(command, { name: "license activate", traceId: link.traceId })
        // The first one is the commit's parent.
        const isCommit = ({ spanId }: ReceivedSpan["links"][number]) => spanId === commit.spanId
        assert.strictEqual(command.links.some(isCommit), index > 0)
      }
    })
  )

  it.effect("of the management API has the spans of its service, and no text of an error", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { spans } = yield* TelemetryReceiver
      yield* client.products.create({ payload: { name: "P", code: "taken" } })
      const traceId = newTraceId()
      const body = { name: "P", code: "taken" }
      const { status } = yield* send({ method: "POST", path: "/api/v1/products", headers: contextOf(traceId), body })
      assert.strictEqual(status, 409)
      const [request, create] = yield* awaitSpans(traceId, "POST /api/v1/products", "Products.create")
      assert.strictEqual(request!.attributes["licensing.refusal"], "DUPLICATE_CODE")
      assert.strictEqual(create!.attributes["licensing.refusal"], "DUPLICATE_CODE")
      const failed = spans.filter((span) => span.traceId === traceId && span.status === "ERROR")
      assert.isNotEmpty(failed)
      for (const { attributes, events } of failed) {
        assert.strictEqual(attributes["error.type"], "23505")
        assert.strictEqual(events, 0)
      }
    })
  )

  it.effect("is continued by the deliveries of its events", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { next, port, url } = yield* makeReceiver
      yield* client.webhooks.create({ payload: { name: "W", url, event_types: ["usage.consumed"] } })
      const { license_key } = yield* makeMetered
      const traceId = newTraceId()
      const use = { fingerprint: "a machine", feature_code: "exports", event_id: "one" }
      yield* call(license_key, "consume", use, contextOf(traceId))
      const { headers } = yield* next
      const [delivery, request] = yield* awaitSpans(traceId, "POST", "POST /api/v1/license/consume")
      assert.strictEqual(headers["traceparent"], `00-${traceId}-${delivery!.spanId}-01`)
      assert.deepInclude(delivery, { kind: "CLIENT", parentSpanId: request!.spanId, status: "UNSET" })
      assert.deepInclude(delivery!.attributes, {
        "http.request.method": "POST",
        "http.response.status_code": 204,
        "server.address": "127.0.0.1",
        "server.port": port,
        "url.full": `http://127.0.0.1:${port}/REDACTED`,
        "licensing.event.type": "usage.consumed"
      })
    })
  )

  it.effect("that fails has the status of an error", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { answer, next, url } = yield* makeReceiver
      answer(() => ({ status: 500 }))
      yield* client.webhooks.create({ payload: { name: "W", url, event_types: ["license.activated"] } })
      const { license_key } = yield* issue()
      const traceId = newTraceId()
      yield* call(license_key, "activate", { fingerprint: "a machine" }, contextOf(traceId))
      yield* next
      const [delivery] = yield* awaitSpans(traceId, "POST")
      assert.strictEqual(delivery!.status, "ERROR")
      assert.deepInclude(delivery!.attributes, { "http.response.status_code": 500, "error.type": "500" })
    })
  )

  it.effect("has its trace id in its log records", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const { logs, until } = yield* TelemetryReceiver
      const traceId = newTraceId()
      const { headers } = yield* send({ path: "/api/v1/products", headers: contextOf(traceId) })
      const [request] = yield* awaitSpans(traceId, "GET /api/v1/products")
      const log = yield* until(() => logs.find((each) => each.traceId === traceId))
      assert.deepInclude(log, { body: "Answered a request.", severity: "INFO", spanId: request!.spanId })
      assert.deepInclude(log.attributes, {
        route: "/api/v1/products",
        status: 200,
        request_id: String(headers["x-request-id"])
      })
    })
  )
})

layer(Subject({ OTEL_TRACES_SAMPLER: "parentbased_always_off" }), { excludeTestServices: true })(
  "Without sampling of its own",
  (it) => {
    it.effect("the service records the requests that their callers sample, and no others", () =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { spans } = yield* TelemetryReceiver
        const { next, url } = yield* makeReceiver
        yield* client.webhooks.create({ payload: { name: "W", url, event_types: ["license.activated"] } })
        const { license_key } = yield* issue({ max_activations: 0 })
        const [unsampled, sampled] = [newTraceId(), newTraceId()]
        yield* call(license_key, "activate", { fingerprint: "a" }, {})
        assert.notProperty((yield* next).headers, "traceparent")
        yield* call(license_key, "activate", { fingerprint: "b" }, contextOf(unsampled, false))
        yield* call(license_key, "activate", { fingerprint: "c" }, { traceparent: "00-none-none-01" })
        yield* call(license_key, "activate", { fingerprint: "d" }, contextOf(sampled))
        yield* awaitSpans(sampled, "POST /api/v1/license/activate", "journal.commit", "POST")
        assert.deepStrictEqual([...new Set(spans.map(({ traceId }) => traceId))], [sampled])
      })
    )
  }
)

layer(Subject({ OTEL_PROPAGATORS: "b3,jaeger" }), { excludeTestServices: true })("Other propagators", (it) => {
  it.effect("take the context over and hand it on in their own headers", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { next, url } = yield* makeReceiver
      yield* client.webhooks.create({ payload: { name: "W", url, event_types: ["license.activated"] } })
      const { license_key } = yield* issue()
      const [traceId, ignored] = [newTraceId(), newTraceId()]
      const b3 = `${traceId}-${callerSpan}-1`
      yield* call(license_key, "activate", { fingerprint: "a" }, { b3, ...contextOf(ignored) })
      const [request, delivery] = yield* awaitSpans(traceId, "POST /api/v1/license/activate", "POST")
      assert.strictEqual(request!.parentSpanId, callerSpan)
      const { headers } = yield* next
      assert.strictEqual(headers["b3"], `${traceId}-${delivery!.spanId}-1`)
      assert.strictEqual(headers["uber-trace-id"], `${traceId}:${delivery!.spanId}:0:01`)
      assert.notProperty(headers, "traceparent")
    })
  )
})
