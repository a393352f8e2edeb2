/** The nodes, the requests to them, and the faults of whole nodes. */
import { Cause, Effect, Exit, Predicate, type Scope } from "effect"
import type { SqlClient } from "effect/sql"
import { type Actor, CurrentActor } from "../../../src/access/CurrentActor.ts"
import { isRefusal } from "../../../src/contract/api/Failure.ts"
import { RequestContext } from "../../../src/contract/api/RequestContext.ts"
import { StoredResponse, type StoredResponseRow } from "../../../src/contract/api/StoredResponse.ts"
import { retireJournal } from "../../../src/licensing/engine/Fence.ts"
import { numberedLater } from "../checks/Coverage.ts"
import { numberStoredEntries } from "../checks/Rows.ts"
import { by, show, violation } from "../checks/Violation.ts"
import { type Call, operations } from "../requests/Operations.ts"
import type { Outcome } from "../requests/Outcome.ts"
import type { Plan } from "../requests/Plan.ts"
import type { RandomSource } from "../requests/RandomSource.ts"
import { lockedOutcomes } from "./LockedJournal.ts"
import { makeNode, type Node, type NodePool } from "./Node.ts"
import type { Scheduler } from "./Scheduler.ts"

/** After so many turns entries that commits have stored get their numbers, if no transaction holds the counter. */
const numberedEvery = 7

/** The most turns of a group of requests: many times what any has taken. */
const turnsMax = 20_000

/** Connection pools for the nodes, and one for the checkers, which does not pass the scheduler. */
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
  /** Whether a fault was injected in this step: only then may an answer be missing. */
  hasFaults = false

  /**
   * `overlap` is how many statements and transactions the database works on at a time. With 1 the seed alone decides
   * the order.
   */
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
    makeNode({ scheduler: this.scheduler, terminate: this.terminate }, pool, `${pool.name}.${++this.made}`, {
      ...this.plan,
      ahead: this.plan.ahead[this.pools.nodes.indexOf(pool)]!
    })

  readonly start = Effect.gen({ self: this }, function* () {
    for (const pool of this.pools.nodes.slice(0, this.plan.nodes)) this.nodes.push(yield* this.make(pool))
  })

  readonly stop = Effect.suspend(() => Effect.forEach([...this.nodes, ...this.abandoned], ({ close }) => close))

  /** Ends a backend process and waits until it has ended. */
  private readonly terminate = (pid: number) =>
    Effect.orDie(Effect.asVoid(this.pools.observer`SELECT pg_terminate_backend(${pid}, 5000)`))

  /**
   * Sends all requests at the same time and waits until nothing is under way. `failOver` may set the database back
   * while no transaction is open.
   */
  readonly ask = Effect.fnUntraced(
    { self: this },
    function* (calls: ReadonlyArray<Call>, leap: () => void, failOver: Effect.Effect<void>) {
      this.outcomes = new Map()
      this.hasFaults = false
      for (const call of calls) {
        const node = this.nodes[call.node]!
        this.asked.set(call.request, { call, node })
        this.fork(Effect.map(perform(node, call), (outcome) => this.answered(call, outcome)))
      }
      yield* this.drive(leap, failOver)
      yield* Effect.forEach(this.abandoned.splice(0), ({ close }) => close)
      return this.outcomes
    }
  )

  private answered(call: Call, outcome: Outcome): void {
    if (this.asked.delete(call.request)) this.outcomes.set(call.request, outcome)
    this.scheduler.move()
  }

  /** Releases one after the other until all is done. `leap` may change the time while something is under way. */
  private readonly drive = Effect.fnUntraced(
    { self: this },
    function* (leap: () => void, failOver: Effect.Effect<void>) {
      const { scheduler } = this
      const isMoving = () => scheduler.underway > 0 || scheduler.attempts.returning.length > 0 || this.closing > 0
      for (let turn = 0; turn < turnsMax; turn++) {
        yield* scheduler.calm
        if (!isMoving() && scheduler.waiting.length === 0 && this.asked.size === 0) return
        if (isMoving() && !(yield* this.mayGoOn)) {
          if (!scheduler.isHolding) yield* scheduler.movement
        } else if (scheduler.waiting.length > 0) {
          if (turn % numberedEvery === 0) yield* this.numberEntries
          yield* this.checkSequences
          if (yield* this.injectNodeFault) continue
          leap()
          if (!isMoving() && !scheduler.isHolding) yield* Effect.andThen(failOver, this.retireEpochs)
          scheduler.release()
        } else if (!scheduler.wakeShort())
          return violation(`requests without an answer: ${Array.from(this.asked.keys())}`)
      }
      violation("the requests do not come to an end")
    }
  )

  /**
   * Another node retires the epochs of all nodes: each decides again what it has not committed. No transaction is open.
   */
  private readonly retireEpochs = Effect.suspend(() => {
    if (this.plan.retired === 0 || !this.isOn || !this.random.chance(this.plan.retired)) return Effect.void
    this.scheduler.trace.push("all epochs are retired")
    this.scheduler.count("epoch retired by another node")
    const journals = this.pools.observer<{ readonly id: string }>`SELECT id FROM journals ORDER BY id`
    return Effect.orDie(
      Effect.flatMap(journals, (rows) =>
        Effect.forEach(rows, ({ id }) => retireJournal(this.pools.observer, id, this.scheduler.now), { discard: true })
      )
    )
  })

  /**
   * Whether another may be released beside what is under way, or must be because that waits for the locks of held
   * transactions.
   */
  private readonly mayGoOn = Effect.gen({ self: this }, function* () {
    const { isHolding, underway, waiting } = this.scheduler
    if (waiting.length === 0) return false
    if (underway > 0 && underway < this.overlap) return true
    if (!isHolding || underway === 0) return false
    // Reads the lock table, because pg_stat_activity lags behind.
    const [row] = yield* Effect.orDie(this.pools.observer<{ readonly blocked: number }>`
      SELECT count(*) AS blocked FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock' AND pg_blocking_pids(pid) <> '{}'`)
    const isBlocked = this.scheduler.underway === underway && row!.blocked >= underway
    if (isBlocked) this.scheduler.count("transaction waits for a lock")
    return isBlocked
  })

  private readonly numberEntries = Effect.gen({ self: this }, function* () {
    const numbered = yield* Effect.orDie(numberStoredEntries(this.pools.observer))
    if (numbered.length > 0) this.scheduler.count(numberedLater)
  })

  /** A reader sees sequences without a gap at any time: no number becomes visible before all lower ones. */
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

  /** Whether faults of nodes are injected. */
  isOn = true

  /** Ends all connections of a node. */
  private readonly cutOff = (node: Node) =>
    Effect.suspend(() => {
      this.scheduler.trace.push(`${node.name} is cut off`)
      this.scheduler.count("node cut off from the database")
      this.hasFaults = true
      return Effect.orDie(this.pools.observer`
        SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = ${node.pool.name}`)
    })

  /** Replaces a node, which is stopped or continues although it is presumed dead. */
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

/** Consumptions are requested by the license itself. */
const actorOf = ({ subject, operation }: Call): Actor =>
  operation === "consume" || operation === "take back"
    ? { actor_type: "license", actor_id: subject }
    : { actor_type: "api_key", actor_id: "key_simulated" }

/** The client address of a request, known for every second one. */
export const addressOf = ({ request }: Call): string | undefined =>
  /[02468]$/.test(request) ? undefined : `192.0.2.${request.length}`

/** As the Idempotency-Key middleware does: a committed change is answered with its stored response. */
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

/** The innermost message is the cause. */
const reasonOf = (error: unknown): string =>
  Predicate.hasProperty(error, "cause") && error.cause !== undefined ? reasonOf(error.cause) : String(error)

const outcomeOf = (exit: Exit.Exit<unknown, unknown>): Outcome => {
  if (Exit.isSuccess(exit)) return { kind: "accepted", reply: exit.value }
  const error = Cause.squash(exit.cause)
  return isRefusal(error) ? { kind: "refused", code: error.code } : { kind: "unknown", why: reasonOf(error) }
}
