/** The worker of bulk jobs of a new node. */
import { Context, Effect, Layer } from "effect"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { BulkWorker } from "../../../src/licensing/bulk/BulkWorker.ts"
import { Journal } from "../../../src/licensing/engine/Journal.ts"
import { LicenseLookups } from "../../../src/licensing/lookups/LicenseLookups.ts"
import { LicenseStore } from "../../../src/licensing/lookups/LicenseStore.ts"

const layerWorker = BulkWorker.layer.pipe(
  Layer.provide([Journal.layer, LicenseStore.layer, LicenseLookups.layer]),
  Layer.provide(EventLog.layer)
)

export const makeBulkWorker = Effect.map(Layer.build(Layer.fresh(layerWorker)), (node) => Context.get(node, BulkWorker))
