/**
 * The time limit of requests. A request is abandoned at its deadline, unless its commit has begun: then its outcome is reported. What
 * must stay true: a request that is reported as abandoned changes nothing.
 */
import { type Clock, Context, Effect, FiberSet } from "effect"

/** Milliseconds from the arrival of a request, or of its body, to its deadline. */
export const RequestTimeout = Context.Reference("licensing/platform/postgres/driver/RequestTimeout", {
  defaultValue: () => 10_000
})

/** For deadlines and other waits: the time of day jumps when it is set. */
export const monotonicMillis = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)

export interface Deadline {
  /** The outcome is being decided: by a commit, a license's actor, or a step with its own time limit. */
  committing: boolean
  /** The request was answered with 503, and must not be committed. */
  givenUp: boolean
  /** Stops the time while the request's body arrives, which the listener limits. */
  stop(): void
  /** Begins the time anew. */
  start(): void
}

/** The deadline of the running request; undefined outside a request. */
export const Deadline = Context.Reference<Deadline | undefined>("licensing/platform/postgres/driver/Deadline", {
  defaultValue: () => undefined
})

/** Lets the deadline apply again, after a license's actor has decided a request that changes nothing. */
export const resumeDeadline: Effect.Effect<void> = Effect.withFiber((fiber) =>
  Effect.sync(() => {
    const deadline = fiber.getRef(Deadline)
    if (deadline !== undefined) deadline.committing = false
  })
)

/** Runs a step of a request that has its own time limit. During this step the request is not abandoned. */
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

/** The interval of the check for late requests. A request is answered at most this long after its deadline. */
const checkIntervalMillis = 500

/**
 * One timer for many requests. Returns a function that starts the timer if it does not run. The timer runs until `check` returns
 * false.
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
