/**
 * Log records: one line of JSON each, or text for a person at a terminal. Every record that belongs to a request carries its
 * request id. Objects among the parts of a message become members of the record.
 */
import { Cause, Array as Items, Layer, Logger, Predicate, References } from "effect"
import { RequestContext } from "../api/RequestContext.ts"
import { Settings } from "../config/Config.ts"

/** Logs in this format, from the level on that the settings name. */
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
