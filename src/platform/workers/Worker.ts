/**
 * A worker: an idempotent pass over the tables that runs repeatedly. A signal or the schedule starts the next pass. A failed pass is
 * retried sooner than the schedule; there is no other recovery. Of consecutive failures only the first is logged. A worker whose
 * fiber crashes is restarted. A crashed or stuck worker counts as dead until a pass succeeds.
 */
import { type Cause, Clock, Duration, Effect, Fiber, Latch } from "effect"
import { Heartbeat } from "./PassHeartbeat.ts"

export interface Worker {
  /** Its name in logs, probes and metrics. */
  readonly name: string
  /** The time from the end of a pass to the next, unless a signal comes first. */
  readonly every: Duration.Input
  readonly pass: Effect.Effect<void, unknown>
}

/** The status of a worker. Instants are epoch milliseconds. */
export interface WorkerStatus {
  readonly name: string
  readonly started_at: number
  /** The end of the last pass that succeeded; absent before the first. */
  readonly last_success_at?: number
  readonly last_failure_at?: number
  /** Failures since the last success: above zero the worker is failing. */
  readonly failures: number
  /** Passes that succeeded since the start. */
  readonly passes: number
  /** Its fiber has crashed or its pass is stuck, and no pass has succeeded since. */
  readonly dead: boolean
  /** The number of crashes of its fiber. */
  readonly deaths: number
}

export interface Running {
  readonly status: Effect.Effect<WorkerStatus>
  /** Starts a pass as soon as possible; if one is running, another one after it. */
  readonly wake: Effect.Effect<void>
  /** Runs until it is interrupted; the caller forks and owns it. */
  readonly run: Effect.Effect<never>
}

// A failing worker retries after a second, then with growing delays, at most its schedule or a minute.
const retryDelayFirst = Duration.seconds(1)
const retryDelayMax = Duration.minutes(1)
// A worker that crashes at its start must not keep the machine busy.
const restartDelay = Duration.seconds(1)
// Single statements, requests and export steps take much less; a pass of many of them sends a heartbeat after each.
const silentMinutesMax = 10

export const make = Effect.fnUntraced(function* ({ name, every, pass }: Worker) {
  const signal = yield* Latch.make(false)
  const started_at = yield* Clock.currentTimeMillis
  let status: WorkerStatus = { name, started_at, failures: 0, passes: 0, dead: false, deaths: 0 }

  const succeeded = Effect.gen(function* () {
    const { dead, failures, passes } = status
    if (failures > 0 || dead) yield* Effect.logInfo("A worker recovered.", { worker: name })
    const now = yield* Clock.currentTimeMillis
    status = { ...status, last_success_at: now, failures: 0, passes: passes + 1, dead: false }
  })

  const failed = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>) {
    if (status.failures === 0) yield* Effect.logError("A worker failed; retrying.", { worker: name }, cause)
    status = { ...status, last_failure_at: yield* Clock.currentTimeMillis, failures: status.failures + 1 }
  })

  const pause = Effect.suspend(() => {
    if (status.failures === 0) return Effect.sleep(every)
    const delay = Duration.times(retryDelayFirst, 2 ** Math.min(status.failures - 1, 6))
    return Effect.sleep(Duration.min(Duration.min(delay, retryDelayMax), Duration.fromInputUnsafe(every)))
  })

  // Counts minutes of waiting, not elapsed time: a suspended machine does not make a worker stuck.
  let silentMinutes = 0
  const receiveHeartbeat = Effect.sync(() => {
    silentMinutes = 0
  })

  /** Aborts a pass that sends no heartbeat for too long. The worker is dead from then on, even if the pass cannot be interrupted. */
  const watchdog = Effect.fnUntraced(function* (worker: Fiber.Fiber<unknown, unknown>) {
    for (silentMinutes = 0; silentMinutes < silentMinutesMax; silentMinutes++) yield* Effect.sleep("1 minute")
    yield* Effect.logError("A worker is stuck; its pass is aborted.", { worker: name })
    status = { ...status, dead: true }
    worker.interruptUnsafe()
  })

  const attempt = Effect.withFiber((worker) =>
    Effect.gen(function* () {
      const watching = yield* Effect.forkChild(watchdog(worker))
      const exit = yield* Effect.exit(Effect.provideService(pass, Heartbeat, receiveHeartbeat))
      yield* Fiber.interrupt(watching)
      return exit
    })
  ).pipe(Effect.withSpan(`Worker.${name}`))

  const crashed = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>) {
    yield* Effect.logError("A worker crashed; restarting.", { worker: name }, cause)
    status = { ...status, dead: true, deaths: status.deaths + 1 }
  })

  const work = Effect.gen(function* () {
    while (true) {
      // A signal during a pass starts another one: the running pass may have read the tables before the change.
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
      if (exit._tag === "Failure") yield* crashed(exit.cause)
      yield* Effect.sleep(restartDelay)
    }
  }) as Effect.Effect<never>

  return { run, wake: Effect.asVoid(signal.open), status: Effect.sync(() => status) } satisfies Running as Running
})
