/** The official exporters, which read their own settings from the environment. Each failure is counted. */
import { type ExportResult, ExportResultCode } from "@opentelemetry/core"
import { OTLPLogExporter as JsonLogExporter } from "@opentelemetry/exporter-logs-otlp-http"
import { OTLPLogExporter as ProtobufLogExporter } from "@opentelemetry/exporter-logs-otlp-proto"
import { OTLPMetricExporter as JsonMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http"
import { OTLPMetricExporter as ProtobufMetricExporter } from "@opentelemetry/exporter-metrics-otlp-proto"
import { OTLPTraceExporter as JsonTraceExporter } from "@opentelemetry/exporter-trace-otlp-http"
import { OTLPTraceExporter as ProtobufTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto"
import type { LogRecordExporter } from "@opentelemetry/sdk-logs"
import type { PushMetricExporter } from "@opentelemetry/sdk-metrics"
import type { SpanExporter } from "@opentelemetry/sdk-trace-base"
import { type Context, Effect } from "effect"
import type { OtlpProtocol, Signal } from "../config/TelemetrySettings.ts"
import { telemetryFailures } from "./Metrics.ts"

type Registry = Context.Context<never>

export const traceExporter = (protocol: OtlpProtocol, registry: Registry): SpanExporter =>
  counted(protocol === "http/json" ? new JsonTraceExporter() : new ProtobufTraceExporter(), "traces", registry)

export const metricExporter = (protocol: OtlpProtocol, registry: Registry): PushMetricExporter =>
  counted(protocol === "http/json" ? new JsonMetricExporter() : new ProtobufMetricExporter(), "metrics", registry)

export const logExporter = (protocol: OtlpProtocol, registry: Registry): LogRecordExporter =>
  counted(protocol === "http/json" ? new JsonLogExporter() : new ProtobufLogExporter(), "logs", registry)

/** The last exports, one signal after another, must fit into the time of a stop. */
const stopTime = "700 millis"

/** When the scope ends, exports the buffered items, within the time of a stop. */
export const untilStop = <A extends { shutdown(): Promise<void> }>(make: () => A) =>
  Effect.acquireRelease(Effect.sync(make), (running) =>
    Effect.promise(() => running.shutdown()).pipe(Effect.exit, Effect.interruptible, Effect.timeoutOption(stopTime))
  )

interface Exporter<Items> {
  export(items: Items, onResult: (result: ExportResult) => void): void
}

const counted = <Items, E extends Exporter<Items>>(
  exporter: E & Exporter<Items>,
  signal: Signal,
  registry: Registry
): E => {
  const failures = telemetryFailures({ signal })
  const send = exporter.export.bind(exporter)
  return Object.assign(exporter, {
    export: (items: Items, onResult: (result: ExportResult) => void) =>
      send(items, (result) => {
        if (result.code !== ExportResultCode.SUCCESS) failures.updateUnsafe(1, registry)
        onResult(result)
      })
  })
}
