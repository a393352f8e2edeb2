/** Starts the spans of sampled requests. The fast path and the framework path end them with the response. */
import type { RequestListener } from "node:http"
import { Effect, type Tracer } from "effect"
import { Traces } from "../../platform/telemetry/Traces.ts"

const spans = new WeakMap<object, Tracer.Span>()

export const requestSpan = (source: object): Tracer.Span | undefined => spans.get(source)

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
