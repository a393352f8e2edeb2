/**
 * Log records: one line of JSON each, or text for a terminal. A record of a request has its request id, and of a sampled one its
 * trace id.
 */
import { Clock, Effect, Layer, Logger, References } from "effect"
import { Settings } from "../config/Config.ts"
import { logRecordOf } from "./LogRecord.ts"
import { makeRepeatedFailures } from "./RepeatedFailures.ts"
import { ShownOnScreen } from "./ShownOnScreen.ts"
import { LogExport } from "./TelemetryExports.ts"

/** Logs in this format, at the level of the settings or above. */
export const layer = (format: "pretty" | "json") =>
  Layer.unwrap(
    Settings.useSync(({ logLevel }) =>
      Layer.merge(layerOf(format === "json" ? json : pretty), Layer.succeed(References.MinimumLogLevel, logLevel))
    )
  )

/** Writes to a logger, and exports if telemetry is on. Both receive a repeated failure at most once a second. */
export const layerOf = (logger: Logger.Logger<unknown, void>) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const exported = yield* LogExport
      const { flush, log } = makeRepeatedFailures((options) => {
        logger.log(options)
        exported?.log(options)
      })
      const flushNow = Effect.map(Clock.currentTimeMillis, flush)
      yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep("1 second"), flushNow)))
      yield* Effect.addFinalizer(() => Effect.sync(() => flush(Number.POSITIVE_INFINITY)))
      return Logger.layer([Logger.make(log)])
    })
  )

/** `{time, level, message, trace_id?, span_id?, request_id?, …, cause?}` */
const json: Logger.Logger<unknown, void> = Logger.withConsoleLog(
  Logger.make((options) => {
    const { cause, facts, message, span } = logRecordOf(options)
    return JSON.stringify({
      time: options.date.toISOString(),
      level: options.logLevel.toLowerCase(),
      message,
      ...(span === undefined ? undefined : { trace_id: span.traceId, span_id: span.spanId }),
      ...facts,
      ...(cause === undefined ? undefined : { cause })
    })
  })
)

const consolePretty = Logger.consolePretty()
const pretty: Logger.Logger<unknown, void> = Logger.make((options) =>
  options.fiber.getRef(ShownOnScreen) ? undefined : consolePretty.log(options)
)
