/** The recorded traces: requests and deliveries, with the names of OpenTelemetry's stable conventions for HTTP. */
import { makeExternalSpan } from "@effect/opentelemetry/OtelTracer"
import {
  type Attributes,
  defaultTextMapGetter,
  defaultTextMapSetter,
  type Span as OtelSpan,
  ROOT_CONTEXT,
  type SpanContext,
  SpanStatusCode,
  trace
} from "@opentelemetry/api"
import { W3CTraceContextPropagator } from "@opentelemetry/core"
import { type Clock, Context, Exit, Option, type Tracer } from "effect"
import { pathOf } from "../../contract/api/RequestHead.ts"
import { otelSpanOf, withoutTexts } from "./RecordedSpans.ts"
import type { RequestSampling } from "./RequestSampling.ts"
import type { HandedSpan, TracedDelivery, TracedResponse, Traces } from "./Traces.ts"

const probePaths = new Set(["/health", "/healthz", "/readyz", "/metrics"])
/** The files of the documentation and of the web pages. */
const isFile = (path: string) => /^\/(docs|console|portal\/assets)\/./.test(path)
const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"])

/** The format between the nodes of a cluster, independent of the settings for callers and receivers. */
const betweenNodes = new W3CTraceContextPropagator()

// Requests whose deliveries continue their traces. A first attempt follows within a second.
const namedMax = 16_384

export const makeTraces = (tracer: Tracer.Tracer, sampling: RequestSampling, clock: Clock.Clock): Traces => {
  const start = (name: string, kind: Tracer.SpanKind, parent: Tracer.AnySpan | undefined): Tracer.Span =>
    withoutTexts(
      tracer.span({
        name,
        kind,
        parent: Option.fromUndefinedOr(parent),
        root: parent === undefined,
        annotations: Context.empty(),
        links: [],
        startTime: clock.currentTimeNanosUnsafe(),
        sampled: true
      })
    )
  const end: Traces["end"] = (span, exit) => span.end(clock.currentTimeNanosUnsafe(), exit)
  const named = new Map<string, SpanContext>()
  const nameRequest: Traces["nameRequest"] = (span, requestId) => {
    if (named.size >= namedMax) named.delete(named.keys().next().value!)
    named.set(requestId, otelSpanOf(span).spanContext())
  }

  return {
    startRequest: ({ headers, method = "", url = "" }) => {
      const path = pathOf(url)
      if (probePaths.has(path) || isFile(path)) return undefined
      const name = methods.has(method) ? method : "HTTP"
      const sampled = sampling.ofRequest(headers, name)
      return sampled && start(name, "server", sampled.remote && externalSpan(sampled.remote))
    },
    nameRequest,
    endRequest: (span, response) => {
      describeResponse(otelSpanOf(span), response)
      end(span, Exit.void)
    },
    abandonRequest: (span) => {
      if (span.status._tag === "Ended") return
      otelSpanOf(span).setAttribute("error.type", "client_disconnected")
      end(span, Exit.void)
    },
    startBelow: (parent, name, attributes) => {
      const span = start(name, "internal", parent)
      otelSpanOf(span).setAttributes(attributes)
      return span
    },
    handOver: (span) => {
      const handed: HandedSpan = {}
      const context = trace.setSpanContext(ROOT_CONTEXT, otelSpanOf(span).spanContext())
      betweenNodes.inject(context, handed, defaultTextMapSetter)
      return handed
    },
    startHandedOver: (from, operation, requestId) => {
      const remote = trace.getSpanContext(betweenNodes.extract(ROOT_CONTEXT, from, defaultTextMapGetter))
      const span = start(`handed over ${operation}`, "server", remote && externalSpan(remote))
      nameRequest(span, requestId)
      return span
    },
    end,
    startDelivery: (delivery) => {
      const { requestId } = delivery
      const cause = typeof requestId === "string" ? named.get(requestId) : undefined
      if (cause === undefined && sampling.ofDelivery("POST") === undefined) return undefined
      const span = start("POST", "client", cause && externalSpan(cause))
      otelSpanOf(span).setAttributes(deliveryAttributes(delivery))
      return span
    },
    endDelivery: (span, { failure, status }) => {
      const otel = otelSpanOf(span)
      if (status !== undefined) otel.setAttribute("http.response.status_code", status)
      if (failure !== undefined) fail(otel, failure)
      end(span, Exit.void)
    },
    headersOf: (span) => sampling.headersOf(otelSpanOf(span).spanContext())
  }
}

const externalSpan = ({ spanId, traceFlags, traceId, traceState }: SpanContext): Tracer.ExternalSpan =>
  makeExternalSpan({ spanId, traceId, traceFlags, traceState })

const fail = (span: OtelSpan, type: string): void => {
  span.setAttribute("error.type", type)
  span.setStatus({ code: SpanStatusCode.ERROR })
}

/** The path is the route's template, because a path as sent may contain anything. */
const describeResponse = (span: OtelSpan, { method, refused, route, status }: TracedResponse): void => {
  const isKnown = methods.has(method)
  const attributes: Attributes = {
    "http.request.method": isKnown ? method : "_OTHER",
    "http.response.status_code": status,
    "url.scheme": "http"
  }
  if (route !== undefined) {
    attributes["http.route"] = route
    attributes["url.path"] = route
    span.updateName(`${isKnown ? method : "HTTP"} ${route}`)
  }
  if (refused !== undefined) attributes["licensing.refusal"] = refused
  span.setAttributes(attributes)
  if (status >= 500) fail(span, String(status))
}

/** Path and query of an endpoint may contain its owner's secrets. */
const deliveryAttributes = ({ attempts, endpointId, eventType, sequence, url }: TracedDelivery): Attributes => ({
  "http.request.method": "POST",
  "server.address": url.hostname,
  "server.port": Number(url.port) || (url.protocol === "https:" ? 443 : 80),
  "url.full": `${url.origin}/REDACTED`,
  "licensing.webhook.id": endpointId,
  "licensing.event.type": eventType,
  "licensing.event.sequence": sequence,
  ...(attempts > 0 && { "http.request.resend_count": attempts })
})
