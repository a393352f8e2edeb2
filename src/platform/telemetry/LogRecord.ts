/** The parts of a log record, for the log and for its export. Objects among the parts of a message become members of the record. */
import { Cause, Array as Items, type Logger, Predicate, References, type Tracer } from "effect"
import { RequestContext } from "../../contract/api/RequestContext.ts"
import { sampledSpan } from "./Traces.ts"

export interface LogRecord {
  readonly message: string
  /** The request id, annotations, and objects of the message. */
  readonly facts: { readonly [name: string]: unknown }
  readonly cause: string | undefined
  /** The span that the record belongs to, if it is sampled. */
  readonly span: Tracer.Span | undefined
}

export const logRecordOf = ({ cause, fiber, message }: Logger.Options<unknown>): LogRecord => {
  const parts = Items.ensure(message)
  const { requestId, span } = fiber.getRef(RequestContext)
  return {
    message: parts.filter((part) => !Predicate.isObject(part)).join(" "),
    facts: {
      ...(requestId === noRequest ? undefined : { request_id: requestId }),
      ...fiber.getRef(References.CurrentLogAnnotations),
      ...Object.assign({}, ...parts.filter(Predicate.isObject))
    },
    cause: cause.reasons.length === 0 ? undefined : Cause.pretty(cause),
    span: sampledSpan(fiber.context) ?? span
  }
}

const noRequest = RequestContext.defaultValue().requestId
