/** Every worker of the service, one line each, with its schedule. */
import * as NodeDns from "@effect/platform-node/NodeDns"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import { ResponseRetention } from "./access/idempotency/ResponseRetention.ts"
import { ClockCheck } from "./edge/system/ClockCheck.ts"
import { ActivityRetention } from "./insight/activities/ActivityRetention.ts"
import { EventTimeIndex } from "./insight/activities/EventTimeIndex.ts"
import { Refusals } from "./insight/activities/Refusals.ts"
import { OpsCounts } from "./insight/ops/Counts.ts"
import { Nodes } from "./insight/ops/Nodes.ts"
import { exportWorker } from "./insight/reports/exports/Exports.ts"
import { ExportWorker } from "./insight/reports/exports/ExportWorker.ts"
import { ReportsDatabase } from "./insight/reports/model/ReportsDatabase.ts"
import { OverviewCounts } from "./insight/reports/overview/OverviewCounts.ts"
import { OverviewSamples } from "./insight/reports/overview/OverviewSamples.ts"
import { UsageRollup } from "./insight/reports/usage/UsageRollup.ts"
import { EventLog } from "./ledger/events/EventLog.ts"
import { Mail } from "./ledger/mail/Mail.ts"
import { MailTemplates } from "./ledger/mail/MailTemplates.ts"
import { MailWorker } from "./ledger/mail/MailWorker.ts"
import { Smtp } from "./ledger/mail/Smtp.ts"
import { Partitions } from "./ledger/partitions/Partitions.ts"
import { Delivery } from "./ledger/webhooks/Delivery.ts"
import { Addresses } from "./ledger/webhooks/DeliveryAddress.ts"
import { DeliveryRetention } from "./ledger/webhooks/DeliveryRetention.ts"
import { EndpointCache } from "./ledger/webhooks/EndpointCache.ts"
import { Sender } from "./ledger/webhooks/Sender.ts"
import { bulkWorker } from "./licensing/bulk/BulkJobs.ts"
import { BulkWorker } from "./licensing/bulk/BulkWorker.ts"
import { Journal } from "./licensing/engine/Journal.ts"
import { JournalRetention } from "./licensing/engine/JournalRetention.ts"
import { LicenseLookups } from "./licensing/lookups/LicenseLookups.ts"
import { LicenseStore } from "./licensing/lookups/LicenseStore.ts"
import { PortalSessions } from "./licensing/portal/PortalSessions.ts"
import { Validations } from "./licensing/runtime/Validations.ts"
import { ExpirySweep } from "./licensing/sweeps/ExpirySweep.ts"
import { FeatureExpirySweep } from "./licensing/sweeps/FeatureExpirySweep.ts"
import { HeartbeatSweep } from "./licensing/sweeps/HeartbeatSweep.ts"
import { LeaseSweep } from "./licensing/sweeps/LeaseSweep.ts"
import { PeriodSweep } from "./licensing/sweeps/PeriodSweep.ts"
import { Settings } from "./platform/config/Config.ts"
import { Workers, wheneverOpened } from "./platform/workers/Workers.ts"
import { Erasures, erasureWorker } from "./vendor/customers/erasure/Erasures.ts"

const supervised = Layer.effectDiscard(
  Effect.gen(function* () {
    const { supervise, wake } = yield* Workers
    const { sweepSeconds } = yield* Settings
    const every = `${sweepSeconds} seconds` as const
    yield* supervise({ name: "expiry-sweep", every, pass: (yield* ExpirySweep).pass })
    yield* supervise({ name: "feature-expiry-sweep", every, pass: (yield* FeatureExpirySweep).pass })
    yield* supervise({ name: "period-sweep", every, pass: (yield* PeriodSweep).pass })
    yield* supervise({ name: "lease-sweep", every, pass: (yield* LeaseSweep).pass })
    yield* supervise({ name: "heartbeat-sweep", every, pass: (yield* HeartbeatSweep).pass })
    const { entriesWaiting, numberingPass } = yield* EventLog
    // This node's own entries wake the worker. The interval finds entries of a node that has died.
    yield* supervise({ name: "event-numbering", every: "1 second", pass: numberingPass })
    yield* Effect.forkScoped(wheneverOpened(entriesWaiting, wake("event-numbering")))
    const delivery = yield* Delivery
    // This node's own events wake the worker. The interval finds deliveries of other nodes' events, and retries.
    yield* supervise({ name: "webhook-delivery", every: "500 millis", pass: delivery.pass })
    yield* Effect.forkScoped(delivery.passWhenQueued(wake("webhook-delivery")))
    yield* supervise({ name: "mail", every: "1 second", pass: (yield* MailWorker).pass })
    // An export requested on this node wakes the worker. The interval finds exports requested on other nodes.
    yield* supervise({ name: exportWorker, every: "5 seconds", pass: (yield* ExportWorker).pass })
    // The same of bulk jobs.
    yield* supervise({ name: bulkWorker, every: "5 seconds", pass: (yield* BulkWorker).pass })
    // A usage summary scans the ledger rows since the last pass: with this interval at most some ten thousand rows.
    yield* supervise({ name: "usage-rollup", every: "5 seconds", pass: (yield* UsageRollup).pass })
    // The overview adds what these have not counted yet.
    yield* supervise({ name: "overview-counts", every: "5 seconds", pass: (yield* OverviewCounts).pass })
    yield* supervise({ name: "overview-samples", every: "1 minute", pass: (yield* OverviewSamples).pass })
    const refusals = yield* Refusals
    // A large buffer wakes the worker; otherwise the feed contains a refusal within a second.
    yield* supervise({ name: "refusals", every: "1 second", pass: refusals.pass })
    yield* Effect.forkScoped(refusals.passWhenLarge(wake("refusals")))
    yield* supervise({ name: "validations", every: "5 seconds", pass: (yield* Validations).pass })
    yield* supervise({ name: "event-spans", every: "10 seconds", pass: (yield* EventTimeIndex).pass })
    // A request wakes it. The interval finds erasures that a request or another node has not finished.
    yield* supervise({ name: erasureWorker, every: "10 seconds", pass: (yield* Erasures).pass })
    yield* supervise({ name: "partitions", every: "1 minute", pass: (yield* Partitions).pass })
    yield* supervise({ name: "activity-retention", every: "1 hour", pass: (yield* ActivityRetention).pass })
    yield* supervise({ name: "counts", every: "1 minute", pass: (yield* OpsCounts).count })
    yield* supervise({ name: "nodes", every: "5 seconds", pass: (yield* Nodes).pass })
    yield* supervise({ name: "clock-check", every: "1 minute", pass: (yield* ClockCheck).pass })
    yield* supervise({ name: "idempotency-retention", every: "1 hour", pass: (yield* ResponseRetention).pass })
    yield* supervise({ name: "portal-retention", every: "1 hour", pass: (yield* PortalSessions).pass })
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
  Erasures.layer,
  OverviewCounts.layer,
  OverviewSamples.layer,
  ExportWorker.layer.pipe(Layer.provide(ReportsDatabase.layer)),
  OpsCounts.layer,
  UsageRollup.layer
)

const webhooks = Layer.mergeAll(
  Delivery.layer.pipe(Layer.provide([Sender.layer, EndpointCache.layer]), Layer.provide(Addresses.layer)),
  DeliveryRetention.layer
).pipe(Layer.provide(NodeDns.layer))

const mail = MailWorker.layer.pipe(
  Layer.provide([Smtp.layer, MailTemplates.layer.pipe(Layer.provide(NodeServices.layer))])
)

/** Starts all workers as soon as it is built, and provides their status. */
export const layer = supervised.pipe(
  Layer.provide([
    ResponseRetention.layer,
    PortalSessions.layer,
    ExpirySweep.layer,
    FeatureExpirySweep.layer,
    PeriodSweep.layer,
    LeaseSweep.layer,
    HeartbeatSweep.layer,
    activities,
    // The engine is the one of the requests: layers are built once.
    BulkWorker.layer.pipe(Layer.provide([Journal.layer, LicenseStore.layer, LicenseLookups.layer])),
    Nodes.layer.pipe(Layer.provide(Journal.layer)),
    JournalRetention.layer,
    Partitions.layer,
    ClockCheck.layer,
    operations,
    webhooks,
    mail
  ]),
  Layer.provide(Mail.layer),
  Layer.provideMerge(Workers.layer)
)
