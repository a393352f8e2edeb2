/**
 * A worker: an idempotent pass over what the tables say, run again and again. A signal or the schedule begins the next pass; a
 * pass that fails is told once and tried again sooner than the schedule, and that next pass is the whole recovery. One whose fiber
 * dies all the same is raised again, and counts as dead until a pass of it has succeeded. So does one whose pass is stuck.
 */
import { type Cause, Clock, Duration, Effect, Fiber, Latch } from "effect"
import { Heartbeat } from "./Heartbeat.ts"

export interface Worker {
  /** As logs, probes and metrics name it. */
  readonly name: string
  /** From the end of a pass to the next, unless a signal comes first. */
  readonly every: Duration.Input
  readonly pass: Effect.Effect<void, unknown>
}

/** How a worker stands. Instants are epoch milliseconds. */
export interface WorkerStatus {
  readonly name: string
  readonly started_at: number
  /** The end of the last pass that succeeded; absent before the first. */
  readonly last_success_at?: number
  readonly last_failure_at?: number
  /** Failures since the last success: above zero the worker is in trouble. */
  readonly failures: number
  /** Passes that succeeded since the start. */
  readonly passes: number
  /** Its fiber has ended or its pass is stuck, and no pass has succeeded since. */
  readonly dead: boolean
  /** How often its fiber has ended. */
  readonly deaths: number
}

export interface Running {
  readonly standing: Effect.Effect<WorkerStatus>
  /** Begins a pass as soon as possible, or another one where a pass is under way. */
  readonly wake: Effect.Effect<void>
  /** Works for ever: whoever forks it owns it. */
  readonly run: Effect.Effect<never>
}

// A worker in trouble tries again soon, then ever less often, never less often than its schedule or once a minute.
const pauseFirst = Duration.seconds(1)
const pauseMax = Duration.minutes(1)
// Long enough that one which dies at once does not keep the machine busy with it.
const resurrection = Duration.seconds(1)
// Statements, requests and turns of exports are bounded far below this; a pass of many of them gives a sign of life after each.
const silentMinutesMax = 10

export const make = Effect.fnUntraced(function* ({ name, every, pass }: Worker) {
  const signal = yield* Latch.make(false)
  const started_at = yield* Clock.currentTimeMillis
  let standing: WorkerStatus = { name, started_at, failures: 0, passes: 0, dead: false, deaths: 0 }

  const succeeded = Effect.gen(function* () {
    const { dead, failures, passes } = standing
    if (failures > 0 || dead) yield* Effect.logInfo("A worker is well again.", { worker: name })
    const now = yield* Clock.currentTimeMillis
    standing = { ...standing, last_success_at: now, failures: 0, passes: passes + 1, dead: false }
  })

  const failed = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>) {
    if (standing.failures === 0) yield* Effect.logError("A worker failed and is tried again.", { worker: name }, cause)
    standing = { ...standing, last_failure_at: yield* Clock.currentTimeMillis, failures: standing.failures + 1 }
  })

  const pause = Effect.suspend(() => {
    if (standing.failures === 0) return Effect.sleep(every)
    const growing = Duration.times(pauseFirst, 2 ** Math.min(standing.failures - 1, 6))
    return Effect.sleep(Duration.min(Duration.min(growing, pauseMax), Duration.fromInputUnsafe(every)))
  })

  // Counted in minutes that were waited for, not in time that went by: a machine that slept has stuck nobody.
  let silentMinutes = 0
  const signOfLife = Effect.sync(() => {
    silentMinutes = 0
  })

  /** Gives up what says nothing for too long: it is dead from then on, even where its pass cannot be interrupted. */
  const watch = Effect.fnUntraced(function* (worker: Fiber.Fiber<unknown, unknown>) {
    for (silentMinutes = 0; silentMinutes < silentMinutesMax; silentMinutes++) yield* Effect.sleep("1 minute")
    yield* Effect.logError("A worker is stuck and its pass is given up.", { worker: name })
    standing = { ...standing, dead: true }
    worker.interruptUnsafe()
  })

  const attempt = Effect.withFiber((worker) =>
    Effect.gen(function* () {
      const watching = yield* Effect.forkChild(watch(worker))
      const exit = yield* Effect.exit(Effect.provideService(pass, Heartbeat, signOfLife))
      yield* Fiber.interrupt(watching)
      return exit
    })
  ).pipe(Effect.withSpan(`Worker.${name}`))

  const died = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>) {
    yield* Effect.logError("A worker died and is raised again.", { worker: name }, cause)
    standing = { ...standing, dead: true, deaths: standing.deaths + 1 }
  })

  const work = Effect.gen(function* () {
    while (true) {
      // A signal that comes while a pass runs is kept for the next one: the pass may be past what it is about.
      yield* signal.close
      const exit = yield* attempt
      yield* exit._tag === "Success" ? succeeded : failed(exit.cause)
      yield* Effect.raceFirst(signal.await, pause)
    }
  })

  const run = Effect.gen(function* () {
    while (true) {
      const fiber = yield* Effect.forkChild(work, { startImmediately: true })
      const exit = yield* Effect.onInterrupt(Fiber.await(fiber), () => Fiber.interrupt(fiber))
      if (exit._tag === "Failure") yield* died(exit.cause)
      yield* Effect.sleep(resurrection)
    }
  }) as Effect.Effect<never>

  return { run, wake: Effect.asVoid(signal.open), standing: Effect.sync(() => standing) } satisfies Running as Running
})
