/** The exports of log records and metrics, in addition to the log and /metrics. Undefined without telemetry. */
import { Context, type Effect, type Logger, type Scope } from "effect"

/** Exports log records. */
export const LogExport = Context.Reference<Logger.Logger<unknown, void> | undefined>(
  "licensing/platform/telemetry/LogExport",
  { defaultValue: () => undefined }
)

/** Set for records about a failed export: exporting them would fail, too. */
export const IsAboutExport = Context.Reference("licensing/platform/telemetry/IsAboutExport", {
  defaultValue: () => false
})

/** Exports all metrics periodically until the scope ends. Each export begins with `refresh`, which updates the gauges. */
export type ExportMetrics = (refresh: Effect.Effect<void>) => Effect.Effect<void, never, Scope.Scope>

export const MetricsExport = Context.Reference<ExportMetrics | undefined>(
  "licensing/platform/telemetry/MetricsExport",
  { defaultValue: () => undefined }
)
