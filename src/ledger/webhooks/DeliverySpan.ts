/** The span of a delivery attempt. Unsigned headers contain its context for the receiver. */
import { Effect, Exit, Tracer } from "effect"
import type { TracedDelivery, Traces } from "../../platform/telemetry/Traces.ts"
import type { EndpointResponse, NoResponse } from "./Sender.ts"

/** Sends with the headers of the attempt's span if the attempt is sampled. */
export const inDeliverySpan = (
  traces: Traces | undefined,
  delivery: TracedDelivery,
  post: (headers: { readonly [name: string]: string }) => Effect.Effect<EndpointResponse, NoResponse>
): Effect.Effect<EndpointResponse, NoResponse> => {
  if (traces === undefined) return post({})
  return Effect.suspend(() => {
    const span = traces.startDelivery(delivery)
    if (span === undefined) return post({})
    return post(traces.headersOf(span)).pipe(
      Effect.provideService(Tracer.ParentSpan, span),
      Effect.onExit((exit) => Effect.sync(() => traces.endDelivery(span, outcomeOf(exit))))
    )
  })
}

const outcomeOf = (
  exit: Exit.Exit<EndpointResponse, NoResponse>
): { readonly status?: number; readonly failure?: string } => {
  if (Exit.isFailure(exit)) {
    const [reason] = exit.cause.reasons
    return { failure: reason?._tag === "Fail" ? reason.error.reason : "_OTHER" }
  }
  const { status } = exit.value
  return status >= 400 ? { status, failure: String(status) } : { status }
}
