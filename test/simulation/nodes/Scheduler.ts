/**
 * The scheduler between the nodes and the database. Every statement and transaction of every node waits here until it is chosen
 * by the random source, so the seed and not the machine decides the order. Faults are injected here. A transaction
 * waits before BEGIN and before COMMIT, some also in between, and may be held there with all its locks. Sleeping fibers wait here too.
 */
import { type Clock, Deferred, Duration, Effect, Fiber, Latch, Option, type Scope } from "effect"
import type { SqlError } from "effect/sql"
import { violation } from "../checks/Violation.ts"
import type { RandomSource } from "../requests/RandomSource.ts"
import { Attempts } from "./Attempts.ts"
import { type Checkpoint, failure, faultNames, lockedFaultName, type TransactionPoint, type Verdict } from "./Faults.ts"

/** The decisions about each checkpoint. */
export interface FaultPlan {
  readonly verdictOn: (checkpoint: Checkpoint) => Verdict
  /** Whether a transaction is held before its COMMIT until it is chosen; otherwise it continues before all others. */
  readonly isHeld: () => boolean
}

/** A transaction that passes several checkpoints. */
interface Passing {
  readonly from: Omit<Checkpoint, "point">
  /** Whether it may be held at its checkpoints while others continue. */
  readonly isHeld: boolean
  /** Ends its connection. */
  readonly cut: Effect.Effect<void>
  /** Reports to its caller that the connection is lost. */
  readonly lose: (error: SqlError.SqlError) => void
}

interface Waiting extends Checkpoint {
  readonly isUrgent: boolean
  readonly resume: (verdict: Verdict) => void
}

/** Sorts those that wait: the order of simultaneous arrivals is not determined by the seed. */
const sortKeyOf = ({ node, point, what }: Checkpoint): string => `${node} ${what} ${point}`

interface Sleeper {
  until: number
  readonly isShort: boolean
  readonly wake: () => void
}

/** Longer than any statement takes, lock timeouts included. In short intervals, so that a paused machine does not count as a stall. */
const stall = { millis: 100, times: 200 }

/** Verdicts after which a transaction continues to its next statement or its COMMIT. */
const goesOn: ReadonlyArray<Verdict> = ["pass", "cut", "unacknowledged"]

/** Turns of the event loop without activity after which all fibers are blocked. */
const calmTurns = 24

export class Scheduler {
  /** The time of day. */
  now = 0
  /** Everything that was released, in order. Two runs of a seed have the same trace. */
  readonly trace: Array<string> = []
  /** Released and not finished. */
  underway = 0
  readonly waiting: Array<Waiting> = []
  readonly attempts = new Attempts()
  private readonly sleepers = new Set<Sleeper>()
  private readonly scope: Scope.Scope
  private readonly random: RandomSource
  private readonly faultPlan: FaultPlan
  private movements = 0
  private readonly moved = Latch.makeUnsafe(false)

  readonly count: (what: string) => void

  /** `scope` owns the transactions: one may outlive the node that began it. `count` counts faults and situations. */
  constructor(scope: Scope.Scope, random: RandomSource, faultPlan: FaultPlan, count: (what: string) => void) {
    this.count = count
    this.scope = scope
    this.random = random
    this.faultPlan = faultPlan
  }

  /** Records activity that may unblock others. */
  readonly move = (): void => {
    this.movements++
    this.moved.openUnsafe()
  }

  private readonly enter = (checkpoint: Checkpoint, isUrgent = false): Effect.Effect<Verdict> =>
    Effect.callback((resume) => {
      const waiting: Waiting = { ...checkpoint, isUrgent, resume: (verdict) => resume(Effect.succeed(verdict)) }
      this.waiting.push(waiting)
      this.move()
      return Effect.sync(() => this.forget(waiting))
    })

  private forget(waiting: Waiting): void {
    const at = this.waiting.indexOf(waiting)
    if (at >= 0) this.waiting.splice(at, 1)
    this.move()
  }

  /** Waits in the middle of a transaction. If interrupted there, the transaction is under way again, to be rolled back. */
  private readonly held = (checkpoint: Checkpoint, isUrgent = false): Effect.Effect<Verdict> =>
    Effect.andThen(
      this.leave,
      Effect.onInterrupt(this.enter(checkpoint, isUrgent), () => Effect.sync(() => void this.underway++))
    )

  private readonly leave = Effect.sync(() => {
    this.underway--
    this.move()
  })

  /** A statement outside a transaction. */
  readonly read = <A, R>(node: string, what: string, run: Effect.Effect<A, SqlError.SqlError, R>) =>
    Effect.flatMap(this.enter({ node, point: "read", what }), (verdict) => {
      const outcome: Effect.Effect<A, SqlError.SqlError, R> = verdict === "pass" ? run : Effect.fail(failure(verdict))
      return Effect.ensuring(outcome, this.leave)
    })

  /** A checkpoint within a transaction, with all its locks. The caller of an undecided transaction gets a lost connection. */
  private readonly pass = (
    { cut, from, isHeld, lose }: Passing,
    point: TransactionPoint
  ): Effect.Effect<Verdict, SqlError.SqlError> =>
    Effect.gen({ self: this }, function* () {
      const checkpoint: Checkpoint = { ...from, point }
      const verdict = yield* this.held(checkpoint, !isHeld)
      if (verdict === "cut") yield* cut
      if (verdict === "undecided") {
        lose(failure(verdict))
        const later = yield* this.held({ ...checkpoint, isAlone: true })
        return later === "pass" ? later : yield* Effect.fail(failure(later))
      }
      return goesOn.includes(verdict) ? verdict : yield* Effect.fail(failure(verdict))
    })

  /**
   * A transaction. `open` runs it and calls `pass` at each of its checkpoints, the last one before its COMMIT; `cut` ends its
   * connection. `isRetried`: the caller retries it after a conflict.
   */
  readonly transaction = <A, E, R>(
    {
      isRetried,
      cut,
      ...from
    }: Omit<Checkpoint, "point"> & { readonly isRetried: boolean; readonly cut: Effect.Effect<void> },
    open: (pass: (point: TransactionPoint) => Effect.Effect<void, SqlError.SqlError>) => Effect.Effect<A, E, R>
  ) => {
    const once = Effect.gen({ self: this }, function* () {
      const verdict = yield* this.enter({ ...from, point: "begin" })
      if (verdict !== "pass") return yield* Effect.ensuring(Effect.fail(failure(verdict)), this.leave)
      const isHeld = this.faultPlan.isHeld()
      if (isHeld) this.count("transaction held before its COMMIT")
      const answer = Deferred.makeUnsafe<A, E | SqlError.SqlError>()
      let isAlone = false
      let last: Verdict = "pass"
      const lose = (error: SqlError.SqlError) => {
        isAlone = true
        Deferred.doneUnsafe(answer, Effect.fail(error))
      }
      const pass = (point: TransactionPoint) =>
        Effect.map(this.pass({ from, isHeld, cut, lose }, point), (verdict) => {
          last = verdict
        })
      const whole = Effect.flatMap(open(pass), (result) =>
        (last as Verdict) === "unacknowledged" ? Effect.fail(failure(last)) : Effect.succeed(result)
      )
      const fiber = yield* Effect.forkIn(
        Effect.onExit(whole, (exit) => Effect.andThen(this.leave, Deferred.done(answer, exit))),
        this.scope,
        { startImmediately: true }
      )
      return yield* Effect.onInterrupt(Deferred.await(answer), () => (isAlone ? Effect.void : Fiber.interrupt(fiber)))
    })
    return isRetried ? this.attempts.counted(from.node, once) : once
  }

  /** A node's clock: the simulation's time plus `ahead` milliseconds. A sleep ends by the simulation's time. */
  readonly clockOf = (ahead: number): Clock.Clock => ({
    // Jumps affect the wall clock only; durations are measured by the monotonic clock.
    monotonicTimeNanosUnsafe: () => 0n,
    monotonicTimeNanos: Effect.succeed(0n),
    currentTimeMillisUnsafe: () => this.now + ahead,
    currentTimeMillis: Effect.sync(() => this.now + ahead),
    currentTimeNanosUnsafe: () => BigInt(this.now + ahead) * 1_000_000n,
    currentTimeNanos: Effect.sync(() => BigInt(this.now + ahead) * 1_000_000n),
    sleep: (duration: Duration.Duration) =>
      Effect.callback<void>((resume) => {
        const millis = Duration.toMillis(duration)
        if (millis <= 0) return resume(Effect.void)
        const sleeper = { until: this.now + millis, isShort: millis < 1000, wake: () => resume(Effect.void) }
        this.sleepers.add(sleeper)
        this.move()
        return Effect.sync(() => void this.sleepers.delete(sleeper))
      })
  })

  /** Sets the time and wakes the fibers whose sleep has ended. A step back makes no sleep longer, and so none waits for ever. */
  setTime(now: number): void {
    const back = Math.max(0, this.now - now)
    this.now = now
    for (const sleeper of this.sleepers) sleeper.until -= back
    for (const sleeper of Array.from(this.sleepers)) if (sleeper.until <= now) this.wake(sleeper)
  }

  private wake(sleeper: Sleeper): void {
    this.sleepers.delete(sleeper)
    this.move()
    sleeper.wake()
  }

  /** Releases one of those that wait. */
  release(): void {
    const urgent = this.waiting.filter(({ isUrgent }) => isUrgent)
    const ready = (urgent.length > 0 ? urgent : this.waiting).toSorted((a, b) =>
      sortKeyOf(a).localeCompare(sortKeyOf(b))
    )
    if (ready.length === 0) return
    const waiting = this.random.pick(ready)
    this.waiting.splice(this.waiting.indexOf(waiting), 1)
    this.underway++
    this.move()
    waiting.resume(this.decide(waiting))
  }

  private decide(checkpoint: Checkpoint): Verdict {
    const verdict = this.faultPlan.verdictOn(checkpoint)
    if (checkpoint.isAlone) this.count(verdict === "pass" ? "undecided: committed" : "undecided: rolled back")
    else if (verdict !== "pass") {
      this.count(faultNames[verdict])
      if (checkpoint.isLocking) this.count(lockedFaultName(checkpoint.point, verdict))
    }
    const how = [checkpoint.isAlone ? "alone" : "", verdict === "pass" ? "" : verdict].filter((word) => word !== "")
    this.trace.push([checkpoint.node, checkpoint.what, checkpoint.point, ...how].join(" "))
    return verdict
  }

  /** Whether a transaction that may hold locks waits. */
  get isHolding(): boolean {
    return this.waiting.some(({ point }) => point !== "read" && point !== "begin")
  }

  /** Whether a transaction that has locked a license waits; of this node if given. */
  isLocking(node?: string): boolean {
    return this.waiting.some(
      (checkpoint) =>
        checkpoint.isLocking && checkpoint.point !== "begin" && (node === undefined || checkpoint.node === node)
    )
  }

  /** Wakes the short sleeper whose sleep ends first. */
  wakeShort(): boolean {
    const [first] = Array.from(this.sleepers)
      .filter(({ isShort }) => isShort)
      .toSorted((a, b) => a.until - b.until)
    if (first !== undefined) this.wake(first)
    return first !== undefined
  }

  /** Waits until all fibers wait for the scheduler or the database. */
  readonly calm = Effect.gen({ self: this }, function* () {
    let seen = this.movements
    for (let quiet = 0; quiet < calmTurns; quiet++) {
      yield* Effect.yieldNow
      if (this.movements !== seen) quiet = 0
      seen = this.movements
    }
    this.moved.closeUnsafe()
  })

  /** Waits until the database answers or a statement arrives. Fails if neither happens. */
  readonly movement = Effect.gen({ self: this }, function* () {
    for (let time = 0; time < stall.times; time++) {
      const seen = yield* Effect.timeoutOption(this.moved.await, stall.millis)
      if (Option.isSome(seen)) return
    }
    violation(`nothing moves: ${this.describe()}`)
  })

  private describe(): string {
    const waiting = this.waiting.map(({ node, what, point }) => `${node} ${what} ${point}`)
    return `${this.underway} under way, waiting: ${waiting}, to come again: ${this.attempts.returning}`
  }
}
