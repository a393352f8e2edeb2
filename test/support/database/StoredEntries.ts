/** Entries that commits store without waiting for the event counter. */
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { Entry, NewEvent, UsageRow } from "../../../src/ledger/events/Entry.ts"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { CounterPatience } from "../../../src/ledger/events/Numbering.ts"

const at = Date.UTC(2026, 0, 1)
const actor = { actor_type: "license", actor_id: "lic_1" }

export const event = (resource_id: string, event_type: NewEvent["event_type"] = "license.activated"): Entry => ({
  ...{ event_type, resource_type: "license", resource_id, metadata: { request_id: "req_1" } },
  ...{ ...actor, ip_address: "203.0.113.9", created_at: at }
})

export const consumption = (event_id: string, more: Partial<UsageRow> = {}): UsageRow => ({
  ...{ license_id: "lic_1", feature_id: "feat_1", feature_code: "export", action: "consume", event_id },
  ...{ amount: 1, balance_after: 1, device_id: "dev_1", request_id: "req_1", occurred_at: at },
  ...{ ...actor, ...more }
})

/** The log of a node whose commits store their entries after the first, for a second of the clock. */
export const makeStoring = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const built = yield* Layer.build(Layer.fresh(EventLog.layer)).pipe(Effect.provideService(CounterPatience, 0))
  const log = Context.get(built, EventLog)
  const commit = (...entries: ReadonlyArray<Entry>) => sql.withTransaction(log.appendInCommit(entries))
  yield* commit(event("the first waits"))
  return { log, commit }
})

export const waitingCount = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return (yield* sql`SELECT FROM waiting_entries`).length
})
