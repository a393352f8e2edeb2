/** Every worker of the service, one line each, on the schedule of the settings. */
import * as NodeDns from "@effect/platform-node/NodeDns"
import { Effect, Layer } from "effect"
import { EventTimeIndex } from "./activities/EventTimeIndex.ts"
import { Refusals } from "./activities/Refusals.ts"
import { ActivityRetention } from "./activities/Retention.ts"
import { ResponseRetention } from "./auth/idempotency/ResponseRetention.ts"
import { Settings } from "./config/Config.ts"
import { JournalRetention } from "./licenses/engine/JournalRetention.ts"
import { ExpirySweep } from "./licenses/sweeps/ExpirySweep.ts"
import { HeartbeatSweep } from "./licenses/sweeps/HeartbeatSweep.ts"
import { LeaseSweep } from "./licenses/sweeps/LeaseSweep.ts"
import { OpsCounts } from "./ops/Counts.ts"
import { exportWorker } from "./reports/exports/Exports.ts"
import { ExportWorker } from "./reports/exports/ExportWorker.ts"
import { ReportsDatabase } from "./reports/model/ReportsDatabase.ts"
import { UsageRollup } from "./reports/usage/UsageRollup.ts"
import { Validations } from "./runtime/Validations.ts"
import { Addresses } from "./webhooks/Address.ts"
import { Delivery } from "./webhooks/Delivery.ts"
import { DeliveryRetention } from "./webhooks/DeliveryRetention.ts"
import { EndpointCache } from "./webhooks/EndpointCache.ts"
import { Sender } from "./webhooks/Sender.ts"
import { Workers } from "./workers/Workers.ts"

const supervised = Layer.effectDiscard(
  Effect.gen(function* () {
    const { supervise, wake } = yield* Workers
    const { sweepSeconds } = yield* Settings
    const every = `${sweepSeconds} seconds` as const
    yield* supervise({ name: "expiry-sweep", every, pass: (yield* ExpirySweep).pass })
    yield* supervise({ name: "lease-sweep", every, pass: (yield* LeaseSweep).pass })
    yield* supervise({ name: "heartbeat-sweep", every, pass: (yield* HeartbeatSweep).pass })
    const delivery = yield* Delivery
    // Deliveries of this node's own events wake the worker. The interval is for those of other nodes, and for retries.
    yield* supervise({ name: "webhook-delivery", every: "500 millis", pass: delivery.pass })
    yield* Effect.forkScoped(delivery.passWhenQueued(wake("webhook-delivery")))
    // One that is asked for on this node is called for at once; this often it looks for those of other nodes.
    yield* supervise({ name: exportWorker, every: "5 seconds", pass: (yield* ExportWorker).pass })
    // Summaries look through what has come since the last pass: this often it is at most some ten thousand rows.
    yield* supervise({ name: "usage-rollup", every: "5 seconds", pass: (yield* UsageRollup).pass })
    const refusals = yield* Refusals
    // A large buffer wakes the worker; otherwise the feed contains a refusal within a second.
    yield* supervise({ name: "refusals", every: "1 second", pass: refusals.pass })
    yield* Effect.forkScoped(refusals.passWhenLarge(wake("refusals")))
    yield* supervise({ name: "validations", every: "5 seconds", pass: (yield* Validations).pass })
    yield* supervise({ name: "event-spans", every: "10 seconds", pass: (yield* EventTimeIndex).pass })
    yield* supervise({ name: "activity-retention", every: "1 hour", pass: (yield* ActivityRetention).pass })
    yield* supervise({ name: "counts-folding", every: "1 minute", pass: (yield* OpsCounts).fold })
    yield* supervise({ name: "idempotency-retention", every: "1 hour", pass: (yield* ResponseRetention).pass })
    yield* supervise({ name: "journal-retention", every: "1 day", pass: (yield* JournalRetention).pass })
    yield* supervise({ name: "webhook-retention", every: "1 hour", pass: (yield* DeliveryRetention).pass })
  })
)

const activities = Layer.mergeAll(
  Refusals.layer.pipe(Layer.provideMerge(Validations.layer)),
  EventTimeIndex.layer,
  ActivityRetention.layer
)

const operations = Layer.mergeAll(
  ExportWorker.layer.pipe(Layer.provide(ReportsDatabase.layer)),
  OpsCounts.layer,
  UsageRollup.layer
)

const webhooks = Layer.mergeAll(
  Delivery.layer.pipe(Layer.provide([Sender.layer, EndpointCache.layer]), Layer.provide(Addresses.layer)),
  DeliveryRetention.layer
).pipe(Layer.provide(NodeDns.layer))

/** Works from the moment that it is built, and says how each worker stands. */
export const layer = supervised.pipe(
  Layer.provide([
    ResponseRetention.layer,
    ExpirySweep.layer,
    LeaseSweep.layer,
    HeartbeatSweep.layer,
    activities,
    JournalRetention.layer,
    operations,
    webhooks
  ]),
  Layer.provideMerge(Workers.layer)
)
