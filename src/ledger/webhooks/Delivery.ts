/**
 * Delivers events to webhook endpoints, at least once each. A pass claims due deliveries and starts an attempt for
 * each. Outcomes are written in batches. If a node crashes, its leases expire and another node retries with the same
 * delivery id: no delivery is lost, and a receiver may get one twice.
 */
import { Clock, Context, Effect, FiberSet, Layer, Random, Result, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { CurrentActor } from "../../access/CurrentActor.ts"
import { Settings } from "../../platform/config/Config.ts"
import { makeBatcher } from "../../platform/postgres/driver/Batcher.ts"
import { retryTransaction } from "../../platform/postgres/driver/Transactions.ts"
import { nextRevision } from "../../platform/postgres/queries/Revision.ts"
import { LoadStatistics, makeUtilization } from "../../platform/telemetry/LoadStatistics.ts"
import { Traces } from "../../platform/telemetry/Traces.ts"
import { wheneverOpened } from "../../platform/workers/Workers.ts"
import { subscriptionsChanged } from "../events/DeliveryQueue.ts"
import { EventLog } from "../events/EventLog.ts"
import { ConcurrencyLimits } from "./ConcurrencyLimits.ts"
import * as Rows from "./DeliveryRows.ts"
import { inDeliverySpan } from "./DeliverySpan.ts"
import { type CachedEndpoint, EndpointCache } from "./EndpointCache.ts"
import { bodyOf, deliveryId, headersOf } from "./Message.ts"
import { delayAfter, exhaustedMax, retryAfterMillis } from "./RetrySchedule.ts"
import { type EndpointResponse, Sender } from "./Sender.ts"
import { type LoadSample, pauseMillisAfter } from "./Throttle.ts"

/** Longer than an attempt, including recording its result. The deliveries of a crashed node wait this long. */
const leaseMillis = 30_000
/** Claimed deliveries without a written outcome. Limited, because outcomes must be written before their leases end. */
const claimedMax = 2_048
/** Outcomes in one statement. */
const outcomesMax = 512

interface ClaimedDelivery {
  readonly endpoint_id: string
  readonly sequence: number
  readonly leased_until: number
  /** Earlier attempts. */
  readonly attempts: number
}

export class Delivery extends Context.Service<
  Delivery,
  {
    /** Claims and starts due deliveries, without waiting for receivers. */
    readonly pass: Effect.Effect<void>
    /** Runs the given pass each time this node has queued deliveries. */
    passWhenQueued(pass: Effect.Effect<void>): Effect.Effect<never>
  }
>()("licensing/ledger/webhooks/Delivery") {
  static readonly layer = Layer.effect(
    Delivery,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { deliveriesQueued } = yield* EventLog
      const endpoints = yield* EndpointCache
      const limits = new ConcurrencyLimits()
      const inProgress = new Map<string, ClaimedDelivery>()
      /** Endpoints whose secret cannot be decrypted, and when their deliveries are claimed again. */
      const unsigned = new Map<string, number>()
      let isFull = false
      // Releases unfinished deliveries. The batches below are created later, so they end before this finalizer runs.
      yield* Effect.addFinalizer(() =>
        inProgress.size === 0 ? Effect.void : Effect.ignore(Rows.release(sql, Array.from(inProgress.values())))
      )
      const recordOutcome = yield* makeOutcomeRecorder
      const attempt = yield* makeAttempt
      const fork = yield* FiberSet.makeRuntime<never>()

      const deliver = Effect.fnUntraced(function* (
        event: Rows.ClaimedEvent,
        body: Uint8Array,
        endpoint: CachedEndpoint,
        claimed: ClaimedDelivery
      ) {
        const outcome = yield* attempt(event, body, endpoint, claimed)
        if (limits.end(claimed.endpoint_id, outcome.status === "delivered")) deliveriesQueued.openUnsafe()
        // A shutdown waits for this, so that no delivered event is sent again.
        yield* Effect.uninterruptible(recordOutcome(outcome))
        inProgress.delete(keyOf(claimed))
        if (isFull && inProgress.size < claimedMax / 2) {
          isFull = false
          deliveriesQueued.openUnsafe()
        }
      })

      const begin = (event: Rows.ClaimedEvent, cached: ReadonlyMap<string, CachedEndpoint>, leased_until: number) => {
        const body = bodyOf(event)
        for (const [index, endpoint_id] of event.endpoint_ids.entries()) {
          const claimed = { endpoint_id, sequence: event.sequence, leased_until, attempts: event.attempts[index]! }
          inProgress.set(keyOf(claimed), claimed)
          const endpoint = cached.get(endpoint_id)
          if (endpoint !== undefined && !unsigned.has(endpoint_id)) fork(deliver(event, body, endpoint, claimed))
          else {
            // The retention removes the rows of a deleted endpoint. Without a readable secret they stay due as before.
            limits.end(endpoint_id, true)
            inProgress.delete(keyOf(claimed))
          }
        }
      }

      const sampleLoad = yield* makeLoadSampler

      const pass = Effect.fn("Delivery.pass")(function* () {
        isFull = inProgress.size >= claimedMax
        if (isFull) return
        const now = yield* Clock.currentTimeMillis
        const capacity = limits.capacity
        for (const [id, until] of unsigned) {
          if (until > now) capacity.known.set(id, 0)
          else unsigned.delete(id)
        }
        const leasedUntil = now + leaseMillis
        const salt = yield* Random.nextInt
        const claimed = yield* Effect.orDie(retryTransaction(Rows.claim(sql, { now, leasedUntil, capacity, salt })))
        const endpointIds = Map.groupBy(
          claimed.flatMap((event) => event.endpoint_ids),
          (id) => id
        )
        const counts = new Map(Array.from(endpointIds, ([id, ids]) => [id, ids.length] as const))
        const revisions = new Map(
          claimed.flatMap((event) =>
            event.endpoint_ids.map((id, index) => [id, event.endpoint_revisions[index]!] as const)
          )
        )
        const cached = yield* endpoints.find(revisions)
        const unreadable = Array.from(cached.values()).filter(({ keysAt }) => keysAt(now).length === 0)
        for (const { id } of unreadable) unsigned.set(id, leasedUntil)
        limits.begin(counts, capacity)
        for (const event of claimed) begin(event, cached, leasedUntil)
        if (unreadable.length > 0) yield* Effect.orDie(retryTransaction(Rows.recordUnreadable(sql, unreadable, now)))
        const count = Array.from(counts.values()).reduce((sum, one) => sum + one, 0)
        if (count === Rows.claimMax) deliveriesQueued.openUnsafe()
        const pauseMillis = pauseMillisAfter(count, yield* sampleLoad)
        if (pauseMillis > 0) yield* Effect.sleep(pauseMillis)
      })

      return Delivery.of({
        pass: pass(),
        passWhenQueued: (pass) => wheneverOpened(deliveriesQueued, pass)
      })
    })
  )
}

const makeLoadSampler = Effect.gen(function* () {
  const statistics = yield* LoadStatistics
  const utilization = makeUtilization()
  let [requests, at] = [statistics.requests, yield* Clock.currentTimeMillis]
  return Effect.map(Clock.currentTimeMillis, (now): LoadSample => {
    const sample = { millis: now - at, requests: statistics.requests - requests, utilization: utilization() }
    requests = statistics.requests
    at = now
    return sample
  })
})

const keyOf = ({ endpoint_id, sequence }: ClaimedDelivery) => `${endpoint_id} ${sequence}`

const makeAttempt = Effect.gen(function* () {
  const sender = yield* Sender
  const { webhookRetrySeconds } = yield* Settings
  const traces = yield* Traces

  return Effect.fn("Delivery.attempt")(function* (
    event: Rows.ClaimedEvent,
    body: Uint8Array,
    endpoint: CachedEndpoint,
    { endpoint_id, sequence, leased_until, attempts }: ClaimedDelivery
  ) {
    const now = yield* Clock.currentTimeMillis
    const id = deliveryId(endpoint_id, sequence)
    const keys = endpoint.keysAt(now)
    const headers = headersOf(event, id, body, keys, Math.floor(now / 1_000))
    const { event_type: eventType, metadata } = event
    const facts = {
      requestId: metadata["request_id"],
      url: endpoint.url,
      endpointId: endpoint_id,
      eventType,
      sequence,
      attempts
    }
    const post = (context: { readonly [name: string]: string }) =>
      sender.post(endpoint.url, { ...headers, ...context }, body)
    const result = yield* Effect.result(inDeliverySpan(traces, facts, post))
    const ended_at = yield* Clock.currentTimeMillis
    const { failure, gone, wait } = classify(result, ended_at)
    const delay =
      failure === undefined ? undefined : delayAfter(webhookRetrySeconds, attempts + 1, yield* Random.next, wait)
    const status = failure === undefined ? "delivered" : delay === undefined ? "exhausted" : "pending"
    const due_at = ended_at + (delay ?? 0)
    const { revision } = endpoint
    const outcome: Rows.Outcome = {
      endpoint_id,
      sequence,
      leased_until,
      status,
      due_at,
      ended_at,
      failure,
      gone,
      revision
    }
    return outcome
  })
})

interface Classified {
  /** Absent if the delivery succeeded. */
  readonly failure: string | undefined
  readonly gone: boolean
  /** The milliseconds until a retry that the receiver requests. */
  readonly wait: number
}

const classify = (result: Result.Result<EndpointResponse, { readonly reason: string }>, now: number): Classified => {
  if (Result.isFailure(result)) return { failure: result.failure.reason, gone: false, wait: 0 }
  const { retryAfter, status } = result.success
  if (status >= 200 && status <= 299) return { failure: undefined, gone: false, wait: 0 }
  const wait = status === 429 || status === 503 ? retryAfterMillis(retryAfter, now) : 0
  return { failure: `status_${status}`, gone: status === 410, wait }
}

/** Writes outcomes in batches, and disables endpoints that are gone or fail for too long. */
const makeOutcomeRecorder = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const events = yield* EventLog

  const disable = Effect.fnUntraced(function* (
    updated: ReadonlyArray<Rows.UpdatedEndpoint>,
    outcomes: ReadonlyArray<Rows.Outcome>,
    now: number
  ) {
    const failing = updated.flatMap(({ exhausted_in_a_row, id, is_active, revision }) => {
      const isGone = outcomes.some((one) => one.gone && one.endpoint_id === id && one.revision === revision)
      if (!is_active || !(isGone || exhausted_in_a_row >= exhaustedMax)) return []
      return [{ id, reason: isGone ? ("gone" as const) : ("exhausted" as const) }]
    })
    if (failing.length === 0) return
    yield* subscriptionsChanged(sql)
    const disabled = yield* Rows.disable(sql, failing, yield* nextRevision, now)
    yield* events.append(
      ...disabled.map(({ disabled_reason, id, name }) => ({
        event_type: "webhook.disabled" as const,
        resource_type: "webhook" as const,
        resource_id: id,
        metadata: { name, reason: disabled_reason }
      }))
    )
    yield* Effect.logWarning("Disabled webhook endpoints.", { webhooks: disabled.map(({ id }) => id).join(", ") })
  })

  const write = (outcomes: ReadonlyArray<Rows.Outcome>) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      // Other outcomes disable no endpoint. For them one statement is enough, which does not wait for the disk.
      if (!outcomes.some(({ gone, status }) => gone || status === "exhausted"))
        return yield* Rows.recordOutcomes(sql, outcomes, { now, durably: false })
      return yield* sql.withTransaction(
        Effect.tap(Rows.recordOutcomes(sql, outcomes, { now, durably: true }), (updated) =>
          disable(updated, outcomes, now)
        )
      )
    }).pipe(retryTransaction)

  // A failing write is retried until the lease ends. Then the delivery is repeated.
  const writeWithRetry = (outcomes: ReadonlyArray<Rows.Outcome>) =>
    write(outcomes).pipe(
      Effect.retry(($) => $(Schedule.spaced("1 second")).pipe(Schedule.upTo({ duration: `${leaseMillis} millis` }))),
      Effect.catch((error) =>
        Effect.logWarning(
          "The outcomes of webhook deliveries cannot be written; the deliveries will be repeated.",
          error
        )
      ),
      Effect.as(outcomes.map(() => undefined)),
      Effect.provideService(CurrentActor, { actor_type: "system", actor_id: "webhook-delivery" })
    )

  return (yield* makeBatcher<Rows.Outcome, undefined>({
    name: "webhooks.record_outcomes",
    concurrency: 1,
    batchMax: outcomesMax,
    run: writeWithRetry
  })).request
})
