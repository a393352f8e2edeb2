/**
 * Sets up the official SDK. Only `Telemetry.ts` loads this file and its imports, and only if something is exported, because these
 * packages take time and memory.
 */
import { make as makeEffectTracer, OtelTracer } from "@effect/opentelemetry/OtelTracer"
import { DiagLogLevel, diag } from "@opentelemetry/api"
import { diagLogLevelFromString, getStringFromEnv, setGlobalErrorHandler } from "@opentelemetry/core"
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
  serviceInstanceIdDetector
} from "@opentelemetry/resources"
import { BatchLogRecordProcessor, LoggerProvider, type LogRecordExporter } from "@opentelemetry/sdk-logs"
import { BasicTracerProvider, BatchSpanProcessor, type SpanExporter } from "@opentelemetry/sdk-trace-base"
import { Clock, Context, Effect, Layer, Predicate, Queue, Tracer } from "effect"
import { HttpMiddleware } from "effect/http"
import type { TelemetrySettings } from "../config/TelemetrySettings.ts"
import { makeLogger } from "./ExportedLogs.ts"
import { makeExportMetrics } from "./ExportedMetrics.ts"
import { logExporter, metricExporter, traceExporter, untilStop } from "./Exporters.ts"
import { makeProblems, TelemetryProblems } from "./Problems.ts"
import { tracerOfChildren } from "./RecordedSpans.ts"
import { makeTraces } from "./RecordedTraces.ts"
import { makeRequestSampling, samplerOf } from "./RequestSampling.ts"
import { LogExport, MetricsExport } from "./TelemetryExports.ts"
import { Traces } from "./Traces.ts"

/** Exports the signals of the settings until the scope ends. */
export const layer = (settings: TelemetrySettings, version: string) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const problems = yield* makeProblems
      yield* takeProblems((problem) => void Queue.offerUnsafe(problems, problem))
      const registry = yield* Effect.context<never>()
      const resource = resourceOf(version)
      const [traces, metrics, logs] = (["traces", "metrics", "logs"] as const).map((each) =>
        settings.protocols.get(each)
      )
      let context = Context.make(TelemetryProblems, problems) as Context.Context<never>
      if (traces !== undefined) {
        const tracing = yield* makeTracing(settings, traceExporter(traces, registry), resource, version)
        context = Context.merge(context, tracing)
      }
      if (metrics !== undefined) {
        const exportMetrics = makeExportMetrics(resource, metricExporter(metrics, registry), settings)
        context = Context.add(context, MetricsExport, exportMetrics)
      }
      if (logs !== undefined) {
        context = Context.add(context, LogExport, yield* makeLogging(settings, logExporter(logs, registry), resource))
      }
      return context
    })
  )

/** The settings OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come last, so that they replace the others. */
const resourceOf = (version: string): Resource =>
  defaultResource()
    .merge(resourceFromAttributes({ "service.name": "licensing-service", "service.version": version }))
    .merge(detectResources({ detectors: [serviceInstanceIdDetector, envDetector] }))

const makeTracing = Effect.fnUntraced(function* (
  settings: TelemetrySettings,
  exporter: SpanExporter,
  resource: Resource,
  version: string
) {
  const sampler = samplerOf(settings.sampler, settings.samplerRatio)
  const sampling = makeRequestSampling(sampler, settings.propagators)
  const provider = yield* untilStop(
    () =>
      new BasicTracerProvider({
        resource,
        sampler,
        idGenerator: sampling.ids,
        spanProcessors: [new BatchSpanProcessor(exporter)]
      })
  )
  const tracer = yield* Effect.provideService(
    makeEffectTracer,
    OtelTracer,
    provider.getTracer("licensing-service", version)
  )
  return Context.make(Traces, makeTraces(tracer, sampling, yield* Clock.Clock)).pipe(
    Context.add(Tracer.Tracer, tracerOfChildren(tracer)),
    // `Traces` makes the spans of requests.
    Context.add(HttpMiddleware.TracerDisabledWhen, () => true)
  )
})

const makeLogging = Effect.fnUntraced(function* (
  { logAttributeLengthMax, logBatches }: TelemetrySettings,
  exporter: LogRecordExporter,
  resource: Resource
) {
  const provider = yield* untilStop(
    () =>
      new LoggerProvider({
        resource,
        processors: [new BatchLogRecordProcessor({ exporter, ...logBatches })],
        ...(logAttributeLengthMax !== undefined && {
          logRecordLimits: { attributeValueLengthLimit: logAttributeLengthMax }
        })
      })
  )
  return makeLogger(provider)
})

// Without this number, repeated reports of a problem are equal.
const changingNumber = /^Dropped \d+/

/** Receives the SDK's reports, which it would otherwise omit or write to the console. */
const takeProblems = (report: (problem: string) => void) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      // Only the message: the other arguments are the objects that were to be sent.
      const tell = (message: string) => report(message.replace(changingNumber, "Dropped some"))
      const ignore = () => {}
      setGlobalErrorHandler((error) =>
        tell(Predicate.hasProperty(error, "message") ? String(error.message) : String(error))
      )
      diag.setLogger(
        { error: tell, warn: tell, info: tell, debug: tell, verbose: ignore },
        {
          logLevel: diagLogLevelFromString(getStringFromEnv("OTEL_LOG_LEVEL")) ?? DiagLogLevel.WARN,
          suppressOverrideMessage: true
        }
      )
    }),
    () => Effect.sync(() => diag.disable())
  )
