/** The metrics of /metrics, exported periodically. */
import { makeProducer } from "@effect/opentelemetry/OtelMetrics"
import { Resource } from "@effect/opentelemetry/Resource"
import {
  type CollectionResult,
  type MetricData,
  PeriodicExportingMetricReader,
  type PushMetricExporter
} from "@opentelemetry/sdk-metrics"
import { Effect, FiberSet } from "effect"
import type { TelemetrySettings } from "../config/TelemetrySettings.ts"
import type { ExportMetrics } from "./TelemetryExports.ts"

/** The last exports, one signal after another, must fit into the time of a stop. */
const stopTime = "700 millis"

export const makeExportMetrics =
  (
    resource: Resource["Service"],
    exporter: PushMetricExporter,
    { metricIntervalMillis, metricTemporality, metricTimeoutMillis }: TelemetrySettings
  ): ExportMetrics =>
  (refresh) =>
    Effect.gen(function* () {
      const producer = yield* Effect.provideService(makeProducer(metricTemporality), Resource, resource)
      const run = yield* FiberSet.makeRuntimePromise<never>()
      const reader = new PeriodicExportingMetricReader({
        exporter,
        exportIntervalMillis: metricIntervalMillis,
        ...(metricTimeoutMillis !== undefined && { exportTimeoutMillis: metricTimeoutMillis })
      })
      yield* Effect.acquireRelease(
        Effect.sync(() =>
          reader.setMetricProducer({
            collect: (options) =>
              run(refresh)
                .then(() => producer.collect(options))
                .then(withUnits)
          })
        ),
        () =>
          Effect.promise(() => reader.shutdown()).pipe(
            Effect.exit,
            Effect.interruptible,
            Effect.timeoutOption(stopTime)
          )
      )
    })

const units: ReadonlyArray<readonly [end: string, unit: string]> = [
  ["_seconds", "s"],
  ["_bytes", "By"]
]

/** The names end in their units, as Prometheus wants them. The unit "1" means a ratio: its OTLP receiver would rename the gauges. */
const withUnits = ({ errors, resourceMetrics }: CollectionResult): CollectionResult => ({
  errors,
  resourceMetrics: {
    ...resourceMetrics,
    scopeMetrics: resourceMetrics.scopeMetrics.map((each) => ({
      scope: { name: "licensing-service" },
      metrics: each.metrics.map(withUnit)
    }))
  }
})

const withUnit = (metric: MetricData): MetricData => {
  const unit = units.find(([end]) => metric.descriptor.name.endsWith(end))?.[1] ?? ""
  return { ...metric, descriptor: { ...metric.descriptor, unit } }
}
