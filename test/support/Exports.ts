/** Report exports as tests make and read them. */
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { ExportWorker } from "../../src/reports/exports/ExportWorker.ts"
import { ReportsDatabase } from "../../src/reports/model/ReportsDatabase.ts"
import * as RehearsalClock from "../../src/telemetry/RehearsalClock.ts"
import type { Metered } from "./Metered.ts"
import { TestServer } from "./TestServer.ts"

export const exportsPath = "/api/v1/reports/exports"

export const download = (id: string, headers = {}) =>
  Effect.flatMap(TestServer, ({ send }) => send({ path: `${exportsPath}/${id}/download`, headers }))

/** A worker as a node of its own has it. */
export const makeWorker = Effect.map(
  Layer.build(Layer.fresh(ExportWorker.layer.pipe(Layer.provide(ReportsDatabase.layer)))),
  (context) => Context.get(context, ExportWorker)
)

/** Runs what a worker does at the service's time of day, so many seconds ahead. */
export const at =
  (seconds: number) =>
  <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.provide(
      work,
      RehearsalClock.layer(() => seconds * 1_000)
    )

/**
 * Rows of the ledger as if the license had used its first feature that often, without anyone waiting for it: now, or hour by hour
 * from an instant on.
 */
export const writeLedger = Effect.fnUntraced(function* (
  { license }: Metered,
  count: number,
  { amount = 1, from }: { readonly amount?: number; readonly from?: string } = {}
) {
  const sql = yield* SqlClient.SqlClient
  const occurredAt = from === undefined ? sql`now()` : sql`${from}::timestamptz + n * interval '1 hour'`
  yield* sql`
    WITH counter AS (UPDATE event_sequence SET ledger_last = ledger_last + ${count} RETURNING ledger_last - ${count} AS base)
    INSERT INTO usage_ledger (sequence, license_id, feature_id, action, event_id, amount, balance_after, actor_type, actor_id,
      request_id, occurred_at)
    SELECT base + n, a.license_id, a.feature_id, 'consume', 'row-' || n, ${amount}::int, ${amount}::int * n, 'license',
      a.license_id, 'req_test', ${occurredAt}
    FROM counter, generate_series(1, ${count}::int) AS n,
      (SELECT * FROM license_features WHERE license_id = ${license.id} ORDER BY feature_id LIMIT 1) AS a`
})
