/** Reports and exports while the replica is away. */
import { connect, createServer } from "node:net"
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { Database } from "../../../support/database/Database.ts"
import { at, exportsPath, makeWorkerOver } from "../../../support/database/Exports.ts"
import { assertRefused } from "../../../support/http/Http.ts"
import { issue } from "../../../support/http/IssuedLicenses.ts"
import { startServer, TestServer } from "../../../support/http/TestServer.ts"
import { freePort } from "../../../support/processes/FreePort.ts"

/** The address of a replica at a port where nothing listens, and its start. */
const makeReplica = Effect.gen(function* () {
  const url = new URL(Redacted.value((yield* Database).url))
  const { hostname, port } = url
  url.port = String(yield* freePort)
  url.hostname = "127.0.0.1"
  const server = createServer((socket) => {
    const database = connect(Number(port), hostname)
    socket.on("error", () => database.destroy()).pipe(database)
    database.on("error", () => socket.destroy()).pipe(socket)
  })
  const start = Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(Number(url.port), "127.0.0.1", () => resume(Effect.void))),
    () => Effect.sync(() => void server.close())
  )
  return { url: Redacted.make(url.href), start }
})

layer(TestServer.layer)("A replica that is away", (it) => {
  it.effect("keeps no node from its start: what reads from it gets 503 until it is there", () =>
    Effect.gen(function* () {
      const { license_key } = yield* issue()
      const replica = yield* makeReplica
      const { connect, send } = yield* startServer({ reportsDatabaseUrl: replica.url })
      const { runtime } = yield* connect({ licenseKey: license_key })
      assert.strictEqual((yield* send({ path: "/readyz" })).status, 200)
      yield* runtime.activate({ payload: { fingerprint: "a" } })
      assert.strictEqual((yield* runtime.validate({ payload: { fingerprint: "a" } })).data.status, "active")
      const reading = [
        { path: "/api/v1/reports/usage-summary" },
        { path: "/api/v1/activities" },
        { method: "POST", path: exportsPath, body: { report_kind: "usage-summary" } }
      ] as const
      for (const request of reading) assertRefused(yield* send(request), 503, "NOT_READY")
      yield* replica.start
      for (const request of reading) assert.include([200, 201], (yield* send(request)).status)
    })
  )

  it.effect("costs an export no attempt", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const replica = yield* makeReplica
      for (const kind of ["usage-summary", "usage-ledger"])
        yield* sql`
          INSERT INTO report_exports (id, report_kind, format, status, filters, content_type, created_by, generated_at, ledger_last,
            created_at, updated_at)
          VALUES (${`exp_${kind}`}, ${kind}, 'json', 'pending', '{}', 'application/json', 'key_1', now(), 0, now(), now())`
      const states = Effect.forEach(["exp_usage-summary", "exp_usage-ledger"], (id) =>
        Effect.map(client.reports.getExport({ params: { id } }), ({ status }) => status)
      )
      const worker = yield* makeWorkerOver(replica.url)
      for (let attempt = 0; attempt < 14; attempt++) yield* Effect.exit(at(61 * attempt)(worker.pass))
      assert.deepStrictEqual(yield* states, ["pending", "pending"])
      yield* replica.start
      yield* at(61 * 14)(worker.pass)
      assert.deepStrictEqual(yield* states, ["completed", "completed"])
    })
  )
})
