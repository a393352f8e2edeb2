/**
 * A receiver of OTLP on loopback, which decodes what arrives, and a service that exports to it. The SDK reads its settings from the
 * environment, so that they are set there while the layer lives.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { gunzipSync } from "node:zlib"
import { ConfigProvider, Context, Effect, Layer, Logger, References } from "effect"
import { Settings } from "../../../src/platform/config/Config.ts"
import { readTelemetrySettings } from "../../../src/platform/config/TelemetrySettings.ts"
import * as Logging from "../../../src/platform/telemetry/Logging.ts"
import * as Problems from "../../../src/platform/telemetry/Problems.ts"
import * as RehearsalClock from "../../../src/platform/telemetry/RehearsalClock.ts"
import * as Telemetry from "../../../src/platform/telemetry/Telemetry.ts"
import * as Otlp from "./OtlpDecoder.ts"

export type Attributes = Readonly<Record<string, string | number | boolean>>

export interface ReceivedSpan {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  /** SERVER, CLIENT or INTERNAL. */
  readonly kind: string
  /** UNSET, OK or ERROR. */
  readonly status: string
  readonly attributes: Attributes
  readonly links: ReadonlyArray<{ readonly traceId: string; readonly spanId: string }>
  readonly events: number
}

export interface ReceivedLog {
  readonly body: string
  readonly severity: string
  readonly traceId: string
  readonly spanId: string
  readonly attributes: Attributes
}

export interface ReceivedMetric {
  readonly name: string
  readonly unit: string
  readonly points: ReadonlyArray<{ readonly attributes: Attributes; readonly value: number }>
}

export interface ReceivedExport {
  readonly path: string
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  /** After decompression. */
  readonly body: Buffer
}

export class TelemetryReceiver extends Context.Service<
  TelemetryReceiver,
  {
    readonly url: string
    readonly exports: ReadonlyArray<ReceivedExport>
    readonly spans: ReadonlyArray<ReceivedSpan>
    readonly logs: ReadonlyArray<ReceivedLog>
    /** The attributes of the resource of the last export. */
    readonly resource: Effect.Effect<Attributes>
    /** The last state of each metric. */
    readonly metrics: ReadonlyMap<string, ReceivedMetric>
    /** The status of later answers; 200 at first. */
    answer(status: number): void
    /** Waits until `find` returns something; it is called again after each export. */
    until<A>(find: () => A | undefined): Effect.Effect<A>
  }
>()("licensing/test/TelemetryReceiver") {
  static readonly layer = Layer.effect(
    TelemetryReceiver,
    Effect.gen(function* () {
      const exports: Array<ReceivedExport> = []
      const spans: Array<ReceivedSpan> = []
      const logs: Array<ReceivedLog> = []
      const metrics = new Map<string, ReceivedMetric>()
      const waiting = new Set<() => void>()
      let resource: Attributes = {}
      let status = 200
      const take = (received: ReceivedExport): void => {
        exports.push(received)
        const decoded = decode(received)
        resource = decoded.resource
        spans.push(...decoded.spans)
        logs.push(...decoded.logs)
        for (const metric of decoded.metrics) metrics.set(metric.name, metric)
        for (const check of [...waiting]) check()
      }
      const server = createServer((request, response) => {
        const chunks: Array<Buffer> = []
        request.on("data", (chunk: Buffer) => chunks.push(chunk))
        request.on("end", () => {
          const { headers, url: path = "" } = request
          const bytes = Buffer.concat(chunks)
          response.writeHead(status).end()
          if (status === 200) {
            take({ path, headers, body: headers["content-encoding"] === "gzip" ? gunzipSync(bytes) : bytes })
          }
        })
      })
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
        () =>
          Effect.callback<void>((resume) => {
            server.close(() => resume(Effect.void))
            server.closeAllConnections()
          })
      )
      return TelemetryReceiver.of({
        url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        exports,
        spans,
        logs,
        metrics,
        resource: Effect.sync(() => resource),
        answer: (next) => {
          status = next
        },
        until: (find) =>
          Effect.callback((resume) => {
            const check = () => {
              const found = find()
              if (found === undefined) return
              waiting.delete(check)
              resume(Effect.succeed(found))
            }
            waiting.add(check)
            check()
            return Effect.sync(() => void waiting.delete(check))
          })
      })
    })
  )
}

type Environment = Readonly<Record<string, string>>

/** Sets variables of the process until the scope ends. */
const withEnvironment = (variables: Environment) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const before = Object.keys(variables).map((name) => [name, process.env[name]] as const)
      Object.assign(process.env, variables)
      return before
    }),
    (before) =>
      Effect.sync(() => {
        for (const [name, value] of before) {
          if (value === undefined) delete process.env[name]
          else process.env[name] = value
        }
      })
  )

/** Exports soon, so that no test waits for long. */
const soon: Environment = {
  OTEL_BSP_SCHEDULE_DELAY: "20",
  OTEL_BLRP_SCHEDULE_DELAY: "20",
  OTEL_METRIC_EXPORT_INTERVAL: "100",
  OTEL_METRIC_EXPORT_TIMEOUT: "100"
}

interface Warning {
  readonly reason?: string
  readonly repeated?: number
}

/** The warnings in the service's own log, oldest first. Nothing is printed. */
export const warnings: Array<Warning> = []

const keepWarnings = Logger.make(({ logLevel, message }) => {
  if (logLevel === "Warn")
    warnings.push(Object.assign({}, ...[message].flat().filter((part) => typeof part === "object")))
})

const layerLogging = Layer.merge(Logging.layerOf(keepWarnings), Layer.succeed(References.MinimumLogLevel, "Info"))

/** Exports to the receiver, with these variables. What gets this layer may log. */
export const layerTelemetry = (variables: Environment = {}) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { url } = yield* TelemetryReceiver
      const environment = { ...soon, OTEL_EXPORTER_OTLP_ENDPOINT: url, ...variables }
      yield* withEnvironment(environment)
      const { settings } = yield* Effect.orDie(
        Effect.provideService(
          readTelemetrySettings,
          ConfigProvider.ConfigProvider,
          ConfigProvider.fromEnvRecord(environment)
        )
      )
      return Problems.layerLogged.pipe(
        Layer.provideMerge(layerLogging),
        Layer.provideMerge(Telemetry.layer("0.0.1").pipe(Layer.provide(Settings.layerTest({ telemetry: settings })))),
        Layer.provide(RehearsalClock.layer(() => 0))
      )
    })
  )

interface Decoded {
  readonly resource: Attributes
  readonly spans: ReadonlyArray<ReceivedSpan>
  readonly logs: ReadonlyArray<ReceivedLog>
  readonly metrics: ReadonlyArray<ReceivedMetric>
}

const nothing: Decoded = { resource: {}, spans: [], logs: [], metrics: [] }

const decode = ({ body, headers, path }: ReceivedExport): Decoded => {
  const isJson = headers["content-type"] === "application/json"
  const read = (message: typeof Otlp.traces): Otlp.Json =>
    isJson ? JSON.parse(body.toString()) : Otlp.decode(message, body)
  if (path.endsWith("/v1/traces")) {
    const [found] = read(Otlp.traces)["resourceSpans"] as Array<Otlp.Json>
    return { ...nothing, resource: resourceOf(found), spans: itemsOf(found, "scopeSpans", "spans").map(spanOf) }
  }
  if (path.endsWith("/v1/logs")) {
    const [found] = read(Otlp.logs)["resourceLogs"] as Array<Otlp.Json>
    return { ...nothing, resource: resourceOf(found), logs: itemsOf(found, "scopeLogs", "logRecords").map(logOf) }
  }
  const [found] = read(Otlp.metrics)["resourceMetrics"] as Array<Otlp.Json>
  return { ...nothing, resource: resourceOf(found), metrics: itemsOf(found, "scopeMetrics", "metrics").map(metricOf) }
}

const itemsOf = (found: Otlp.Json | undefined, scopes: string, items: string): Array<Otlp.Json> =>
  ((found?.[scopes] ?? []) as Array<Otlp.Json>).flatMap((scope) => (scope[items] ?? []) as Array<Otlp.Json>)

const resourceOf = (found: Otlp.Json | undefined) => attributesOf((found?.["resource"] as Otlp.Json)?.["attributes"])

const attributesOf = (list: unknown): Attributes =>
  Object.fromEntries(
    ((list ?? []) as Array<{ readonly key: string; readonly value: Otlp.Json }>).map(({ key, value }) => [
      key,
      (value["stringValue"] ?? value["boolValue"] ?? value["doubleValue"] ?? value["intValue"]) as string
    ])
  )

/** Ids are bytes in protobuf and hexadecimal text in JSON. */
const idOf = (id: unknown): string =>
  typeof id === "string" ? id : Buffer.from((id ?? []) as Uint8Array).toString("hex")

const kinds = ["UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"]
const statuses = ["UNSET", "OK", "ERROR"]

const spanOf = (span: Otlp.Json): ReceivedSpan => ({
  name: String(span["name"]),
  traceId: idOf(span["traceId"]),
  spanId: idOf(span["spanId"]),
  parentSpanId: idOf(span["parentSpanId"]),
  kind: kinds[span["kind"] as number]!,
  status: statuses[((span["status"] as Otlp.Json | undefined)?.["code"] ?? 0) as number]!,
  attributes: attributesOf(span["attributes"]),
  links: ((span["links"] ?? []) as Array<Otlp.Json>).map((link) => ({
    traceId: idOf(link["traceId"]),
    spanId: idOf(link["spanId"])
  })),
  events: ((span["events"] ?? []) as Array<Otlp.Json>).length
})

const logOf = (log: Otlp.Json): ReceivedLog => ({
  body: String((log["body"] as Otlp.Json)["stringValue"]),
  severity: String(log["severityText"]),
  traceId: idOf(log["traceId"]),
  spanId: idOf(log["spanId"]),
  attributes: attributesOf(log["attributes"])
})

const metricOf = (metric: Otlp.Json): ReceivedMetric => {
  const data = (metric["sum"] ?? metric["gauge"] ?? metric["histogram"]) as { readonly dataPoints: Array<Otlp.Json> }
  return {
    name: String(metric["name"]),
    unit: String(metric["unit"] ?? ""),
    points: data.dataPoints.map((point) => ({
      attributes: attributesOf(point["attributes"]),
      value: Number(point["asDouble"] ?? point["asInt"] ?? point["count"])
    }))
  }
}
