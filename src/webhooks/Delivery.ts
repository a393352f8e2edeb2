/**
 * Delivers events to webhook endpoints, at least once each. A pass takes what is due and starts an attempt for each; how an
 * attempt ended is written together with all that ended meanwhile. A node that dies in between leaves leases that end, and another
 * one tries again with the same delivery id: nothing is lost, and a receiver may see a delivery twice.
 */
import { Clock, Context, Effect, FiberSet, Layer, Random, Result, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { CurrentActor } from "../auth/CurrentActor.ts"
import { Settings } from "../config/Config.ts"
import { subscriptionsChanged } from "../events/DeliveryQueue.ts"
import { EventLog } from "../events/EventLog.ts"
import { makeBatcher } from "../postgres/Batcher.ts"
import { retryTransaction } from "../postgres/Transactions.ts"
import { LoadStatistics, makeUtilization } from "../telemetry/LoadStatistics.ts"
import { ConcurrencyLimits } from "./ConcurrencyLimits.ts"
import * as Rows from "./DeliveryRows.ts"
import { type CachedEndpoint, EndpointCache } from "./EndpointCache.ts"
import { bodyOf, deliveryId, headersOf } from "./Message.ts"
import { delayAfter, retryAfterMillis } from "./RetrySchedule.ts"
import { type EndpointResponse, Sender } from "./Sender.ts"
import { type LoadSample, restMillisAfter } from "./Throttle.ts"

/** Longer than an attempt takes with all that it is recorded by; what a dead node has taken waits so long. */
const leaseMillis = 30_000
/** Deliveries taken and not yet written, beyond which no more are taken: outcomes must be written before their leases end. */
const takenMax = 2_048
/** Outcomes written by one statement. */
const settledMax = 512
/** Deliveries given up in a row after which an endpoint is switched off. */
const exhaustedMax = 10

/** A delivery that this node has taken. */
interface Taken {
  readonly endpoint_id: string
  readonly sequence: number
  readonly leased_until: number
  /** Attempts that have ended before. */
  readonly attempts: number
}

export class Delivery extends Context.Service<
  Delivery,
  {
    /** Takes what is due and starts delivering it; does not wait for receivers. */
    readonly pass: Effect.Effect<void>
    /** Calls for a pass whenever there is something to take on this node. */
    calling(pass: Effect.Effect<void>): Effect.Effect<never>
  }
>()("licensing/webhooks/Delivery") {
  static readonly layer = Layer.effect(
    Delivery,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { deliveriesQueued } = yield* EventLog
      const endpoints = yield* EndpointCache
      const places = new ConcurrencyLimits()
      const underway = new Map<string, Taken>()
      let isFull = false
      // Gives back what was not finished. The statements below are built over it, so they are over before it runs.
      yield* Effect.addFinalizer(() =>
        underway.size === 0 ? Effect.void : Effect.ignore(Rows.release(sql, Array.from(underway.values())))
      )
      const settle = yield* makeSettle
      const attempt = yield* makeAttempt
      const fork = yield* FiberSet.makeRuntime<never>()

      const deliver = Effect.fnUntraced(function* (
        event: Rows.Claimed,
        body: Uint8Array,
        endpoint: CachedEndpoint,
        taken: Taken
      ) {
        const outcome = yield* attempt(event, body, endpoint, taken)
        if (places.end(taken.endpoint_id, outcome.status === "delivered")) deliveriesQueued.openUnsafe()
        // A stop waits for this: what has arrived should not be sent again by the next start.
        yield* Effect.uninterruptible(settle(outcome))
        underway.delete(keyOf(taken))
        if (isFull && underway.size < takenMax / 2) {
          isFull = false
          deliveriesQueued.openUnsafe()
        }
      })

      const begin = (event: Rows.Claimed, known: ReadonlyMap<string, CachedEndpoint>, leased_until: number) => {
        const body = bodyOf(event)
        for (const [index, endpoint_id] of event.endpoint_ids.entries()) {
          const taken = { endpoint_id, sequence: event.sequence, leased_until, attempts: event.attempts[index]! }
          underway.set(keyOf(taken), taken)
          const endpoint = known.get(endpoint_id)
          if (endpoint !== undefined) fork(deliver(event, body, endpoint, taken))
          else {
            // Deleted since: what is left of it is swept away.
            places.end(endpoint_id, true)
            underway.delete(keyOf(taken))
          }
        }
      }

      const meanwhile = yield* makeMeanwhile

      const pass = Effect.fn("Delivery.pass")(function* () {
        isFull = underway.size >= takenMax
        if (isFull) return
        const now = yield* Clock.currentTimeMillis
        const rooms = places.rooms
        const leasedUntil = now + leaseMillis
        const salt = yield* Random.nextInt
        const claimed = yield* Effect.orDie(retryTransaction(Rows.claim(sql, { now, leasedUntil, rooms, salt })))
        const found = Map.groupBy(
          claimed.flatMap((event) => event.endpoint_ids),
          (id) => id
        )
        const counts = new Map(Array.from(found, ([id, ids]) => [id, ids.length] as const))
        const revisions = new Map(
          claimed.flatMap((event) =>
            event.endpoint_ids.map((id, index) => [id, event.endpoint_revisions[index]!] as const)
          )
        )
        const known = yield* endpoints.find(revisions)
        places.begin(counts, rooms)
        for (const event of claimed) begin(event, known, leasedUntil)
        const taken = Array.from(counts.values()).reduce((sum, count) => sum + count, 0)
        if (taken === Rows.claimMax) deliveriesQueued.openUnsafe()
        const rest = restMillisAfter(taken, yield* meanwhile)
        if (rest > 0) yield* Effect.sleep(rest)
      })

      return Delivery.of({
        pass: pass(),
        calling: (pass) =>
          Effect.forever(Effect.andThen(deliveriesQueued.await, Effect.andThen(deliveriesQueued.close, pass)))
      })
    })
  )
}

/** What happened since it was last asked. */
const makeMeanwhile = Effect.gen(function* () {
  const served = yield* LoadStatistics
  const utilization = makeUtilization()
  let [requests, at] = [served.requests, yield* Clock.currentTimeMillis]
  return Effect.map(Clock.currentTimeMillis, (now): LoadSample => {
    const since = { millis: now - at, requests: served.requests - requests, utilization: utilization() }
    requests = served.requests
    at = now
    return since
  })
})

const keyOf = ({ endpoint_id, sequence }: Taken) => `${endpoint_id} ${sequence}`

/** Sends a delivery and says how that ended. */
const makeAttempt = Effect.gen(function* () {
  const sender = yield* Sender
  const { webhookRetrySeconds } = yield* Settings

  return Effect.fn("Delivery.attempt")(function* (
    event: Rows.Claimed,
    body: Uint8Array,
    endpoint: CachedEndpoint,
    { endpoint_id, sequence, leased_until, attempts }: Taken
  ) {
    const now = yield* Clock.currentTimeMillis
    const id = deliveryId(endpoint_id, sequence)
    const keys = endpoint.keysAt(now)
    const headers = headersOf(event, id, body, keys, Math.floor(now / 1_000))
    const sent = keys.length === 0 ? unsigned : sender.post(endpoint.url, headers, body)
    const result = yield* Effect.result<EndpointResponse, { readonly reason: string }, never>(sent)
    const ended_at = yield* Clock.currentTimeMillis
    const { failure, gone, wait } = judged(result, ended_at)
    const over = failure === undefined || gone
    const delay = over ? undefined : delayAfter(webhookRetrySeconds, attempts + 1, yield* Random.next, wait)
    const status = failure === undefined ? "delivered" : delay === undefined ? "exhausted" : "pending"
    const due_at = ended_at + (delay ?? 0)
    return {
      endpoint_id,
      sequence,
      leased_until,
      status,
      due_at,
      ended_at,
      failure,
      gone
    } satisfies Rows.Outcome as Rows.Outcome
  })
})

const unsigned: Effect.Effect<EndpointResponse, { readonly reason: string }> = Effect.fail({
  reason: "secret_unreadable"
})

interface Judged {
  /** Absent where the delivery has arrived. */
  readonly failure: string | undefined
  readonly gone: boolean
  /** Milliseconds that the receiver asks to wait. */
  readonly wait: number
}

const judged = (result: Result.Result<EndpointResponse, { readonly reason: string }>, now: number): Judged => {
  if (Result.isFailure(result)) return { failure: result.failure.reason, gone: false, wait: 0 }
  const { retryAfter, status } = result.success
  if (status >= 200 && status <= 299) return { failure: undefined, gone: false, wait: 0 }
  const wait = status === 429 || status === 503 ? retryAfterMillis(retryAfter, now) : 0
  return { failure: `status_${status}`, gone: status === 410, wait }
}

/** Writes outcomes, many at once, and switches off endpoints that are gone or fail for too long. */
const makeSettle = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const events = yield* EventLog

  const disable = Effect.fnUntraced(function* (
    tallied: ReadonlyArray<Rows.Tallied>,
    outcomes: ReadonlyArray<Rows.Outcome>,
    now: number
  ) {
    const gone = new Set(outcomes.filter((outcome) => outcome.gone).map(({ endpoint_id }) => endpoint_id))
    const failing = tallied
      .filter(
        ({ exhausted_in_a_row, id, is_active }) => is_active && (gone.has(id) || exhausted_in_a_row >= exhaustedMax)
      )
      .map(({ id }) => ({ id, reason: gone.has(id) ? ("gone" as const) : ("exhausted" as const) }))
    if (failing.length === 0) return
    const disabled = yield* Rows.disable(sql, failing, now)
    yield* subscriptionsChanged(sql)
    yield* events.append(
      ...disabled.map(({ disabled_reason, id, name }) => ({
        event_type: "webhook.disabled" as const,
        resource_type: "webhook" as const,
        resource_id: id,
        metadata: { name, reason: disabled_reason }
      }))
    )
    yield* Effect.logWarning("Switched off webhook endpoints.", { webhooks: disabled.map(({ id }) => id).join(", ") })
  })

  const write = (outcomes: ReadonlyArray<Rows.Outcome>) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      // Only what is given up can switch an endpoint off; all else is one statement without the disk.
      if (!outcomes.some(({ status }) => status === "exhausted"))
        return yield* Rows.settle(sql, outcomes, { now, safely: false })
      return yield* sql.withTransaction(
        Effect.tap(Rows.settle(sql, outcomes, { now, safely: true }), (tallied) => disable(tallied, outcomes, now))
      )
    }).pipe(retryTransaction)

  // What can not be written is tried again until the lease is over: then it is taken again anyway, and delivered twice.
  const patiently = (outcomes: ReadonlyArray<Rows.Outcome>) =>
    write(outcomes).pipe(
      Effect.retry(($) => $(Schedule.spaced("1 second")).pipe(Schedule.upTo({ duration: `${leaseMillis} millis` }))),
      Effect.catch((error) =>
        Effect.logWarning("How webhook deliveries ended can not be written; they are made again.", error)
      ),
      Effect.as(outcomes.map(() => undefined)),
      Effect.provideService(CurrentActor, { actor_type: "system", actor_id: "webhook-delivery" })
    )

  return (yield* makeBatcher<Rows.Outcome, undefined>({ lanes: 1, batchMax: settledMax, run: patiently })).ask
})
