/**
 * Turns many small requests into few large statements: while one batch runs, the next one is collected. A single request is sent
 * at once. Under load a batch contains all requests that arrived meanwhile, so the cost per request falls as load rises.
 */
import { Effect, Exit, FiberSet } from "effect"

/** For callers outside a fiber: `onResult` is called once, never before this returns, and must not throw. */
export type SubmitToBatch<In, Out> = (input: In, onResult: (exit: Exit.Exit<Out>) => void) => void

interface Batcher<In, Out> {
  request(input: In): Effect.Effect<Out>
  readonly submit: SubmitToBatch<In, Out>
}

interface PendingInput<In, Out> {
  readonly input: In
  readonly onResult: (exit: Exit.Exit<Out>) => void
}

/**
 * `run` returns the results of a batch in the order of its inputs. At most `concurrency` batches run at a time, each of at most
 * `batchMax` inputs. A defect of a batch is the defect of every request in it.
 */
export const makeBatcher = Effect.fnUntraced(function* <In, Out>(options: {
  readonly concurrency: number
  readonly batchMax: number
  readonly run: (inputs: ReadonlyArray<In>) => Effect.Effect<ReadonlyArray<Out>>
}) {
  const fork = yield* FiberSet.makeRuntime<never>()
  const queue: Array<PendingInput<In, Out>> = []
  let running = 0

  const takeBatch = () => queue.splice(0, options.batchMax)
  const runBatch = (batch: ReadonlyArray<PendingInput<In, Out>>) =>
    Effect.exit(options.run(batch.map(({ input }) => input)))
  const deliver = (batch: ReadonlyArray<PendingInput<In, Out>>, exit: Exit.Exit<ReadonlyArray<Out>>) => {
    for (const [index, { onResult }] of batch.entries()) {
      onResult(Exit.isSuccess(exit) ? Exit.succeed(exit.value[index] as Out) : Exit.failCause(exit.cause))
    }
  }

  const runBatches = Effect.gen(function* () {
    // Waits one turn of the event loop, so that all requests of the same turn share the batch.
    yield* Effect.yieldNow
    let batch = takeBatch()
    while (batch.length > 0) {
      const exit = yield* runBatch(batch)
      const finished = batch
      batch = takeBatch()
      // Sends the next batch before this one's results are delivered, so that the server does not wait for their receivers.
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

  const submit: SubmitToBatch<In, Out> = (input, onResult) => {
    queue.push({ input, onResult })
    if (running === options.concurrency) return
    running++
    fork(runBatches)
  }
  const batcher: Batcher<In, Out> = { submit, request: (input) => Effect.callback((resume) => submit(input, resume)) }
  return batcher
})
