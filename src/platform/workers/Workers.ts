/** All workers of a node, each supervised in its own fiber while the node runs, and their statuses. */
import { Context, Effect, type Latch, Layer, type Scope } from "effect"
import * as Worker from "./Worker.ts"

export class Workers extends Context.Service<
  Workers,
  {
    /** Starts a worker at once; it runs until the scope ends. */
    supervise(worker: Worker.Worker): Effect.Effect<void, never, Scope.Scope>
    /** Starts a worker's next pass ahead of its schedule. Has no effect for a worker that does not run here. */
    wake(name: string): Effect.Effect<void>
    readonly statuses: Effect.Effect<ReadonlyArray<Worker.WorkerStatus>>
  }
>()("licensing/platform/workers/Workers") {
  static readonly layer = Layer.sync(Workers, () => {
    const running = new Map<string, Worker.Running>()

    const supervise = Effect.fnUntraced(function* (worker: Worker.Worker) {
      const started = yield* Worker.make(worker)
      running.set(worker.name, started)
      yield* Effect.addFinalizer(() => Effect.sync(() => running.delete(worker.name)))
      yield* Effect.forkScoped(started.run)
    })

    return Workers.of({
      supervise,
      wake: (name) => running.get(name)?.wake ?? Effect.void,
      statuses: Effect.suspend(() => Effect.all(Array.from(running.values(), ({ status }) => status)))
    })
  })
}

/** Runs an effect each time the latch is opened, which it closes before. */
export const wheneverOpened = <E>(latch: Latch.Latch, effect: Effect.Effect<void, E>): Effect.Effect<never, E> =>
  Effect.forever(Effect.andThen(latch.await, Effect.andThen(latch.close, effect)))
