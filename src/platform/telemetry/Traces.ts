/**
 * The spans of requests, commands and deliveries. Without telemetry there are none. This file loads no package of OpenTelemetry.
 *
 * A trace begins with a sampled request or delivery. All other spans are below such a span. Other work has no spans.
 */
import type { IncomingHttpHeaders } from "node:http"
import { Context, type Exit, Option, Tracer } from "effect"

/** The parts of a request that its span uses. */
export interface TracedRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: IncomingHttpHeaders
}

/** The context of a span for another node, as headers of W3C Trace Context. */
export interface HandedSpan {
  readonly traceparent?: string
  readonly tracestate?: string
}

/** The parts of a response that the request's span uses. `route` is the template, because a path may contain anything. */
export interface TracedResponse {
  readonly method: string
  readonly route: string | undefined
  readonly status: number
  readonly refused: string | undefined
}

export interface TracedDelivery {
  /** The request that caused the event. */
  readonly requestId: unknown
  readonly url: URL
  readonly endpointId: string
  readonly eventType: string
  readonly sequence: number
  /** Earlier attempts. */
  readonly attempts: number
}

export interface Traces {
  /** Starts the span of a request if the request is sampled. Continues the caller's trace. Probes are never sampled. */
  readonly startRequest: (request: TracedRequest) => Tracer.Span | undefined
  /** Notes the id of a sampled request, so that the deliveries of its events continue its trace. */
  readonly nameRequest: (span: Tracer.Span, requestId: string) => void
  readonly endRequest: (span: Tracer.Span, response: TracedResponse) => void
  /** Ends the span of a request that got no response. */
  readonly abandonRequest: (span: Tracer.Span) => void
  /** Starts a span below a sampled one. */
  readonly startBelow: (parent: Tracer.Span, name: string, attributes: Readonly<Record<string, string>>) => Tracer.Span
  /** The context with which another node continues the trace of a sampled request. */
  readonly handOver: (span: Tracer.Span) => HandedSpan
  /** Starts the span of a command that another node handed over. The deliveries of its events also continue the trace. */
  readonly startHandedOver: (from: HandedSpan, operation: string, requestId: string) => Tracer.Span
  readonly end: (span: Tracer.Span, exit: Exit.Exit<unknown, unknown>) => void
  /** Starts the span of a delivery attempt: in the trace of the request that caused it, or in a new trace if it is sampled. */
  readonly startDelivery: (delivery: TracedDelivery) => Tracer.Span | undefined
  readonly endDelivery: (span: Tracer.Span, outcome: { readonly status?: number; readonly failure?: string }) => void
  /** The headers that contain the context of a span. */
  readonly headersOf: (span: Tracer.Span) => { readonly [name: string]: string }
}

/** Undefined without telemetry. */
export const Traces = Context.Reference<Traces | undefined>("licensing/platform/telemetry/Traces", {
  defaultValue: () => undefined
})

/** The sampled span of a context, if telemetry is on. */
export const sampledSpan = (context: Context.Context<never>): Tracer.Span | undefined => {
  if (Context.get(context, Traces) === undefined) return undefined
  const span = Option.getOrUndefined(Context.getOption(context, Tracer.ParentSpan))
  return span?._tag === "Span" && span.sampled ? span : undefined
}
