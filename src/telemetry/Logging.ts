/**
 * Log records: one line of JSON each, or text for a terminal. A record of a request has its request id. Objects among the parts
 * of a message become members of the record.
 */
import { Cause, Clock, Effect, Array as Items, Layer, Logger, Predicate, References } from "effect"
import { RequestContext } from "../api/RequestContext.ts"
import { Settings } from "../config/Config.ts"
import { makeRepeatedFailures } from "./RepeatedFailures.ts"
import { ShownOnScreen } from "./Screen.ts"

/** Logs in this format, at the level of the settings or above. */
export const layer = (format: "pretty" | "json") =>
  Layer.unwrap(
    Settings.useSync(({ logLevel }) =>
      Layer.merge(layerOf(format === "json" ? json : pretty), Layer.succeed(References.MinimumLogLevel, logLevel))
    )
  )

/** Writes to a logger, which receives a failure that repeats at most once a second. */
export const layerOf = (logger: Logger.Logger<unknown, void>) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { flush, log } = makeRepeatedFailures((options) => logger.log(options))
      const flushNow = Effect.map(Clock.currentTimeMillis, flush)
      yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep("1 second"), flushNow)))
      yield* Effect.addFinalizer(() => Effect.sync(() => flush(Number.POSITIVE_INFINITY)))
      return Logger.layer([Logger.make(log)])
    })
  )

/** `{time, level, message, request_id?, …, cause?}` */
const json: Logger.Logger<unknown, void> = Logger.withConsoleLog(
  Logger.make(({ message, logLevel, cause, date, fiber }) => {
    const parts = Items.ensure(message)
    const { requestId } = fiber.getRef(RequestContext)
    return JSON.stringify({
      time: date.toISOString(),
      level: logLevel.toLowerCase(),
      message: parts.filter((part) => !Predicate.isObject(part)).join(" "),
      ...(requestId === noRequest ? undefined : { request_id: requestId }),
      ...fiber.getRef(References.CurrentLogAnnotations),
      ...Object.assign({}, ...parts.filter(Predicate.isObject)),
      ...(cause.reasons.length === 0 ? undefined : { cause: Cause.pretty(cause) })
    })
  })
)

const consolePretty = Logger.consolePretty()
const pretty: Logger.Logger<unknown, void> = Logger.make((options) =>
  options.fiber.getRef(ShownOnScreen) ? undefined : consolePretty.log(options)
)

const noRequest = RequestContext.defaultValue().requestId
