/** The program with and without telemetry and a cluster: which modules it loads, and what it exports before it stops. */
import { fileURLToPath } from "node:url"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Database } from "../../support/database/Database.ts"
import { TelemetryReceiver } from "../../support/http/TelemetryReceiver.ts"
import { startService } from "../../support/processes/Processes.ts"

const main = fileURLToPath(new URL("../../../src/main.ts", import.meta.url))
const modulesSeen = fileURLToPath(new URL("../../support/processes/PrintModules.ts", import.meta.url))

/** The packages of OpenTelemetry that a process has loaded. */
const packagesIn = (printed: string) => [
  ...new Set(printed.match(/@(opentelemetry|effect\/opentelemetry)\/?[\w-]*/g) ?? [])
]

const seeingModules = { NODE_OPTIONS: `--import=${modulesSeen}` }

layer(Layer.merge(Database.layerUrl, TelemetryReceiver.layer), { excludeTestServices: true })("The program", (it) => {
  it.effect("without an endpoint or a cluster loads no module of OpenTelemetry or of the cluster", () =>
    Effect.gen(function* () {
      const settings = { ...seeingModules, OTEL_TRACES_SAMPLER: "always_on", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }
      const { manage, stop, written } = yield* startService(settings, main)
      assert.strictEqual((yield* manage("GET", "/products")).status, 200)
      yield* stop
      assert.include(written.error, "/src/main.ts")
      assert.deepStrictEqual(packagesIn(written.error), [])
      assert.notMatch(written.error, /\/effect\/\w+\/cluster\/|\/src\/cluster\/Cluster\.ts/)
    }).pipe(Effect.scoped)
  )

  it.effect("that is disabled loads none either", () =>
    Effect.gen(function* () {
      const { url } = yield* TelemetryReceiver
      const settings = { ...seeingModules, OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_SDK_DISABLED: "true" }
      const { stop, written } = yield* startService(settings, main)
      yield* stop
      assert.deepStrictEqual(packagesIn(written.error), [])
    }).pipe(Effect.scoped)
  )

  it.effect("with an endpoint exports what is buffered when it stops, and logs trace ids", () =>
    Effect.gen(function* () {
      const { logs, metrics, spans, url } = yield* TelemetryReceiver
      const { manage, stop, written } = yield* startService(
        { ...seeingModules, OTEL_EXPORTER_OTLP_ENDPOINT: url },
        main
      )
      assert.include(packagesIn(written.error), "@opentelemetry/sdk-trace")
      yield* manage("GET", "/products")
      yield* stop
      const request = spans.find(({ name }) => name === "GET /api/v1/products")
      assert.isDefined(request)
      assert.isDefined(logs.find(({ traceId }) => traceId === request.traceId))
      assert.isTrue(metrics.has("licensing_http_requests_total"))
      const record = written.out.split("\n").find((line) => line.includes('"Answered a request."'))
      assert.deepInclude(JSON.parse(record ?? "{}"), { trace_id: request.traceId, span_id: request.spanId })
    }).pipe(Effect.scoped)
  )

  it.effect("stops in time when the collector does not answer", () =>
    Effect.gen(function* () {
      // A reserved address: packets to it are lost.
      const { manage, stop, written } = yield* startService({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://192.0.2.1:4318" })
      assert.strictEqual((yield* manage("GET", "/products")).status, 200)
      yield* stop
      assert.notInclude(written.error, "Stopping took too long")
    }).pipe(Effect.scoped)
  )
})
