/** Log records in OpenTelemetry's format, with their trace. */
import { logLevelToSeverityNumber } from "@effect/opentelemetry/OtelLogger"
import { ROOT_CONTEXT, TraceFlags, trace } from "@opentelemetry/api"
import type { LoggerProvider } from "@opentelemetry/sdk-logs"
import { Logger } from "effect"
import { logRecordOf } from "./LogRecord.ts"
import { IsAboutExport } from "./TelemetryExports.ts"

export const makeLogger = (provider: LoggerProvider): Logger.Logger<unknown, void> => {
  const logger = provider.getLogger("licensing-service")
  return Logger.make((options) => {
    if (options.fiber.getRef(IsAboutExport)) return
    const { cause, message, span, ...record } = logRecordOf(options)
    const context =
      span &&
      trace.setSpanContext(ROOT_CONTEXT, {
        traceId: span.traceId,
        spanId: span.spanId,
        traceFlags: TraceFlags.SAMPLED
      })
    logger.emit({
      timestamp: options.date,
      severityText: options.logLevel.toUpperCase(),
      severityNumber: logLevelToSeverityNumber(options.logLevel),
      body: message,
      attributes: { ...attributesOf(record.facts), ...(cause !== undefined && { "exception.stacktrace": cause }) },
      ...(context && { context })
    })
  })
}

type Attribute = string | number | boolean

const attributesOf = (facts: { readonly [name: string]: unknown }): Record<string, Attribute> =>
  Object.fromEntries(
    Object.entries(facts).flatMap(([name, value]) => (value === undefined ? [] : [[name, attributeOf(value)]]))
  )

const attributeOf = (value: unknown): Attribute =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    ? value
    : (JSON.stringify(value) ?? String(value))
