/**
 * Runs one seed: groups of concurrent requests, a scheduler that orders them by the random source, and the checkers
 * after each group. A failure reports the seed and the whole transcript.
 */
import { Cause, Effect, Exit, FiberSet } from "effect"
import { SqlClient } from "effect/sql"
import { catalogAfter, checkCatalogRequests, checkCatalogRows } from "./checks/Catalog.ts"
import { checkStray, Memory } from "./checks/Checks.ts"
import { type Coverage, expectedCoverage } from "./checks/Coverage.ts"
import type { CatalogPeriod } from "./checks/LicenseStep.ts"
import { checkLimits } from "./checks/Limits.ts"
import { LostValidations } from "./checks/LostValidations.ts"
import { Replay } from "./checks/Replay.ts"
import { readRows, type Stored } from "./checks/Rows.ts"
import { by, show, Violation, violation } from "./checks/Violation.ts"
import { Cluster, type Pools } from "./nodes/Cluster.ts"
import { faultPlanOf } from "./nodes/FaultPlan.ts"
import { lockedOutcomes } from "./nodes/LockedJournal.ts"
import { Scheduler } from "./nodes/Scheduler.ts"
import { promote, replicate } from "./nodes/Standby.ts"
import { Clients } from "./requests/Clients.ts"
import { insertInitialData, startTime } from "./requests/InitialData.ts"
import { type Call, isOfLicense } from "./requests/Operations.ts"
import type { Outcome } from "./requests/Outcome.ts"
import { type Operation, type Plan, planOf } from "./requests/Plan.ts"
import { RandomSource } from "./requests/RandomSource.ts"
import { Digest, describeStep, type Step } from "./Transcript.ts"

export interface Options {
  readonly seed: number
  /** Groups of requests. */
  readonly steps: number
  /** How many statements and transactions the database works on at a time. Above 1 runs of a seed may differ. */
  readonly overlap?: number
}

/** The result of a seed. */
interface Result {
  readonly seed: number
  readonly requests: number
  /** How often each command, answer and fault occurred. */
  readonly coverage: Coverage
  /** All requests, answers and trace entries, step by step. */
  readonly transcript: () => string
  /** Equal for two identical runs. */
  readonly digest: string
  /** The failure with its transcript. */
  readonly failure: string | undefined
}

const lostInFailover: Outcome = { kind: "unknown", why: "a failover" }

class Run {
  readonly steps: Array<Step> = []
  readonly plan: Plan
  readonly scheduler: Scheduler
  readonly cluster: Cluster
  private readonly clients: Clients
  private readonly random: RandomSource
  private memory = new Memory()
  /** Draws what later kinds of faults do, so that the earlier ones stay the same. */
  private readonly later: RandomSource
  private readonly lost = new LostValidations()
  /** The validation intervals of policies that required no heartbeats, so far. */
  private readonly intervals = new Set<number>()
  /** What the standby has received; undefined until the first time. */
  private standby: { readonly stored: Stored; readonly memory: Memory } | undefined
  readonly coverage: Coverage
  readonly digest = new Digest()
  private stored: Stored
  /** Whether faults are injected. */
  areFaultsEnabled = true

  constructor(
    plan: Plan,
    random: RandomSource,
    stored: Stored,
    make: (areFaultsEnabled: () => boolean, coverage: Coverage) => readonly [Scheduler, Cluster]
  ) {
    this.plan = plan
    this.coverage = expectedCoverage()
    this.random = random
    this.later = random.detached()
    this.stored = stored
    this.clients = new Clients(plan, random.fork())
    ;[this.scheduler, this.cluster] = make(() => this.areFaultsEnabled, this.coverage)
    this.scheduler.setTime(startTime)
  }

  readonly step = Effect.fnUntraced({ self: this }, function* (number: number) {
    const { cluster, random, scheduler, plan } = this
    if (plan.failovers > 0) {
      if (yield* this.failOver(plan.failovers)) this.coverage.count("failover to a standby that lags, between steps")
      else if (this.later.chance(0.4)) yield* this.replicate
    }
    if (random.chance(plan.leaps.before)) {
      this.leap()
      this.coverage.count("time leaps between steps")
    }
    const step: Step = {
      number,
      nows: this.clocks,
      calls: this.draw(),
      from: scheduler.trace.length,
      outcomes: new Map()
    }
    this.steps.push(step)
    if (step.nows.length > 1) this.coverage.count("nodes have clocks apart")
    const isLeaping = random.chance(plan.leaps.within)
    let hasLeapt = false
    const leap = () => {
      if (!isLeaping || hasLeapt || !random.chance(0.2)) return
      hasLeapt = true
      this.leap()
      step.nows.push(...this.clocks)
      this.coverage.count("time leaps within a step")
      if (scheduler.isLocking()) this.coverage.count(lockedOutcomes.leaps)
    }
    cluster.isOn = this.areFaultsEnabled
    let hasFailedOver = false
    const failOver = Effect.gen({ self: this }, function* () {
      if (hasFailedOver || !(yield* this.failOver(plan.failovers / 6))) return
      hasFailedOver = true
      cluster.hasFaults = true
      this.coverage.count("failover to a standby that lags, within a step")
    }).pipe(Effect.provideService(SqlClient.SqlClient, yield* SqlClient.SqlClient), Effect.orDie)
    step.outcomes = yield* cluster.ask(step.calls, leap, plan.failovers > 0 ? failOver : Effect.void)
    // What was answered before may be lost, and what is stored now was perhaps decided after it.
    if (hasFailedOver) this.lost.addRequested(step)
    if (hasFailedOver) step.outcomes = new Map(step.calls.map(({ request }) => [request, lostInFailover]))
    const stored = yield* readRows(this.memory.last)
    this.digest.add(step, scheduler.trace.slice(step.from), stored)
    this.coverage.countStep(step.calls, step.outcomes)
    this.check(step, stored)
    this.stored = stored
  })

  /** The standby takes over: the database is as it was at the end of an earlier step. The nodes notice nothing. */
  private readonly failOver = Effect.fnUntraced({ self: this }, function* (share: number) {
    if (!this.areFaultsEnabled || this.standby === undefined || !this.later.chance(share)) return false
    yield* promote
    this.lost.addStored(this.stored)
    this.stored = this.standby.stored
    this.memory = this.standby.memory.copy()
    this.scheduler.trace.push("the standby takes over")
    return true
  })

  /** The standby receives what is committed. Until the next time it lags. */
  private readonly replicate = Effect.gen({ self: this }, function* () {
    yield* replicate
    this.standby = { stored: this.stored, memory: this.memory.copy() }
  })

  /** The times of the nodes' clocks. */
  private get clocks(): Array<number> {
    const { ahead, nodes } = this.plan
    return Array.from(new Set(ahead.slice(0, nodes)), (millis) => this.scheduler.now + millis)
  }

  private leap(): void {
    const before = this.scheduler.now
    this.scheduler.setTime(this.clients.leap(this.stored, before))
    if (this.scheduler.now < before) this.coverage.count("clock steps back")
  }

  private draw(): ReadonlyArray<Call> {
    const { random, plan } = this
    const only: ReadonlyArray<Operation> =
      this.areFaultsEnabled && random.chance(0.3) ? [random.weighted(plan.operations)] : []
    const count = random.between(1, plan.groupMax)
    const drawn = Array.from({ length: count }, () => this.clients.next(this.stored, this.scheduler.now, only))
    const seen = new Set<string>()
    const isFirst = (what: string) => !seen.has(what) && seen.add(what) !== undefined
    return drawn.flatMap((call) => {
      const { node, request, scope, operation } = call
      // A node runs one pass of a sweep at a time.
      if (operation.startsWith("sweep") && !isFirst(`${operation} ${node}`)) return []
      if (scope === undefined) return [call]
      // A key with a stored answer is answered from it, and a node accepts one request per key at a time.
      return [this.stored.kept.has(scope) || !isFirst(`${scope} ${node}`) ? { ...call, scope: request } : call]
    })
  }

  private check(step: Step, stored: Stored): void {
    const { calls, outcomes } = step
    const hasFaults =
      this.cluster.hasFaults ||
      this.scheduler.trace.slice(step.from).some((line) => / (lost|serial|dead|ref|cut|un)/.test(line))
    for (const { request } of calls) {
      const outcome = outcomes.get(request)
      if (outcome === undefined) violation(`${request} has no answer`)
      if (outcome?.kind === "unknown" && !hasFaults)
        violation(`${request} failed though nothing went wrong: ${outcome.why}`)
    }
    this.memory.check(stored, step)
    by("history", () => checkStray(step, stored))
    const periods = by("catalog", () => this.periods(stored, step.nows))
    by("limits", () => checkLimits(this.stored, stored, periods, step.calls))
    by("catalog", () => {
      checkCatalogRows(stored, periods)
      checkCatalogRequests(step, stored, periods)
    })
    for (const { catalog } of periods)
      for (const policy of catalog.policies.values())
        if (!policy.require_heartbeat) this.intervals.add(policy.validation_interval_minutes)
    for (const before of this.stored.licenses.values()) {
      const mine = calls.filter((call) => isOfLicense(call) && call.subject === before.id)
      const others = calls.length - calls.filter(isOfLicense).length
      const isContended = mine.length + others > 1
      const licenseStep = {
        before,
        stored,
        periods,
        nows: step.nows,
        calls: mine,
        outcomes,
        isContended,
        remembered: this.lost.of(before.id),
        intervals: this.intervals
      }
      by("history", () => new Replay(licenseStep).run())
    }
  }

  /** All states of the catalog in the step; its events must give each. */
  private periods(stored: Stored, nows: ReadonlyArray<number>): ReadonlyArray<CatalogPeriod> {
    const all: Array<CatalogPeriod> = [{ since: 0, catalog: this.stored.catalog }]
    for (const event of stored.events) {
      const catalog = catalogAfter(all.at(-1)!.catalog, event, stored.catalog, nows)
      if (catalog !== undefined) all.push({ since: event.sequence, catalog })
    }
    return all
  }

  /** The transcript of the whole run. */
  transcript(): string {
    const { trace } = this.scheduler
    return this.steps
      .map((step, index) => describeStep(step, trace.slice(step.from, this.steps[index + 1]?.from ?? trace.length)))
      .join("\n")
  }
}

/** Runs one seed. Its last two steps are free of faults: the nodes must have recovered. */
export const simulate = Effect.fnUntraced(function* (pools: Pools, { seed, steps, overlap = 1 }: Options) {
  const random = new RandomSource(seed)
  const plan = planOf(random)
  const scope = yield* Effect.scope
  const run = yield* Effect.provideService(
    SqlClient.SqlClient,
    pools.observer
  )(
    Effect.gen(function* () {
      yield* insertInitialData(plan, random.fork())
      const fork = yield* FiberSet.makeRuntime<never>()
      return new Run(plan, random.fork(), yield* readRows({ event: 0, usage: 0 }), (areFaultsEnabled, coverage) => {
        const scheduler = new Scheduler(
          scope,
          random.fork(),
          faultPlanOf(plan, random.fork(), areFaultsEnabled),
          coverage.count
        )
        return [scheduler, new Cluster(pools, overlap, plan, scheduler, random.fork(), fork, scope)]
      })
    })
  )
  const exit = yield* Effect.gen(function* () {
    yield* run.cluster.start
    for (let number = 1; number <= steps; number++) {
      run.areFaultsEnabled = number <= steps - 2
      yield* run.step(number)
    }
  }).pipe(Effect.provideService(SqlClient.SqlClient, pools.observer), Effect.ensuring(run.cluster.stop), Effect.exit)
  return {
    seed,
    requests: run.steps.reduce((sum, { calls }) => sum + calls.length, 0),
    coverage: run.coverage,
    transcript: () => run.transcript(),
    digest: run.digest.value,
    failure: Exit.isSuccess(exit) ? undefined : report(seed, steps, run, exit.cause)
  } satisfies Result as Result
}, Effect.scoped)

const report = (seed: number, steps: number, run: Run, cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  const what = error instanceof Violation ? `${error.checker}: ${error.message}` : Cause.pretty(cause)
  return [
    `seed ${seed}, step ${run.steps.at(-1)?.number}, ${what}`,
    `  plan: ${show(run.plan)}`,
    run.transcript(),
    `Again: npm run simulate -- --seed ${seed} --steps ${steps}`
  ].join("\n")
}
