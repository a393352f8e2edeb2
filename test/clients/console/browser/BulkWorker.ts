/** The console of a service that carries out bulk jobs. */
import { Effect, Layer, Schedule } from "effect"
import { EventLog } from "../../../../src/ledger/events/EventLog.ts"
import type { BulkJob } from "../../../../src/licensing/bulk/BulkJob.ts"
import { BulkWorker } from "../../../../src/licensing/bulk/BulkWorker.ts"
import { Journal } from "../../../../src/licensing/engine/Journal.ts"
import { LicenseLookups } from "../../../../src/licensing/lookups/LicenseLookups.ts"
import { LicenseStore } from "../../../../src/licensing/lookups/LicenseStore.ts"
import * as RehearsalClock from "../../../../src/platform/telemetry/RehearsalClock.ts"
import { TestServer } from "../../../support/http/TestServer.ts"
import { poll } from "../../../support/rules/Poll.ts"
import { consoleLayer } from "./Browser.ts"

const worker = Layer.effectDiscard(
  Effect.flatMap(BulkWorker, ({ pass }) => Effect.forkScoped(Effect.repeat(pass, Schedule.spaced("100 millis"))))
).pipe(
  Layer.provide(BulkWorker.layer.pipe(Layer.provide([Journal.layer, LicenseStore.layer, LicenseLookups.layer]))),
  Layer.provide(EventLog.layer),
  Layer.provide(RehearsalClock.layer(() => 0))
)

export const bulkLayer = worker.pipe(Layer.provideMerge(consoleLayer))

/** Awaits that a job has ended. */
const ended = ({ id }: Pick<BulkJob, "id">) =>
  Effect.flatMap(TestServer, ({ client }) =>
    poll(client.bulkJobs.get({ params: { id } }), ({ ended_at }) => ended_at !== undefined)
  )

/** Gives all licenses of a product, or of the service, what their policies have now. Revoked ones are refused. */
export const applyPolicies = (filter: { readonly [name: string]: string }) =>
  Effect.flatMap(TestServer, ({ client }) =>
    Effect.flatMap(
      client.bulkJobs.create({
        payload: { action: "apply_policy", filter, confirm_all: true, reason: "The features of the spring release." }
      }),
      ended
    )
  )
