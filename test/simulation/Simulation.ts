/**
 * One seed, from its beginning to its end: groups of requests that run at the same time, the gate that the dice open, and a
 * look at everything after each group. A failure tells the seed and all that was done.
 */
import { Cause, Effect, Exit, FiberSet } from "effect"
import { SqlClient } from "effect/sql"
import { checkCatalog, checkSurroundings, surroundingsAfter } from "./Catalog.ts"
import { checkStray, Memory } from "./Checks.ts"
import { Clients } from "./Clients.ts"
import { type Arena, Cluster } from "./Cluster.ts"
import { Dice } from "./Dice.ts"
import type { Era } from "./Episode.ts"
import { fateOf } from "./Fate.ts"
import { Gate } from "./Gate.ts"
import { checkLimits } from "./Limits.ts"
import { happenings } from "./LockedJournal.ts"
import { type Plan, planOf, type Verb } from "./Plan.ts"
import { Replay } from "./Replay.ts"
import { look, type Stored } from "./Rows.ts"
import { Digest, type Step, tell } from "./Story.ts"
import { expectedTally, type Tally } from "./Tally.ts"
import { isOfLicense, type Order } from "./Verbs.ts"
import { by, told, Violation, violation } from "./Violation.ts"
import { beginning, furnish } from "./World.ts"

export interface Options {
  readonly seed: number
  /** Groups of requests. */
  readonly steps: number
  /** How many statements and transactions the database works on at a time. Beyond 1 a seed is no longer one run. */
  readonly overlap?: number
}

/** What a seed came to. */
interface Result {
  readonly seed: number
  readonly requests: number
  /** How often each command, answer and fault took place. */
  readonly tally: Tally
  /** All that was asked, answered and let through the gate, step by step. */
  readonly story: () => string
  /** The same for two runs in which the same happened. */
  readonly digest: string
  /** What failed, and how it came to it. */
  readonly failure: string | undefined
}

class Run {
  readonly steps: Array<Step> = []
  readonly plan: Plan
  readonly gate: Gate
  readonly cluster: Cluster
  private readonly clients: Clients
  private readonly dice: Dice
  private readonly memory = new Memory()
  readonly tally: Tally
  readonly digest = new Digest()
  private stored: Stored
  /** Whether anything may go wrong. */
  isRough = true

  constructor(
    plan: Plan,
    dice: Dice,
    stored: Stored,
    make: (isRough: () => boolean, tally: Tally) => readonly [Gate, Cluster]
  ) {
    this.plan = plan
    this.tally = expectedTally()
    this.dice = dice
    this.stored = stored
    this.clients = new Clients(plan, dice.fork())
    ;[this.gate, this.cluster] = make(() => this.isRough, this.tally)
    this.gate.setTime(beginning)
  }

  readonly step = Effect.fnUntraced({ self: this }, function* (number: number) {
    const { cluster, dice, gate, plan } = this
    if (dice.chance(plan.leaps.before)) {
      this.leap()
      this.tally.count("time leaps between steps")
    }
    const step: Step = { number, nows: this.clocks, orders: this.draw(), from: gate.trace.length, outcomes: new Map() }
    this.steps.push(step)
    if (step.nows.length > 1) this.tally.count("nodes have clocks apart")
    const isLeaping = dice.chance(plan.leaps.within)
    let hasLeapt = false
    const leap = () => {
      if (!isLeaping || hasLeapt || !dice.chance(0.2)) return
      hasLeapt = true
      this.leap()
      step.nows.push(...this.clocks)
      this.tally.count("time leaps within a step")
      if (gate.isLocking()) this.tally.count(happenings.leaps)
    }
    cluster.isOn = this.isRough
    step.outcomes = yield* cluster.ask(step.orders, leap)
    const stored = yield* look(this.memory.last)
    this.digest.add(step, gate.trace.slice(step.from), stored)
    this.tally.countStep(step.orders, step.outcomes)
    this.check(step, stored)
    this.stored = stored
  })

  /** What the nodes' clocks show. */
  private get clocks(): Array<number> {
    const { ahead, nodes } = this.plan
    return Array.from(new Set(ahead.slice(0, nodes)), (millis) => this.gate.now + millis)
  }

  private leap(): void {
    const before = this.gate.now
    this.gate.setTime(this.clients.leap(this.stored, before))
    if (this.gate.now < before) this.tally.count("clock steps back")
  }

  private draw(): ReadonlyArray<Order> {
    const { dice, plan } = this
    const only: ReadonlyArray<Verb> = this.isRough && dice.chance(0.3) ? [dice.weighted(plan.verbs)] : []
    const count = dice.between(1, plan.groupMax)
    const drawn = Array.from({ length: count }, () => this.clients.next(this.stored, this.gate.now, only))
    const seen = new Set<string>()
    const isFirst = (what: string) => !seen.has(what) && seen.add(what) !== undefined
    return drawn.flatMap((order) => {
      const { node, request, scope, verb } = order
      // A node runs one pass of a sweep at a time.
      if (verb.startsWith("sweep") && !isFirst(`${verb} ${node}`)) return []
      if (scope === undefined) return [order]
      // A key whose answer was kept is answered from there, and a node lets in one request for a key at a time.
      return [this.stored.kept.has(scope) || !isFirst(`${scope} ${node}`) ? { ...order, scope: request } : order]
    })
  }

  private check(step: Step, stored: Stored): void {
    const { orders, outcomes } = step
    const isTroubled =
      this.cluster.troubled ||
      this.gate.trace.slice(step.from).some((line) => / (lost|serial|dead|ref|cut|un)/.test(line))
    for (const { request } of orders) {
      const outcome = outcomes.get(request)
      if (outcome === undefined) violation(`${request} has no answer`)
      if (outcome?.kind === "unknown" && !isTroubled)
        violation(`${request} failed though nothing went wrong: ${outcome.why}`)
    }
    this.memory.check(stored, step)
    by("history", () => checkStray(step, stored))
    const eras = by("catalog", () => this.eras(stored))
    by("limits", () => checkLimits(this.stored, stored, eras))
    by("catalog", () => {
      checkSurroundings(stored, eras)
      checkCatalog(step, stored, eras)
    })
    for (const before of this.stored.licenses.values()) {
      const mine = orders.filter((order) => isOfLicense(order) && order.subject === before.id)
      const others = orders.length - orders.filter(isOfLicense).length
      const isContended = mine.length + others > 1
      const episode = { before, stored, eras, nows: step.nows, orders: mine, outcomes, isContended }
      by("history", () => new Replay(episode).run())
    }
  }

  /** All that the surroundings were in the step; the events must tell what became of them. */
  private eras(stored: Stored): ReadonlyArray<Era> {
    const all: Array<Era> = [{ since: 0, around: this.stored.around }]
    for (const event of stored.events) {
      const around = surroundingsAfter(all.at(-1)!.around, event)
      if (around !== undefined) all.push({ since: event.sequence, around })
    }
    return all
  }

  /** All that was done, for whoever has to understand it. */
  story(): string {
    const { trace } = this.gate
    return this.steps
      .map((step, index) => tell(step, trace.slice(step.from, this.steps[index + 1]?.from ?? trace.length)))
      .join("\n")
  }
}

/** Runs one seed. Its last two steps are quiet ones: whatever happened, the nodes must be well again. */
export const simulate = Effect.fnUntraced(function* (arena: Arena, { seed, steps, overlap = 1 }: Options) {
  const dice = new Dice(seed)
  const plan = planOf(dice)
  const scope = yield* Effect.scope
  const run = yield* Effect.provideService(
    SqlClient.SqlClient,
    arena.side
  )(
    Effect.gen(function* () {
      yield* furnish(plan, dice.fork())
      const fork = yield* FiberSet.makeRuntime<never>()
      return new Run(plan, dice.fork(), yield* look({ event: 0, usage: 0 }), (isRough, tally) => {
        const gate = new Gate(scope, dice.fork(), fateOf(plan, dice.fork(), isRough), tally.count)
        return [gate, new Cluster(arena, overlap, plan, gate, dice.fork(), fork, scope)]
      })
    })
  )
  const exit = yield* Effect.gen(function* () {
    yield* run.cluster.start
    for (let number = 1; number <= steps; number++) {
      run.isRough = number <= steps - 2
      yield* run.step(number)
    }
  }).pipe(Effect.provideService(SqlClient.SqlClient, arena.side), Effect.ensuring(run.cluster.stop), Effect.exit)
  return {
    seed,
    requests: run.steps.reduce((sum, { orders }) => sum + orders.length, 0),
    tally: run.tally,
    story: () => run.story(),
    digest: run.digest.value,
    failure: Exit.isSuccess(exit) ? undefined : report(seed, steps, run, exit.cause)
  } satisfies Result as Result
}, Effect.scoped)

const report = (seed: number, steps: number, run: Run, cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  const what = error instanceof Violation ? `${error.checker}: ${error.message}` : Cause.pretty(cause)
  return [
    `seed ${seed}, step ${run.steps.at(-1)?.number}, ${what}`,
    `  plan: ${told(run.plan)}`,
    run.story(),
    `Again: npm run simulate -- --seed ${seed} --steps ${steps}`
  ].join("\n")
}
