import { assert, layer } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { SqlClient } from "effect/sql"
import { canonicalize } from "../../../../src/contract/api/CanonicalJson.ts"
import { sha256Hex } from "../../../../src/platform/signing/Digest.ts"
import { at, download, exportsPath, makeWorker, writeLedger } from "../../../support/database/Exports.ts"
import { assertAnswered, assertRefused } from "../../../support/http/Http.ts"
import { makeMetered } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"

layer(TestServer.layer)("A small export", (it) => {
  it.effect("is complete immediately, has a digest, and keeps the same bytes", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { consume, license, product } = yield* makeMetered
      yield* consume("exports", 3, "=1+1")
      yield* consume("exports", 4, "two")
      const filters = { license_id: license.id }
      const created = yield* client.reports.createExport({ payload: { report_kind: "usage-ledger", filters } })
      assert.deepInclude(created, { status: "completed", format: "json", filters, rows: 2 })
      const first = yield* download(created.id)
      yield* consume("exports", 5, "three")
      const second = yield* download(created.id)
      assert.strictEqual(first.text, second.text)
      assert.strictEqual(canonicalize(JSON.parse(first.text)), first.text)
      assert.strictEqual(sha256Hex(first.text), created.digest)
      assert.strictEqual(created.artifact_digest, created.digest)
      assert.strictEqual(Buffer.byteLength(first.text), created.size_bytes)
      const { rows } = JSON.parse(first.text) as { rows: ReadonlyArray<{ amount: number; balance_after: number }> }
      assert.deepStrictEqual(
        rows.map(({ amount, balance_after }) => [amount, balance_after]),
        [
          [3, 3],
          [4, 7]
        ]
      )
      const csv = yield* client.reports.createExport({
        payload: { report_kind: "usage-ledger", format: "csv", filters }
      })
      const file = yield* download(csv.id)
      assert.strictEqual(file.headers["content-type"], "text/csv; charset=utf-8")
      const lines = file.text.split("\r\n")
      assert.strictEqual(lines.length, 1 + 3 + 1)
      assert.match(lines[0]!, /^sequence,occurred_at,action,event_id,/)
      assert.include(lines[1]!, ",consume,'=1+1,")
      assert.strictEqual(sha256Hex(file.text), csv.artifact_digest)
      assert.notStrictEqual(csv.digest, csv.artifact_digest)
      const again = assertAnswered(yield* send({ path: `${exportsPath}/${csv.id}` }), 200)
      assert.deepInclude(again, { digest: csv.digest, download_url: csv.download_url })
      const [event] = (yield* client.events.list({ query: { resource_id: csv.id } })).items
      assert.deepInclude(event, { event_type: "report_export.created", resource_type: "report_export" })
      assert.strictEqual(csv.created_by, event?.actor_id)
      assert.isString(product.id)
    })
  )

  it.effect("is stored compressed; one that was stored uncompressed is served as before", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const metered = yield* makeMetered
      yield* writeLedger(metered, 50)
      const created = yield* client.reports.createExport({
        payload: { report_kind: "usage-ledger", format: "csv", filters: { license_id: metered.license.id } }
      })
      const { text } = yield* download(created.id)
      const [stored] = yield* sql<{ bytes: number; plain: number }>`
        SELECT octet_length(bytes) AS bytes, plain_size AS plain FROM report_export_chunks
        WHERE export_id = ${created.id} AND part = 'artifact'`
      assert.strictEqual(stored!.plain, text.length)
      assert.isBelow(stored!.bytes, text.length / 4)
      yield* sql`
        UPDATE report_export_chunks SET bytes = ${Buffer.from(text)}, plain_size = NULL
        WHERE export_id = ${created.id} AND part = 'artifact'`
      assert.strictEqual((yield* download(created.id)).text, text)
      const range = yield* download(created.id, { range: "bytes=100-199" })
      assert.strictEqual(range.text, text.slice(100, 200))
    })
  )

  it.effect("of every kind contains the figures that the report contains", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { consume, customer, license, subscription } = yield* makeMetered
      yield* consume("exports", 3, "one")
      const kinds = {
        "usage-summary": { license_id: license.id, group_by: ["license_id", "feature_code"], bucket: "1d" },
        "license-audit": { license_id: license.id },
        "customer-summary": { customer_id: customer.id },
        "subscription-settlement": { subscription_id: subscription.id }
      } as const
      for (const [report_kind, filters] of Object.entries(kinds)) {
        const kind = report_kind as keyof typeof kinds
        const json = yield* client.reports.createExport({ payload: { report_kind: kind, filters } })
        const text = (yield* download(json.id)).text
        assert.strictEqual(sha256Hex(text), json.digest, kind)
        assert.include(text, '"consumed":3', kind)
        const csv = yield* client.reports.createExport({ payload: { report_kind: kind, format: "csv", filters } })
        assert.strictEqual(csv.status, "completed")
        const table = (yield* download(csv.id)).text
        assert.include(table.split("\r\n")[0]!, { "customer-summary": "field,value" }[report_kind] ?? "_", kind)
      }
    })
  )

  it.effect("is served in ranges, and not again to a client that has it", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { consume, license } = yield* makeMetered
      yield* consume("exports", 3, "one")
      const created = yield* client.reports.createExport({
        payload: { report_kind: "usage-ledger", filters: { license_id: license.id } }
      })
      const completeFile = yield* download(created.id)
      const { etag, "repr-digest": digest, "content-disposition": disposition } = completeFile.headers
      assert.strictEqual(etag, `"${created.artifact_digest}"`)
      assert.strictEqual(digest, `sha-256=:${Buffer.from(created.artifact_digest, "hex").toString("base64")}:`)
      assert.strictEqual(disposition, `attachment; filename="usage-ledger-${created.id}.json"`)
      const size = Buffer.byteLength(completeFile.text)
      for (const [range, from, to] of [
        ["bytes=0-9", 0, 10],
        ["bytes=10-", 10, size],
        ["bytes=-7", size - 7, size],
        [`bytes=5-${size + 99}`, 5, size]
      ] as const) {
        const part = yield* download(created.id, { range })
        assert.deepStrictEqual(
          [part.status, part.text, part.headers["content-range"], part.headers["content-length"]],
          [206, completeFile.text.slice(from, to), `bytes ${from}-${to - 1}/${size}`, String(to - from)]
        )
      }
      for (const headers of [
        { range: "bytes=9-1" },
        { range: "lines=1-2" },
        { range: "bytes=0-1", "if-range": '"x"' }
      ]) {
        assert.deepStrictEqual([(yield* download(created.id, headers)).status], [200])
      }
      const path = `${exportsPath}/${created.id}/download`
      const head = yield* send({ method: "HEAD", path, headers: { range: "bytes=0-1" } })
      assert.deepStrictEqual([head.status, head.headers["content-length"]], [200, String(size)])
      const notModified = yield* download(created.id, { "if-none-match": `W/"x", ${etag}` })
      assert.deepStrictEqual([notModified.status, notModified.text], [304, ""])
    })
  )

  it.effect("refuses filters as 422, with the field", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const create = (body: object) => send({ method: "POST", path: exportsPath, body })
      for (const [report_kind, filters, detail] of [
        ["license-audit", {}, "filters.license_id"],
        ["license-audit", { license_id: 5 }, "filters.license_id"],
        ["usage-summary", { bucket: "1w" }, "filters.bucket"],
        ["usage-summary", { group_by: ["colour"] }, "filters.group_by"],
        ["usage-summary", { action: "consume" }, "filters.action"],
        ["usage-ledger", { group_by: "license_id" }, "filters.group_by"],
        ["usage-ledger", { custmer_id: "cust_1" }, "filters.custmer_id"],
        ["usage-ledger", { from: "2030-01-02T00:00:00Z", to: "2030-01-01T00:00:00Z" }, "filters.to"],
        ["usage-summary", { tz: "Mars/Olympus" }, "filters.tz"],
        ["usage-ledger", { feature_code: "a\u0000b" }, "filters.feature_code"],
        ["subscription-settlement", {}, "filters.subscription_id"]
      ] as const) {
        assertRefused(yield* create({ report_kind, filters }), 422, "VALIDATION_ERROR", detail)
      }
      assertRefused(
        yield* create({ report_kind: "license-audit", filters: { license_id: "none" } }),
        404,
        "NOT_FOUND",
        "filters.license_id"
      )
      const { customer, license, product, subscription } = yield* makeMetered
      const order = yield* client.commerce.createOrder({
        params: { id: product.id },
        payload: { external_system: "shop", external_id: "unlinked", status: "paid" }
      })
      for (const format of ["json", "csv", "pdf"]) {
        // For a settlement one of the two, or both if the order belongs to the subscription.
        const both = { subscription_id: subscription.id, order_id: order.id }
        assertRefused(
          yield* create({ report_kind: "subscription-settlement", format, filters: both }),
          422,
          "VALIDATION_ERROR",
          "filters.order_id"
        )
        // The id of another kind of record.
        assertRefused(
          yield* create({ report_kind: "license-audit", format, filters: { license_id: customer.id } }),
          404,
          "NOT_FOUND",
          "filters.license_id"
        )
      }
      for (const id of [license.id, customer.id]) {
        assertRefused(yield* send({ path: `${exportsPath}/${id}` }), 404, "NOT_FOUND", "id")
        assertRefused(yield* download(id), 404, "NOT_FOUND", "id")
      }
      assertRefused(yield* create({ report_kind: "usage-summary", format: "xlsx" }), 422, "VALIDATION_ERROR", "format")
      assertRefused(yield* create({ report_kind: "colours" }), 422, "VALIDATION_ERROR", "report_kind")
      assertRefused(yield* send({ path: `${exportsPath}/none` }), 404, "NOT_FOUND", "id")
      assertRefused(yield* download("none"), 404, "NOT_FOUND", "id")
    })
  )
})

layer(TestServer.layer)("A large export", (it) => {
  it.effect("is created by a worker, and resumed by another one after the first has died", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const metered = yield* makeMetered
      yield* writeLedger(metered, 5_500)
      const filters = { license_id: metered.license.id }
      const create = client.reports.createExport({ payload: { report_kind: "usage-ledger", format: "csv", filters } })
      const waiting = yield* create
      assert.deepInclude(waiting, { status: "pending", digest: "", artifact_digest: "", rows: 0 })
      assertRefused(yield* download(waiting.id), 409, "EXPORT_NOT_READY", "pending")
      // Later usage is not part of it.
      yield* metered.consume("renders", 1, "later")
      const failingWorker = yield* makeWorker
      assert.isTrue(yield* at(0)(failingWorker.step))
      const startedExport = yield* client.reports.getExport({ params: { id: waiting.id } })
      assert.deepInclude(startedExport, { status: "processing", rows: 2_000 })
      assertRefused(yield* download(waiting.id), 409, "EXPORT_NOT_READY", "processing")
      const other = yield* makeWorker
      yield* at(59)(other.pass)
      assert.strictEqual((yield* client.reports.getExport({ params: { id: waiting.id } })).rows, 2_000)
      yield* at(61)(other.pass)
      const done = yield* client.reports.getExport({ params: { id: waiting.id } })
      assert.deepInclude(done, { status: "completed", rows: 5_500 })
      const { headers, text } = yield* download(done.id)
      assert.strictEqual(headers["content-length"], String(done.size_bytes))
      assert.strictEqual(sha256Hex(text), done.artifact_digest)
      const lines = text.split("\r\n")
      assert.strictEqual(lines.length, 1 + 5_500 + 1)
      const sequences = lines.slice(1, -1).map((line) => Number(line.split(",")[0]))
      assert.isTrue(sequences.every((sequence, index) => index === 0 || sequence === sequences[index - 1]! + 1))
      // Created in one pass, the figures have the same digest.
      const json = yield* client.reports.createExport({ payload: { report_kind: "usage-ledger", filters } })
      yield* at(61)(other.pass)
      const figures = yield* download(json.id)
      const { digest } = yield* client.reports.getExport({ params: { id: json.id } })
      assert.strictEqual(sha256Hex(figures.text), digest)
      assert.strictEqual((JSON.parse(figures.text) as { rows: ReadonlyArray<unknown> }).rows.length, 5_501)
      const middle = yield* send({
        path: `${exportsPath}/${json.id}/download`,
        headers: { range: "bytes=262100-262200" }
      })
      assert.strictEqual(middle.text, figures.text.slice(262_100, 262_201))
    })
  )

  it.effect("is continued after a statement of the database has failed", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const metered = yield* makeMetered
      yield* writeLedger(metered, 2_500)
      const filters = { license_id: metered.license.id }
      const { id } = yield* client.reports.createExport({ payload: { report_kind: "usage-ledger", filters } })
      const worker = yield* makeWorker
      yield* sql`ALTER VIEW events RENAME TO events_away`
      const failed = yield* Effect.exit(at(0)(worker.pass))
      yield* sql`ALTER VIEW events_away RENAME TO events`
      assert.isTrue(Exit.isFailure(failed))
      assert.strictEqual((yield* client.reports.getExport({ params: { id } })).status, "processing")
      yield* at(61)(worker.pass)
      assert.deepInclude(yield* client.reports.getExport({ params: { id } }), { status: "completed", rows: 2_500 })
    })
  )

  it.effect("is deleted when its retention ends", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const created = yield* client.reports.createExport({ payload: { report_kind: "usage-summary" } })
      const worker = yield* makeWorker
      yield* at(29 * 86_400)(worker.pass)
      assertAnswered(
        yield* Effect.flatMap(TestServer, ({ send }) => send({ path: `${exportsPath}/${created.id}` })),
        200
      )
      yield* at(31 * 86_400)(worker.pass)
      assertRefused(yield* download(created.id), 404, "NOT_FOUND")
      assert.lengthOf(yield* sql`SELECT FROM report_export_chunks WHERE export_id = ${created.id}`, 0)
    })
  )
})
