/** Reports and exports from a replica that has not received everything yet. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Database } from "../../../support/database/Database.ts"
import { at, exportsPath, makeWorkerOver } from "../../../support/database/Exports.ts"
import { assertRefused } from "../../../support/http/Http.ts"
import { makeMetered } from "../../../support/http/IssuedLicenses.ts"
import { startServer, TestServer } from "../../../support/http/TestServer.ts"

/** A replica that has received the tables and no row. */
const makeReplica = Effect.map(Layer.build(Layer.fresh(Database.layer)), (context) => ({
  url: Context.get(context, Database).url,
  sql: Context.get(context, SqlClient.SqlClient)
}))

layer(TestServer.layer)("A replica that lags", (it) => {
  it.effect("has no report and no export of a record that it has not received", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { customer, license, product, subscription } = yield* makeMetered
      const order = yield* client.commerce.createOrder({
        params: { id: product.id },
        payload: { external_system: "shop", external_id: "1", status: "paid", subscription_id: subscription.id }
      })
      const { url } = yield* makeReplica
      const { send } = yield* startServer({ reportsDatabaseUrl: url })
      const settled = { order_id: order.id, subscription_id: subscription.id }
      for (const [report_kind, filters] of [
        ["license-audit", { license_id: license.id }],
        ["customer-summary", { customer_id: customer.id }],
        ["subscription-settlement", { subscription_id: subscription.id }],
        ["subscription-settlement", { order_id: order.id }],
        ["subscription-settlement", settled]
      ] as const) {
        const report = yield* send({ path: `/api/v1/reports/${report_kind}?${new URLSearchParams(filters)}` })
        assertRefused(report, 503, "NOT_READY")
        assert.include(report.text, "has not received")
        assertRefused(
          yield* send({ method: "POST", path: exportsPath, body: { report_kind, filters } }),
          503,
          "NOT_READY"
        )
      }
    })
  )

  it.effect("delays exports that show a customer until it has the last erasure, which costs no attempt", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const customer = yield* client.customers.create({ payload: { name: "Ada", code: "ada" } })
      const replica = yield* makeReplica
      yield* replica.sql`
        INSERT INTO customers (id, name, code, metadata, created_at, updated_at)
        VALUES (${customer.id}, 'Ada', 'ada', '{}', now(), now())`
      yield* sql`UPDATE erasure_progress SET changes = changes + 1`
      const lagging = yield* startServer({ reportsDatabaseUrl: replica.url })
      const statusOf = (id: string) => Effect.map(client.reports.getExport({ params: { id } }), ({ status }) => status)
      const usage = yield* lagging.client.reports.createExport({ payload: { report_kind: "usage-summary" } })
      assert.strictEqual(usage.status, "completed")
      const { id } = yield* lagging.client.reports.createExport({
        payload: { report_kind: "customer-summary", filters: { customer_id: customer.id } }
      })
      yield* sql`
        INSERT INTO report_exports (id, report_kind, format, status, filters, content_type, created_by, generated_at, ledger_last,
          created_at, updated_at)
        VALUES ('exp_usage', 'usage-summary', 'json', 'pending', '{}', 'application/json', 'key_1', now(), 0, now(), now())`
      const worker = yield* makeWorkerOver(replica.url)
      for (let attempt = 0; attempt < 7; attempt++) yield* at(61 * attempt)(worker.pass)
      assert.strictEqual(yield* statusOf("exp_usage"), "completed")
      assert.strictEqual(yield* statusOf(id), "processing")
      yield* replica.sql`UPDATE erasure_progress SET changes = changes + 1`
      yield* at(61 * 7)(worker.pass)
      assert.strictEqual(yield* statusOf(id), "completed")
    })
  )

  it.effect("delays an export of the ledger until it has all rows of the request, which costs no attempt", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const replica = yield* makeReplica
      yield* sql`
        INSERT INTO report_exports (id, report_kind, format, status, filters, content_type, created_by, generated_at, ledger_last,
          created_at, updated_at)
        VALUES ('exp_ledger', 'usage-ledger', 'json', 'pending', '{}', 'application/json', 'key_1', now(), 1, now(), now())`
      const status = Effect.map(client.reports.getExport({ params: { id: "exp_ledger" } }), ({ status }) => status)
      const worker = yield* makeWorkerOver(replica.url)
      for (let attempt = 0; attempt < 7; attempt++) yield* at(61 * attempt)(worker.pass)
      assert.strictEqual(yield* status, "processing")
      yield* replica.sql`UPDATE event_sequence SET ledger_last = 1`
      yield* at(61 * 7)(worker.pass)
      assert.strictEqual(yield* status, "completed")
    })
  )

  it.effect("gives an export five attempts to find its record", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const { url } = yield* makeReplica
      yield* sql`
        INSERT INTO report_exports (id, report_kind, format, status, filters, content_type, created_by, generated_at, ledger_last,
          created_at, updated_at)
        VALUES ('exp_gone', 'license-audit', 'json', 'pending', '{"license_id": "lic_gone"}', 'application/json', 'key_1', now(), 0,
          now(), now())`
      const worker = yield* makeWorkerOver(url)
      const state = client.reports.getExport({ params: { id: "exp_gone" } })
      for (let attempt = 0; attempt < 5; attempt++) yield* at(61 * attempt)(worker.pass)
      assert.strictEqual((yield* state).status, "processing")
      yield* at(61 * 5)(worker.pass)
      assert.deepInclude(yield* state, {
        status: "failed",
        failure: "The export failed: report its id to the operator."
      })
    })
  )
})
