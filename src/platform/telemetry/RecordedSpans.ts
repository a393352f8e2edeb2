/**
 * The spans of effects. Only spans below a recorded one are recorded; others cost nothing. A recorded span contains an error's type
 * but not its text, because the text may contain input of a caller. The log has the text.
 */
import { type Span as OtelSpan, SpanStatusCode } from "@opentelemetry/api"
import { Cause, Context, type Exit, Option, Predicate, Tracer } from "effect"
import { isRefusal } from "../../contract/api/Failure.ts"
import { summaryOf } from "./StatementSummary.ts"

/** The span of OpenTelemetry behind a recorded span. */
export const otelSpanOf = (span: Tracer.Span): OtelSpan => (span as unknown as { readonly span: OtelSpan }).span

/** Records spans below recorded spans with `tracer`. Roots are made by `Traces`. */
export const tracerOfChildren = (tracer: Tracer.Tracer): Tracer.Tracer =>
  Tracer.make({
    span: (options) =>
      options.sampled && Option.isSome(options.parent) && options.parent.value.sampled
        ? withoutTexts(tracer.span(options))
        : unrecorded
  })

/** Replaces the methods of the package's span, which record all texts. */
export const withoutTexts = (span: Tracer.Span): Tracer.Span => Object.assign(span, { end, attribute })

/** One object for all unrecorded spans, because it has no state. */
const unrecorded: Tracer.Span = {
  _tag: "Span",
  name: "unrecorded",
  spanId: "0000000000000000",
  traceId: "00000000000000000000000000000000",
  parent: Option.none(),
  annotations: Context.empty(),
  status: { _tag: "Ended", startTime: 0n, endTime: 0n, exit: undefined as never },
  attributes: new Map(),
  links: [],
  sampled: false,
  kind: "internal",
  end() {},
  attribute() {},
  event() {},
  addLinks() {}
}

function end(this: Tracer.Span & { status: Tracer.SpanStatus }, endTime: bigint, exit: Exit.Exit<unknown, unknown>) {
  if (this.status._tag === "Ended") return
  this.status = { _tag: "Ended", startTime: this.status.startTime, endTime, exit }
  const span = otelSpanOf(this)
  if (exit._tag === "Failure") addFailure(span, exit.cause)
  span.end([Number(endTime / 1_000_000_000n), Number(endTime % 1_000_000_000n)])
}

/** A refusal is a normal result. */
const addFailure = (span: OtelSpan, cause: Cause.Cause<unknown>): void => {
  if (Cause.hasInterruptsOnly(cause)) return void span.setAttribute("licensing.interrupted", true)
  const error = Cause.squash(cause)
  if (isRefusal(error)) return void span.setAttribute("licensing.refusal", error.code)
  const { state, type } = errorType(error)
  span.setAttribute("error.type", type)
  if (state !== undefined) span.setAttribute("db.response.status_code", state)
  span.setStatus({ code: SpanStatusCode.ERROR })
}

const sqlStateShape = /^[0-9A-Z]{5}$/

const errorType = (error: unknown): { readonly type: string; readonly state?: string } => {
  if (!Predicate.isObject(error)) return { type: "_OTHER" }
  const { _tag, name, reason } = error as {
    _tag?: unknown
    name?: unknown
    reason?: { _tag?: unknown; cause?: unknown }
  }
  const code = Predicate.hasProperty(reason?.cause, "code") ? String(reason?.cause.code) : ""
  if (sqlStateShape.test(code)) return { type: code, state: code }
  return { type: String(reason?._tag ?? _tag ?? name ?? "_OTHER") }
}

function attribute(this: Tracer.Span, key: string, value: unknown) {
  const span = otelSpanOf(this)
  if (key === "db.query.text") {
    const { operation, table, text } = summaryOf(String(value))
    span.updateName(text)
    span.setAttribute("db.query.summary", text)
    if (operation !== undefined) span.setAttribute("db.operation.name", operation)
    if (table !== undefined) span.setAttribute("db.collection.name", table)
  }
  // This name is not part of OpenTelemetry's conventions.
  if (key === "effect.sql.method") return
  span.setAttribute(key, typeof value === "number" || typeof value === "boolean" ? value : String(value))
}
