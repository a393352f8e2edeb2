/**
 * Turns many small requests into few large statements: while one batch runs, the next one gathers. A request alone goes at
 * once; under load a batch holds all that came in meanwhile, so cost per request falls as load rises.
 */
import { Effect, Exit, FiberSet } from "effect"

interface Waiting<In, Out> {
  readonly input: In
  readonly resume: (effect: Effect.Effect<Out>) => void
}

/**
 * `run` answers a batch in its order. At most `lanes` batches run at a time, of at most `batchMax` inputs each. A defect of a
 * batch is the defect of every request in it.
 */
export const gather = Effect.fnUntraced(function* <In, Out>(options: {
  readonly lanes: number
  readonly batchMax: number
  readonly run: (inputs: ReadonlyArray<In>) => Effect.Effect<ReadonlyArray<Out>>
}) {
  const fork = yield* FiberSet.makeRuntime<never>()
  const queue: Array<Waiting<In, Out>> = []
  let lanes = 0

  const lane = Effect.gen(function* () {
    while (true) {
      // One turn of the event loop, so that all who ask in the same turn share the batch.
      yield* Effect.yieldNow
      if (queue.length === 0) break
      const batch = queue.splice(0, options.batchMax)
      const exit = yield* Effect.exit(options.run(batch.map(({ input }) => input)))
      for (const [index, { resume }] of batch.entries()) {
        resume(Exit.isSuccess(exit) ? Effect.succeed(exit.value[index] as Out) : Effect.failCause(exit.cause))
      }
    }
    lanes--
  })

  return (input: In): Effect.Effect<Out> =>
    Effect.callback<Out>((resume) => {
      queue.push({ input, resume })
      if (lanes < options.lanes) {
        lanes++
        fork(lane)
      }
    })
})
