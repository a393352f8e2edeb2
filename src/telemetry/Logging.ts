/**
 * Log records: one line of JSON each, or text for a terminal. A record of a request has its request id. Objects among the parts
 * of a message become members of the record.
 */
import { Cause, Array as Items, Layer, Logger, Predicate, References } from "effect"
import { RequestContext } from "../api/RequestContext.ts"
import { Settings } from "../config/Config.ts"

/** Logs in this format, at the level of the settings or above. */
export const layer = (format: "pretty" | "json") =>
  Layer.unwrap(
    Settings.useSync(({ logLevel }) =>
      Layer.merge(
        Logger.layer([format === "json" ? json : Logger.consolePretty()]),
        Layer.succeed(References.MinimumLogLevel, logLevel)
      )
    )
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

const noRequest = RequestContext.defaultValue().requestId
