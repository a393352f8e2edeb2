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
import { untilStop } from "./Exporters.ts"
import type { ExportMetrics } from "./TelemetryExports.ts"

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
      const reader = yield* untilStop(
        () =>
          new PeriodicExportingMetricReader({
            exporter,
            exportIntervalMillis: metricIntervalMillis,
            ...(metricTimeoutMillis !== undefined && { exportTimeoutMillis: metricTimeoutMillis })
          })
      )
      reader.setMetricProducer({
        collect: (options) =>
          run(refresh)
            .then(() => producer.collect(options))
            .then(withUnits)
      })
    })

const units: ReadonlyArray<readonly [end: string, unit: string]> = [
  ["_seconds", "s"],
  ["_bytes", "By"]
]

/** Prometheus requires the unit at the end of a name. The unit "1" means a ratio: its OTLP receiver would rename the gauges. */
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
