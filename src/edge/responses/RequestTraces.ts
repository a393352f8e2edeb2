/** Starts the spans of sampled requests, in front of both paths. Both find a request's span here, and end it with the response. */
import type { RequestListener } from "node:http"
import { Effect, type Tracer } from "effect"
import { Traces } from "../../platform/telemetry/Traces.ts"

const spans = new WeakMap<object, Tracer.Span>()

/** The span of a sampled request. */
export const requestSpan = (source: object): Tracer.Span | undefined => spans.get(source)

/** Makes a function that puts the sampling in front of a listener; without telemetry it changes nothing. */
export const makeRequestTraces = Effect.map(Traces, (traces) => (listener: RequestListener): RequestListener => {
  if (traces === undefined) return listener
  return (request, response) => {
    const span = traces.startRequest(request)
    if (span !== undefined) {
      spans.set(request, span)
      response.on("close", () => traces.abandonRequest(span))
    }
    listener(request, response)
  }
})
