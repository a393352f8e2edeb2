/** All workers of a node: each a fiber of its own, supervised for as long as the node runs, and how they stand. */
import { Context, Effect, Layer, type Scope } from "effect"
import * as Worker from "./Worker.ts"

export class Workers extends Context.Service<
  Workers,
  {
    /** Sets a worker to work, at once, until the scope ends. */
    supervise(worker: Worker.Worker): Effect.Effect<void, never, Scope.Scope>
    /** Begins a worker's next pass without waiting for its schedule. What is not at work here is woken elsewhere. */
    wake(name: string): Effect.Effect<void>
    readonly standings: Effect.Effect<ReadonlyArray<Worker.WorkerStatus>>
  }
>()("licensing/workers/Workers") {
  static readonly layer = Layer.sync(Workers, () => {
    const running = new Map<string, Worker.Running>()

    const supervise = Effect.fnUntraced(function* (worker: Worker.Worker) {
      const made = yield* Worker.make(worker)
      running.set(worker.name, made)
      yield* Effect.addFinalizer(() => Effect.sync(() => running.delete(worker.name)))
      yield* Effect.forkScoped(made.run)
    })

    return Workers.of({
      supervise,
      wake: (name) => running.get(name)?.wake ?? Effect.void,
      standings: Effect.suspend(() => Effect.all(Array.from(running.values(), ({ standing }) => standing)))
    })
  })
}
