/**
 * How long a request may take, and whether the running request may still be given up. A request is given up at its deadline unless
 * its commit has begun: then its outcome is reported. What must stay true: a request that is reported as given up changes nothing.
 */
import { type Clock, Context, Effect, FiberSet } from "effect"

/** Milliseconds from a request's arrival to its deadline. */
export const RequestTimeout = Context.Reference("licensing/platform/postgres/driver/RequestTimeout", {
  defaultValue: () => 10_000
})

/** For deadlines and other waits: the time of day jumps when it is set. */
export const monotonicMillis = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)

export interface Deadline {
  /** A commit, or a license's actor, decides the outcome now, or something else that ends by itself. */
  committing: boolean
  /** The request was answered with 503: nothing of it may be committed any more. */
  givenUp: boolean
}

/** Of the running request; undefined outside a request. */
export const Deadline = Context.Reference<Deadline | undefined>("licensing/platform/postgres/driver/Deadline", {
  defaultValue: () => undefined
})

/** Runs a part of a request that has a limit of its own: meanwhile the request is not given up. */
export const withoutDeadline = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.withFiber((fiber) => {
    const deadline = fiber.getRef(Deadline)
    if (deadline === undefined) return effect
    const set = (committing: boolean) =>
      Effect.sync(() => {
        deadline.committing = committing
      })
    return Effect.acquireUseRelease(
      set(true),
      () => effect,
      () => set(false)
    )
  })

/** How often late requests are looked for. A request is answered at most this long after its deadline. */
const checkIntervalMillis = 500

/**
 * One timer for many requests. Returns a function that starts the timer if it does not run; it runs until `check` returns false,
 * because nothing waits any more.
 */
export const makeLateCheck = Effect.fnUntraced(function* (check: () => boolean) {
  const fork = yield* FiberSet.makeRuntime<never>()
  let running = false
  const run = Effect.gen(function* () {
    do yield* Effect.sleep(checkIntervalMillis)
    while (check())
    running = false
  })
  return (): void => {
    if (running) return
    running = true
    fork(run)
  }
})
