/**
 * Decides which traces are recorded, before any object is created for them: an unsampled request costs a random id and a
 * comparison. The SDK calls the same sampler again with the same trace id, so its decision is the same.
 */
import {
  defaultTextMapGetter,
  defaultTextMapSetter,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  type TextMapPropagator,
  trace
} from "@opentelemetry/api"
import { CompositePropagator, W3CTraceContextPropagator } from "@opentelemetry/core"
import { B3InjectEncoding, B3Propagator } from "@opentelemetry/propagator-b3"
import { JaegerPropagator } from "@opentelemetry/propagator-jaeger"
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  type IdGenerator,
  ParentBasedSampler,
  RandomIdGenerator,
  type Sampler,
  SamplingDecision,
  TraceIdRatioBasedSampler
} from "@opentelemetry/sdk-trace-base"
import type { Propagator, SamplerName } from "../config/TelemetrySettings.ts"
import type { TracedRequest } from "./Traces.ts"

export const samplerOf = (name: SamplerName, ratio: number): Sampler => {
  const samplers: Readonly<Record<SamplerName, () => Sampler>> = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: () => new TraceIdRatioBasedSampler(ratio),
    parentbased_always_on: () => new ParentBasedSampler({ root: new AlwaysOnSampler() }),
    parentbased_always_off: () => new ParentBasedSampler({ root: new AlwaysOffSampler() }),
    parentbased_traceidratio: () => new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) })
  }
  return samplers[name]()
}

/** The name `baggage` is accepted, because it is part of the default. Baggage is not forwarded, because receivers are other organizations. */
const propagatorsByName: Readonly<Record<Propagator, (() => TextMapPropagator) | undefined>> = {
  tracecontext: () => new W3CTraceContextPropagator(),
  baggage: undefined,
  b3: () => new B3Propagator({ injectEncoding: B3InjectEncoding.SINGLE_HEADER }),
  b3multi: () => new B3Propagator({ injectEncoding: B3InjectEncoding.MULTI_HEADER }),
  jaeger: () => new JaegerPropagator()
}

const propagatorOf = (names: ReadonlyArray<Propagator>): CompositePropagator =>
  new CompositePropagator({
    propagators: names.flatMap((name) => {
      const make = propagatorsByName[name]
      return make === undefined ? [] : [make()]
    })
  })

/** A trace that will be sampled. The next root span gets its trace id. */
export interface SampledTrace {
  readonly remote: SpanContext | undefined
}

export const makeRequestSampling = (sampler: Sampler, names: ReadonlyArray<Propagator>) => {
  const propagator = propagatorOf(names)
  const fields = propagator.fields()
  const random = new RandomIdGenerator()
  let decidedId: string | undefined

  const remoteOf = (headers: TracedRequest["headers"]): SpanContext | undefined => {
    for (const field of fields) {
      if (headers[field] === undefined) continue
      return trace.getSpanContext(propagator.extract(ROOT_CONTEXT, headers, defaultTextMapGetter))
    }
    return undefined
  }

  const decide = (remote: SpanContext | undefined, name: string, kind: SpanKind): SampledTrace | undefined => {
    const traceId = remote?.traceId ?? random.generateTraceId()
    const context = remote === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, remote)
    const { decision } = sampler.shouldSample(context, traceId, name, kind, {}, [])
    if (decision !== SamplingDecision.RECORD_AND_SAMPLED) return undefined
    // A span below a remote one has the trace id of the remote span.
    decidedId = remote === undefined ? traceId : undefined
    return { remote }
  }

  /** For the SDK: the first root span after a decision gets the trace id of that decision. */
  const ids: IdGenerator = {
    generateTraceId: () => {
      const traceId = decidedId ?? random.generateTraceId()
      decidedId = undefined
      return traceId
    },
    generateSpanId: () => random.generateSpanId()
  }

  return {
    ids,
    /** Undefined if the request is not sampled. */
    ofRequest: (headers: TracedRequest["headers"], name: string) => decide(remoteOf(headers), name, SpanKind.SERVER),
    /** Undefined if a delivery without a sampled request is not sampled. */
    ofDelivery: (name: string) => decide(undefined, name, SpanKind.CLIENT),
    headersOf: (span: SpanContext): { readonly [name: string]: string } => {
      const headers: Record<string, string> = {}
      propagator.inject(trace.setSpanContext(ROOT_CONTEXT, span), headers, defaultTextMapSetter)
      return headers
    }
  }
}

export type RequestSampling = ReturnType<typeof makeRequestSampling>
