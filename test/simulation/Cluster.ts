/** The nodes, what is asked of them, and what happens to them while they are at it. */
import { Cause, Effect, Exit, Predicate, type Scope } from "effect"
import type { SqlClient } from "effect/sql"
import { isRefusal } from "../../src/api/Failure.ts"
import { RequestContext } from "../../src/api/RequestContext.ts"
import { StoredResponse, type StoredResponseRow } from "../../src/api/StoredResponse.ts"
import { type Actor, CurrentActor } from "../../src/auth/CurrentActor.ts"
import { lockedOutcomes } from "./LockedJournal.ts"
import { makeNode, type Node, type NodePool } from "./Node.ts"
import { type Call, operations } from "./Operations.ts"
import type { Outcome } from "./Outcome.ts"
import type { Plan } from "./Plan.ts"
import type { RandomSource } from "./RandomSource.ts"
import type { Scheduler } from "./Scheduler.ts"
import { by, show, violation } from "./Violation.ts"

/** Turns of a group of requests: many times what any has taken. */
const turnsMax = 20_000

/** Where a simulation takes place: pools for its nodes, and what looks at the database past all nodes. */
export interface Pools {
  readonly nodes: ReadonlyArray<NodePool>
  readonly observer: SqlClient.SqlClient
}

interface Asked {
  readonly call: Call
  readonly node: Node
}

export class Cluster {
  private readonly pools: Pools
  private readonly overlap: number
  private readonly plan: Plan
  private readonly scheduler: Scheduler
  private readonly random: RandomSource
  private readonly fork: (effect: Effect.Effect<unknown>) => unknown
  private readonly scope: Scope.Scope
  private nodes: Array<Node> = []
  private made = 0
  private readonly abandoned: Array<Node> = []
  private closing = 0
  private readonly asked = new Map<string, Asked>()
  outcomes = new Map<string, Outcome>()
  /** Whether something went wrong in this step: only then may an answer be missing. */
  hasFaults = false

  /** `overlap` is how many statements and transactions the database works on at a time. 1: the seed alone decides who is first. */
  constructor(
    pools: Pools,
    overlap: number,
    plan: Plan,
    scheduler: Scheduler,
    random: RandomSource,
    fork: Cluster["fork"],
    scope: Scope.Scope
  ) {
    this.pools = pools
    this.overlap = overlap
    this.plan = plan
    this.scheduler = scheduler
    this.random = random
    this.fork = fork
    this.scope = scope
  }

  private readonly make = (pool: NodePool) =>
    makeNode(
      { scheduler: this.scheduler, terminate: this.terminate },
      pool,
      `${pool.name}.${++this.made}`,
      this.plan.attemptsFree,
      this.plan.ahead[this.pools.nodes.indexOf(pool)]!
    )

  readonly start = Effect.gen({ self: this }, function* () {
    for (const pool of this.pools.nodes.slice(0, this.plan.nodes)) this.nodes.push(yield* this.make(pool))
  })

  readonly stop = Effect.suspend(() => Effect.forEach([...this.nodes, ...this.abandoned], ({ close }) => close))

  /** Waits until the server has ended a process of its own. */
  private readonly terminate = (pid: number) =>
    Effect.orDie(Effect.asVoid(this.pools.observer`SELECT pg_terminate_backend(${pid}, 5000)`))

  /** Asks all of it at the same time, and waits until nothing is under way any more. */
  readonly ask = Effect.fnUntraced({ self: this }, function* (calls: ReadonlyArray<Call>, leap: () => void) {
    this.outcomes = new Map()
    this.hasFaults = false
    for (const call of calls) {
      const node = this.nodes[call.node]!
      this.asked.set(call.request, { call, node })
      this.fork(Effect.map(perform(node, call), (outcome) => this.answered(call, outcome)))
    }
    yield* this.drive(leap)
    yield* Effect.forEach(this.abandoned.splice(0), ({ close }) => close)
    return this.outcomes
  })

  private answered(call: Call, outcome: Outcome): void {
    if (this.asked.delete(call.request)) this.outcomes.set(call.request, outcome)
    this.scheduler.move()
  }

  /** Lets one after the other through the gate until all is done. `leap` may move time while something is under way. */
  private readonly drive = Effect.fnUntraced({ self: this }, function* (leap: () => void) {
    const { scheduler } = this
    const isMoving = () => scheduler.underway > 0 || scheduler.attempts.returning.length > 0 || this.closing > 0
    for (let turn = 0; turn < turnsMax; turn++) {
      yield* scheduler.calm
      if (!isMoving() && scheduler.waiting.length === 0 && this.asked.size === 0) return
      if (isMoving() && !(yield* this.mayGoOn)) {
        if (!scheduler.isHolding) yield* scheduler.movement
      } else if (scheduler.waiting.length > 0) {
        yield* this.checkSequences
        if (yield* this.injectNodeFault) continue
        leap()
        scheduler.release()
      } else if (!scheduler.wakeShort())
        return violation(`requests without an answer: ${Array.from(this.asked.keys())}`)
    }
    violation("the requests do not come to an end")
  })

  /** Whether another may go on beside what is under way, or has to: that may wait for locks of those who are held at the gate. */
  private readonly mayGoOn = Effect.gen({ self: this }, function* () {
    const { isHolding, underway, waiting } = this.scheduler
    if (waiting.length === 0) return false
    if (underway > 0 && underway < this.overlap) return true
    if (!isHolding || underway === 0) return false
    // Asks the lock table: what pg_stat_activity says of waiting lags behind.
    const [row] = yield* Effect.orDie(this.pools.observer<{ readonly blocked: number }>`
      SELECT count(*) AS blocked FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock' AND pg_blocking_pids(pid) <> '{}'`)
    const isBlocked = this.scheduler.underway === underway && row!.blocked >= underway
    if (isBlocked) this.scheduler.count("transaction waits for a lock")
    return isBlocked
  })

  /** Whoever reads at any moment sees sequences without a gap: none is taken before those below it can be seen. */
  private readonly checkSequences = Effect.gen({ self: this }, function* () {
    const [seen] = yield* Effect.orDie(this.pools.observer<{ readonly [what: string]: number }>`
      SELECT last, (SELECT count(*) FROM events) AS events, (SELECT count(*) FROM webhook_deliveries) AS deliveries,
        (SELECT count(*) FROM event_log) + (SELECT count(*) FROM usage_ledger WHERE action = 'consume') AS rows,
        ledger_last, (SELECT count(*) FROM usage_ledger) AS entries FROM event_sequence`)
    const { deliveries, entries, events, last, ledger_last, rows } = seen!
    by("sequences", () => {
      if (events !== last || rows !== last || deliveries !== last || entries !== ledger_last)
        violation(`a reader in the middle of it sees ${show(seen)}`)
    })
  })

  private readonly injectNodeFault = Effect.gen({ self: this }, function* () {
    const { abandoned, cutOff, stopped } = this.plan.nodeFaults
    if (this.asked.size === 0 || !this.isOn) return false
    const index = this.random.between(0, this.nodes.length - 1)
    const isCutOff = this.random.chance(cutOff)
    const isStopped = this.random.chance(stopped)
    const isAbandoned = this.random.chance(abandoned)
    if (isCutOff) yield* this.cutOff(this.nodes[index]!)
    if (isStopped || isAbandoned) yield* this.replace(index, isStopped)
    return isCutOff || isStopped || isAbandoned
  })

  /** Whether nodes may come to harm. */
  isOn = true

  /** Breaks all connections of a node. */
  private readonly cutOff = (node: Node) =>
    Effect.suspend(() => {
      this.scheduler.trace.push(`${node.name} is cut off`)
      this.scheduler.count("node cut off from the database")
      this.hasFaults = true
      return Effect.orDie(this.pools.observer`
        SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = ${node.pool.name}`)
    })

  /** Puts another node in the place of one, which is stopped, or goes on though everybody takes it for dead. */
  private readonly replace = Effect.fnUntraced({ self: this }, function* (index: number, isStopped: boolean) {
    const node = this.nodes[index]!
    this.scheduler.trace.push(`${node.name} is ${isStopped ? "stopped" : "taken for dead"}`)
    this.scheduler.count(isStopped ? "node dies" : "node taken for dead lives on")
    if (this.scheduler.isLocking(node.name))
      this.scheduler.count(isStopped ? lockedOutcomes.dies : lockedOutcomes.livesOn)
    for (const { call, node: askedNode } of Array.from(this.asked.values())) {
      if (askedNode === node) this.answered(call, { kind: "unknown", why: "the node is gone" })
    }
    this.hasFaults = true
    this.nodes[index] = yield* this.make(node.pool)
    if (!isStopped) {
      this.abandoned.push(node)
      return
    }
    this.closing++
    this.scheduler.attempts.forget(node.name)
    const closed = Effect.sync(() => {
      this.closing--
      this.scheduler.move()
    })
    yield* Effect.forkIn(Effect.andThen(node.close, closed), this.scope)
  })
}

/** Who asks for usage: the license. */
const actorOf = ({ subject, operation }: Call): Actor =>
  operation === "consume"
    ? { actor_type: "license", actor_id: subject }
    : { actor_type: "api_key", actor_id: "key_simulated" }

/** Where an order comes from; of every other one, nobody knows. */
export const addressOf = ({ request }: Call): string | undefined =>
  /[02468]$/.test(request) ? undefined : `192.0.2.${request.length}`

/** As the middleware for Idempotency-Key does it: a change that was committed is answered as it was kept. */
const perform = (node: Node, call: Call): Effect.Effect<Outcome> => {
  let drafted: unknown
  let isDrafted = false
  let isCommitted = false
  const keeper = {
    rowOf: (result: unknown) =>
      Effect.sync((): StoredResponseRow => {
        drafted = result
        isDrafted = true
        const body = new Uint8Array()
        const scope = Buffer.from(call.scope ?? "")
        return {
          scope,
          body_hash: body,
          status: 200,
          content_type: undefined,
          body,
          sealed: false,
          expires_at: undefined,
          created_at: 0
        }
      }),
    committed: () => {
      isCommitted = true
    }
  }
  return node.within(operations[call.operation].ask(call)).pipe(
    Effect.provideService(RequestContext, { requestId: call.request, clientAddress: addressOf(call) }),
    Effect.provideService(CurrentActor, actorOf(call)),
    Effect.provideService(StoredResponse, call.scope === undefined ? undefined : keeper),
    Effect.exit,
    Effect.map((exit) => (isCommitted && isDrafted ? { kind: "accepted", reply: drafted } : outcomeOf(exit)))
  )
}

/** The innermost message is the one that says what it was. */
const reasonOf = (error: unknown): string =>
  Predicate.hasProperty(error, "cause") && error.cause !== undefined ? reasonOf(error.cause) : String(error)

const outcomeOf = (exit: Exit.Exit<unknown, unknown>): Outcome => {
  if (Exit.isSuccess(exit)) return { kind: "accepted", reply: exit.value }
  const error = Cause.squash(exit.cause)
  return isRefusal(error) ? { kind: "refused", code: error.code } : { kind: "unknown", why: reasonOf(error) }
}
