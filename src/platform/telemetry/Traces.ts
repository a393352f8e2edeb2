/**
 * The spans of requests, commands and deliveries. Without telemetry there are none: this file loads no package of OpenTelemetry.
 *
 * A trace begins with a sampled request or delivery. All other spans are below such a span: work that no sampled request waits
 * for has none.
 */
import type { IncomingHttpHeaders } from "node:http"
import { Context, type Exit, Option, Tracer } from "effect"

/** What is known of a request when it arrives. */
export interface TracedRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: IncomingHttpHeaders
}

/** A span for another node: headers of the W3C Trace Context. */
export interface HandedSpan {
  readonly traceparent?: string
  readonly tracestate?: string
}

/** What is known of a request when its response is sent. `route` is the template: a path as sent may contain anything. */
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
  /** Starts the span of a request if the request is sampled. Takes over the caller's context. Probes are never sampled. */
  readonly startRequest: (request: TracedRequest) => Tracer.Span | undefined
  /** Notes the id of a sampled request, so that the deliveries of its events continue its trace. */
  readonly nameRequest: (span: Tracer.Span, requestId: string) => void
  readonly endRequest: (span: Tracer.Span, response: TracedResponse) => void
  /** Ends the span of a request that got no response. */
  readonly abandonRequest: (span: Tracer.Span) => void
  /** Starts a span below a sampled one. */
  readonly startBelow: (parent: Tracer.Span, name: string, attributes: Readonly<Record<string, string>>) => Tracer.Span
  /** What another node needs to continue the trace of a sampled request. */
  readonly handOver: (span: Tracer.Span) => HandedSpan
  /** Starts the span of a command that another node has handed over. The deliveries of its events continue the trace, too. */
  readonly startHandedOver: (from: HandedSpan, operation: string, requestId: string) => Tracer.Span
  readonly end: (span: Tracer.Span, exit: Exit.Exit<unknown, unknown>) => void
  /** Starts the span of a delivery attempt: in the trace of the request that caused it if known, otherwise if it is sampled. */
  readonly startDelivery: (delivery: TracedDelivery) => Tracer.Span | undefined
  readonly endDelivery: (span: Tracer.Span, outcome: { readonly status?: number; readonly failure?: string }) => void
  /** The headers that hand the context of a span on. */
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
