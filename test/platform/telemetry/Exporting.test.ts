/** How the signals are exported: metrics, formats, headers, resource, and what a failing receiver does to the service. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { layerTelemetry, TelemetryReceiver, warnings } from "../../support/http/TelemetryReceiver.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { poll } from "../../support/rules/Poll.ts"

const Subject = (variables: Readonly<Record<string, string>> = {}) =>
  TestServer.layer.pipe(Layer.provide(layerTelemetry(variables)), Layer.provideMerge(TelemetryReceiver.layer))

const requestProducts = Effect.flatMap(TestServer, ({ send }) => send({ path: "/api/v1/products" }))

layer(Subject(), { excludeTestServices: true })("Metrics", (it) => {
  it.effect("are exported, all that /metrics has, with their units", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const { metrics, until } = yield* TelemetryReceiver
      yield* requestProducts
      const requests = yield* until(() =>
        metrics
          .get("licensing_http_requests_total")
          ?.points.find(({ attributes: { route, status } }) => route === "/api/v1/products" && status === "200")
      )
      assert.deepStrictEqual(requests.attributes, { method: "GET", route: "/api/v1/products", status: "200" })
      assert.isAbove(requests.value, 0)
      const { text } = yield* send({ path: "/metrics" })
      const names = Array.from(text.matchAll(/^# TYPE (\w+)/gm), ([, name]) => name!)
      assert.include(names, "licensing_database_up")
      yield* until(() => (names.every((name) => metrics.has(name)) ? names : undefined))
      assert.strictEqual(metrics.get("licensing_http_request_duration_seconds")?.unit, "s")
      assert.strictEqual(metrics.get("licensing_process_memory_bytes")?.unit, "By")
      // The receiver of Prometheus takes a gauge of unit "1" for a ratio and renames it.
      assert.strictEqual(metrics.get("licensing_license_actors")?.unit, "")
      assert.strictEqual(metrics.get("licensing_database_up")?.points[0]?.value, 1)
    })
  )

  it.effect("belong to the service as the resource, as do spans and logs", () =>
    Effect.gen(function* () {
      const { resource } = yield* TelemetryReceiver
      const attributes = yield* resource
      assert.deepInclude(attributes, { "service.name": "licensing-service", "service.version": "0.0.1" })
      assert.isString(attributes["service.instance.id"])
    })
  )
})

for (const protocol of ["http/protobuf", "http/json"]) {
  const variables = {
    OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
    OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
    OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=a%20b",
    OTEL_SERVICE_NAME: "keys",
    OTEL_RESOURCE_ATTRIBUTES: "service.namespace=back%20office,service.name=not-this"
  }
  layer(Subject(variables), { excludeTestServices: true })(`By ${protocol}`, (it) => {
    it.effect("all signals are exported compressed, with the headers and the resource of the settings", () =>
      Effect.gen(function* () {
        const { exports, logs, metrics, resource, spans, until } = yield* TelemetryReceiver
        yield* requestProducts
        const span = yield* until(() => spans.find(({ kind }) => kind === "SERVER"))
        assert.strictEqual(span.name, "GET /api/v1/products")
        yield* until(() => logs.find(({ traceId }) => traceId === span.traceId))
        yield* until(() => (metrics.size > 0 ? metrics : undefined))
        assert.deepStrictEqual([...new Set(exports.map(({ path }) => path))].toSorted(), [
          "/v1/logs",
          "/v1/metrics",
          "/v1/traces"
        ])
        for (const { headers } of exports) {
          assert.strictEqual(headers["content-encoding"], "gzip")
          assert.strictEqual(headers["x-tenant"], "a b")
          assert.strictEqual(
            headers["content-type"],
            protocol === "http/json" ? "application/json" : "application/x-protobuf"
          )
        }
        assert.deepInclude(yield* resource, { "service.name": "keys", "service.namespace": "back office" })
      })
    )
  })
}

layer(Subject({ OTEL_METRICS_EXPORTER: "none", OTEL_LOGS_EXPORTER: "none" }), { excludeTestServices: true })(
  "Signals that are not selected",
  (it) => {
    it.effect("are not exported", () =>
      Effect.gen(function* () {
        const { exports, spans, until } = yield* TelemetryReceiver
        yield* requestProducts
        yield* until(() => spans.find(({ kind }) => kind === "SERVER"))
        assert.deepStrictEqual([...new Set(exports.map(({ path }) => path))], ["/v1/traces"])
      })
    )
  }
)

layer(Subject(), { excludeTestServices: true })("A receiver that refuses everything", (it) => {
  it.effect("does not disturb the service, and is told once and counted", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const { answer, spans, until } = yield* TelemetryReceiver
      warnings.length = 0
      answer(400)
      const failures = Effect.gen(function* () {
        assert.strictEqual((yield* requestProducts).status, 200)
        const { text } = yield* send({ path: "/metrics" })
        return ["traces", "metrics", "logs"].map((signal) =>
          Number(
            new RegExp(`^licensing_telemetry_failures_total\\{signal="${signal}"\\} (\\d+)`, "m").exec(text)?.[1] ?? 0
          )
        )
      })
      yield* poll(failures, (counts) => counts.every((count) => count >= 3))
      const first = warnings.filter(({ repeated }) => repeated === undefined)
      assert.deepStrictEqual(
        first.map(({ reason }) => reason),
        [...new Set(first.map(({ reason }) => reason))]
      )
      assert.isNotEmpty(first)
      answer(200)
      yield* requestProducts
      yield* until(() => spans.find(({ kind }) => kind === "SERVER"))
    })
  )
})
