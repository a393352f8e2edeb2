import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, FileSystem } from "effect"
import { Settings } from "../../../src/platform/config/Config.ts"
import { signals } from "../../../src/platform/config/TelemetrySettings.ts"
import { certificate } from "../../support/http/Http.ts"

const read = (environment: Record<string, string>) =>
  Effect.map(Settings, ({ telemetry }) => telemetry).pipe(
    Effect.provide(Settings.layer),
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnvRecord(environment))
  )

const on = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" }

describe("Telemetry settings", () => {
  it.effect("export nothing without an endpoint or when disabled, whatever the others are", () =>
    Effect.gen(function* () {
      for (const environment of [
        {},
        { OTEL_EXPORTER_OTLP_ENDPOINT: "" },
        { OTEL_TRACES_SAMPLER: "xray", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" },
        { ...on, OTEL_SDK_DISABLED: "TRUE", OTEL_TRACES_SAMPLER: "xray" },
        { ...on, OTEL_TRACES_EXPORTER: "none", OTEL_METRICS_EXPORTER: "none", OTEL_LOGS_EXPORTER: "none" }
      ]) {
        assert.isUndefined(yield* read(environment), JSON.stringify(environment))
      }
    })
  )

  it.effect("have the standard defaults", () =>
    Effect.gen(function* () {
      const telemetry = yield* read(on)
      assert.deepStrictEqual(telemetry, {
        protocols: new Map(signals.map((signal) => [signal, "http/protobuf" as const])),
        sampler: "parentbased_always_on",
        samplerRatio: 1,
        propagators: ["tracecontext", "baggage"],
        logBatches: {},
        logAttributeLengthMax: undefined,
        metricIntervalMillis: 60_000,
        metricTimeoutMillis: undefined,
        metricTemporality: "cumulative"
      })
    })
  )

  it.effect("may differ by signal", () =>
    Effect.gen(function* () {
      const telemetry = yield* read({
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "https://traces.example.com/v1/traces",
        OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: "http://logs/v1/logs",
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
        OTEL_EXPORTER_OTLP_LOGS_PROTOCOL: "http/protobuf",
        OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20secret, x-tenant = one",
        OTEL_TRACES_SAMPLER: "traceidratio",
        OTEL_TRACES_SAMPLER_ARG: ".01",
        OTEL_PROPAGATORS: "b3, tracecontext,b3",
        OTEL_BLRP_MAX_QUEUE_SIZE: "10",
        OTEL_BLRP_MAX_EXPORT_BATCH_SIZE: "5"
      })
      assert.deepStrictEqual(
        [...(telemetry?.protocols ?? [])],
        [
          ["traces", "http/json"],
          ["logs", "http/protobuf"]
        ]
      )
      assert.deepStrictEqual([telemetry?.sampler, telemetry?.samplerRatio], ["traceidratio", 0.01])
      assert.deepStrictEqual(telemetry?.propagators, ["b3", "tracecontext"])
      assert.deepStrictEqual(telemetry?.logBatches, { maxQueueSize: 10, maxExportBatchSize: 5 })
    })
  )

  it.effect("may name PEM files", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const path = yield* files.makeTempFileScoped({ suffix: ".pem" })
      yield* files.writeFileString(path, certificate)
      assert.isDefined(yield* read({ ...on, OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE: path }))
    }).pipe(Effect.scoped, Effect.provide(NodeFileSystem.layer))
  )

  const faults: Readonly<Record<string, string>> = {
    OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318",
    OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: "grpc://collector",
    OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
    OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: "HTTP/JSON",
    OTEL_EXPORTER_OTLP_HEADERS: "authorization: Bearer secret",
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: "a=%zz",
    OTEL_EXPORTER_OTLP_TIMEOUT: "10s",
    OTEL_EXPORTER_OTLP_COMPRESSION: "zstd",
    OTEL_EXPORTER_OTLP_CERTIFICATE: "/no/such/ca.pem",
    OTEL_EXPORTER_OTLP_LOGS_CLIENT_CERTIFICATE: import.meta.dirname,
    OTEL_EXPORTER_OTLP_CLIENT_KEY: import.meta.filename,
    OTEL_TRACES_EXPORTER: "zipkin",
    OTEL_SDK_DISABLED: "yes",
    OTEL_TRACES_SAMPLER: "jaeger_remote",
    OTEL_TRACES_SAMPLER_ARG: "1.5",
    OTEL_PROPAGATORS: "tracecontext,xray",
    OTEL_RESOURCE_ATTRIBUTES: "production",
    OTEL_BSP_MAX_QUEUE_SIZE: "0",
    OTEL_BSP_SCHEDULE_DELAY: "-1",
    OTEL_BLRP_EXPORT_TIMEOUT: "x",
    OTEL_METRIC_EXPORT_INTERVAL: "1m",
    OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: "both",
    OTEL_SPAN_LINK_COUNT_LIMIT: "none",
    OTEL_LOG_LEVEL: "loud"
  }

  for (const [name, value] of Object.entries(faults)) {
    it.effect(`stop the start with one line if ${name} is wrong`, () =>
      Effect.gen(function* () {
        const { message } = yield* Effect.flip(read({ ...on, [name]: value }))
        const [line, ...others] = message.split("\n")
        assert.deepStrictEqual(others, [])
        assert.isTrue(line!.startsWith(`${name} must be `), line)
        assert.notInclude(line, "secret")
      })
    )
  }

  it.effect("must agree with each other, and are reported together with the service's own", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(
        read({
          ...on,
          LICENSING_PORT: "x",
          OTEL_BSP_MAX_QUEUE_SIZE: "100",
          OTEL_BLRP_MAX_EXPORT_BATCH_SIZE: "4096",
          OTEL_METRIC_EXPORT_TIMEOUT: "60001"
        })
      )
      const names = message.split("\n").map((line) => line.split(" ")[0])
      assert.deepStrictEqual(names, [
        "LICENSING_PORT",
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
        "OTEL_BLRP_MAX_EXPORT_BATCH_SIZE",
        "OTEL_METRIC_EXPORT_TIMEOUT"
      ])
    })
  )
})
