/**
 * Turns many small requests into few large statements: while one batch runs, the next one gathers. A request alone goes at
 * once; under load a batch holds all that came in meanwhile, so cost per request falls as load rises.
 */
import { Effect, Exit, FiberSet } from "effect"

/** Asks for whoever is no fiber: `settle` is called once, never before this returns, and must not throw. */
export type SubmitToBatch<In, Out> = (input: In, settle: (exit: Exit.Exit<Out>) => void) => void

interface Batcher<In, Out> {
  ask(input: In): Effect.Effect<Out>
  readonly push: SubmitToBatch<In, Out>
}

interface PendingInput<In, Out> {
  readonly input: In
  readonly settle: (exit: Exit.Exit<Out>) => void
}

/**
 * `run` answers a batch in its order. At most `lanes` batches run at a time, of at most `batchMax` inputs each. A defect of a
 * batch is the defect of every request in it.
 */
export const makeBatcher = Effect.fnUntraced(function* <In, Out>(options: {
  readonly lanes: number
  readonly batchMax: number
  readonly run: (inputs: ReadonlyArray<In>) => Effect.Effect<ReadonlyArray<Out>>
}) {
  const fork = yield* FiberSet.makeRuntime<never>()
  const queue: Array<PendingInput<In, Out>> = []
  let lanes = 0

  const take = () => queue.splice(0, options.batchMax)
  const runOf = (batch: ReadonlyArray<PendingInput<In, Out>>) =>
    Effect.exit(options.run(batch.map(({ input }) => input)))
  const answer = (batch: ReadonlyArray<PendingInput<In, Out>>, exit: Exit.Exit<ReadonlyArray<Out>>) => {
    for (const [index, { settle }] of batch.entries()) {
      settle(Exit.isSuccess(exit) ? Exit.succeed(exit.value[index] as Out) : Exit.failCause(exit.cause))
    }
  }

  const lane = Effect.gen(function* () {
    // One turn of the event loop, so that all who ask in the same turn share the batch.
    yield* Effect.yieldNow
    let batch = take()
    while (batch.length > 0) {
      const exit = yield* runOf(batch)
      const answered = batch
      batch = take()
      // The next batch is sent before this one's answers are worked on, so that the server is not kept waiting by them.
      if (batch.length > 0)
        fork(
          Effect.andThen(
            Effect.yieldNow,
            Effect.sync(() => answer(answered, exit))
          )
        )
      else {
        answer(answered, exit)
        yield* Effect.yieldNow
        batch = take()
      }
    }
    lanes--
  })

  const push: SubmitToBatch<In, Out> = (input, settle) => {
    queue.push({ input, settle })
    if (lanes === options.lanes) return
    lanes++
    fork(lane)
  }
  const gathered: Batcher<In, Out> = { push, ask: (input) => Effect.callback((resume) => push(input, resume)) }
  return gathered
})
