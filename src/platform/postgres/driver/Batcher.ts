/**
 * Combines many small requests into few large statements: while one batch runs, the next one is collected. A single request is sent
 * at once. Under load a batch contains all requests that arrived during the previous one, so the cost per request falls.
 */
import { type Context, Effect, Exit, FiberSet, Tracer } from "effect"
import { sampledSpan } from "../../telemetry/Traces.ts"
import { pauseFor } from "./Transactions.ts"

/**
 * For callers outside a fiber: `onResult` is called once, never before this returns, and must not throw. `spans` are the sampled
 * spans that wait for the batch.
 */
export type SubmitToBatch<In, Out> = (
  input: In,
  onResult: (exit: Exit.Exit<Out>) => void,
  spans?: ReadonlyArray<Tracer.Span>
) => void

interface Batcher<In, Out> {
  /** An interruption before the batch begins removes the input from the queue. */
  request(input: In): Effect.Effect<Out>
  readonly submit: SubmitToBatch<In, Out>
  /** Removes late inputs from the queue. Returns whether others wait. */
  dropLate(): boolean
}

interface PendingInput<In, Out> {
  readonly input: In
  readonly onResult: (exit: Exit.Exit<Out>) => void
  readonly spans: ReadonlyArray<Tracer.Span> | undefined
}

/** OpenTelemetry's default limit. */
const linksMax = 128

/**
 * Runs a batch in its own span if sampled requests wait for it. The parent is the span of the first of them. With `isLinked`, the
 * batch and all waiting spans are linked in both directions, so that each trace leads to the batch. Reads are not linked: each
 * validation would have four links.
 */
const inBatchSpan = <A>(
  { isLinked = false, name }: { readonly isLinked?: boolean; readonly name: string },
  batch: ReadonlyArray<PendingInput<never, never>>,
  run: Effect.Effect<A>
) => {
  const parent = batch.find(({ spans }) => spans !== undefined)?.spans?.[0]
  if (parent === undefined) return run
  const spans = isLinked ? batch.flatMap(({ spans = [] }) => spans).slice(0, linksMax) : []
  const links = spans.map((span) => ({ span, attributes: {} }))
  const attributes = { "licensing.batch.size": batch.length }
  return Effect.useSpan(name, { parent, links, attributes }, (span) => {
    for (const other of spans.slice(1)) other.addLinks([{ span, attributes: {} }])
    return Effect.provideService(run, Tracer.ParentSpan, span)
  })
}

/**
 * `run` returns the results of a batch in the order of its inputs. At most `concurrency` batches run at a time, each of at most
 * `batchMax` inputs. A defect of a batch is the defect of every request in it.
 */
export const makeBatcher = Effect.fnUntraced(function* <In, Out>(options: {
  /** The name of a batch's span. */
  readonly name: string
  /** Whether that span is linked with all sampled requests in the batch. */
  readonly isLinked?: boolean
  readonly concurrency: number
  readonly batchMax: number
  readonly run: (inputs: ReadonlyArray<In>) => Effect.Effect<ReadonlyArray<Out>>
  /** Inputs that are too late to run, and their result. */
  readonly late?: { readonly isLate: (input: In) => boolean; readonly result: Out }
  /** The time between a batch and the next one, to gather inputs. Default 0. */
  readonly pauseMillis?: () => number
}) {
  const fork = yield* FiberSet.makeRuntime<never>()
  let queue: Array<PendingInput<In, Out>> = []
  let running = 0

  const dropLate = (): boolean => {
    const { late } = options
    if (late !== undefined && queue.some(({ input }) => late.isLate(input))) {
      const dropped = queue.filter(({ input }) => late.isLate(input))
      queue = queue.filter(({ input }) => !late.isLate(input))
      for (const { onResult } of dropped) onResult(Exit.succeed(late.result))
    }
    return queue.length > 0
  }
  const takeBatch = () => {
    dropLate()
    return queue.splice(0, options.batchMax)
  }
  const runBatch = (batch: ReadonlyArray<PendingInput<In, Out>>) =>
    Effect.exit(inBatchSpan(options, batch as never, options.run(batch.map(({ input }) => input))))
  const deliver = (batch: ReadonlyArray<PendingInput<In, Out>>, exit: Exit.Exit<ReadonlyArray<Out>>) => {
    for (const [index, { onResult }] of batch.entries()) {
      onResult(Exit.isSuccess(exit) ? Exit.succeed(exit.value[index] as Out) : Exit.failCause(exit.cause))
    }
  }

  const runBatches = Effect.gen(function* () {
    // All requests of the same turn of the event loop share the batch.
    yield* Effect.yieldNow
    let batch = takeBatch()
    while (batch.length > 0) {
      const exit = yield* runBatch(batch)
      const finished = batch
      const pauseMillis = options.pauseMillis?.() ?? 0
      if (pauseMillis > 0) {
        deliver(finished, exit)
        yield* pauseFor(pauseMillis)
        batch = takeBatch()
        continue
      }
      batch = takeBatch()
      // Sends the next batch before delivering these results, so that the server does not wait for their receivers.
      if (batch.length > 0)
        fork(
          Effect.andThen(
            Effect.yieldNow,
            Effect.sync(() => deliver(finished, exit))
          )
        )
      else {
        deliver(finished, exit)
        yield* Effect.yieldNow
        batch = takeBatch()
      }
    }
    running--
  })

  const submit: SubmitToBatch<In, Out> = (input, onResult, spans) => {
    queue.push({ input, onResult, spans })
    if (running === options.concurrency) return
    running++
    fork(runBatches)
  }
  const request = (input: In) =>
    Effect.withFiber<Out>(({ context }) =>
      Effect.callback<Out>((resume) => {
        submit(input, resume, sampledSpans(context))
        return Effect.sync(() => {
          queue = queue.filter(({ onResult }) => onResult !== resume)
        })
      })
    )
  const batcher: Batcher<In, Out> = { submit, request, dropLate }
  return batcher
})

const sampledSpans = (context: Context.Context<never>): ReadonlyArray<Tracer.Span> | undefined => {
  const span = sampledSpan(context)
  return span && [span]
}
