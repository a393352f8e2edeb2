import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import * as fc from "fast-check"
import { canonicalize, type Json } from "../../../../src/contract/api/CanonicalJson.ts"
import { csvLine } from "../../../../src/contract/api/Csv.ts"
import { formatTimestamp } from "../../../../src/contract/api/Timestamp.ts"
import { ledgerStart, makeLedgerPieces, positionAfter } from "../../../../src/insight/reports/exports/LedgerPieces.ts"
import {
  type LedgerRow,
  ledgerCsv,
  ledgerFields,
  ledgerJson
} from "../../../../src/insight/reports/exports/LedgerText.ts"
import { ledgerColumns } from "../../../../src/insight/reports/usage/UsageLedger.ts"
import { columns } from "../../../../src/platform/postgres/driver/Parameters.ts"
import { sha256Hex } from "../../../../src/platform/signing/Digest.ts"
import { at, download, makeWorker, writeLedger } from "../../../support/database/Exports.ts"
import { type MeteredLicense, makeMetered } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"
import { character } from "../../../support/rules/Characters.ts"

type Filters = { readonly [name: string]: string }

const create = (format: "csv" | "json", filters: Filters) =>
  Effect.flatMap(TestServer, ({ client }) =>
    client.reports.createExport({ payload: { report_kind: "usage-ledger", format, filters } })
  )

const get = (id: string) => Effect.flatMap(TestServer, ({ client }) => client.reports.getExport({ params: { id } }))

/** The rows of a license, read with their links in one statement. */
const written = Effect.fnUntraced(function* (licenseId: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql`
    SELECT ${sql.literal(ledgerColumns)} FROM usage_ledger u JOIN licenses l ON l.id = u.license_id
      LEFT JOIN features f ON f.id = u.feature_id
    WHERE u.license_id = ${licenseId} ORDER BY u.sequence`.values
  return rows.map((row) => row.with(1, formatTimestamp(row[1] as number))) as never as ReadonlyArray<LedgerRow>
})

/** The canonical JSON of given rows, over which the digest of an export is computed. */
const figuresOf = (
  created: { readonly created_at: number; readonly filters: unknown },
  rows: ReadonlyArray<LedgerRow>
) => {
  const time = formatTimestamp(created.created_at)
  const head = canonicalize({
    filters: created.filters as Json,
    generated_at: time,
    period: { to: time },
    report_kind: "usage-ledger"
  })
  return `${head.slice(0, -1)},"rows":[${ledgerJson(rows)}]}`
}

const text = fc.oneof(
  { weight: 3, arbitrary: fc.string({ unit: "grapheme-ascii", minLength: 1, maxLength: 60 }) },
  fc.string({ unit: character, maxLength: 20 }).map((text) => text.toWellFormed().replaceAll("\0", "")),
  fc.constantFrom(
    "=1+1",
    "'=1",
    "-1",
    " @x",
    'a "quoted" text',
    "a,b",
    "one\r\ntwo",
    "\u0001",
    "Ωμέγα",
    "＝1",
    "漢字",
    "",
    "\\"
  )
)
const count = fc.oneof(fc.nat(), fc.constantFrom(0, 9, 10, 99, 100, 2 ** 31 - 1, 2 ** 31, Number.MAX_SAFE_INTEGER))
const optional = <A>(arbitrary: fc.Arbitrary<A>) => fc.option(arbitrary, { nil: null })

/** A row of the ledger, with unusual texts and numbers. */
const row = fc.record({
  action: fc.constantFrom("reset", "top_up", "set_limit"),
  amount: fc.integer({ min: -1_000_000, max: 1_000_000 }),
  balance: count.map((balance) => Math.min(balance, Number.MAX_SAFE_INTEGER - 1_000_000)),
  max: optional(count),
  event_id: optional(text),
  device_id: optional(text),
  actor_id: text,
  request_id: text,
  occurred_at: fc
    .date({ min: new Date("1969-01-01"), max: new Date("9999-12-31"), noInvalidDate: true })
    .map((date) => date.getTime())
})

const insert = Effect.fnUntraced(function* (
  { license }: MeteredLicense,
  rows: ReadonlyArray<Parameters<typeof Object.keys>[0] & ReturnType<typeof sample>[number]>
) {
  const sql = yield* SqlClient.SqlClient
  const of = <K extends keyof (typeof rows)[number]>(name: K) => rows.map((row) => row[name])
  yield* sql`
    WITH counter AS (UPDATE event_sequence SET ledger_last = ledger_last + ${rows.length}
      RETURNING ledger_last - ${rows.length} AS base)
    INSERT INTO usage_ledger (sequence, license_id, feature_id, action, event_id, amount, balance_after, max_after, device_id,
      actor_type, actor_id, request_id, occurred_at)
    SELECT base + n, a.license_id, a.feature_id, t.action, t.event_id || '#' || n, t.amount, t.balance, t.max, t.device_id, 'api_key',
      t.actor_id, t.request_id, t.occurred_at
    FROM counter, unnest(${columns.text(of("action"))}, ${columns.text(of("event_id"))}, ${columns.int8(of("amount"))},
      ${columns.int8(of("balance"))}, ${columns.int8(of("max"))}, ${columns.text(of("device_id"))}, ${columns.text(of("actor_id"))},
      ${columns.text(of("request_id"))}, ${columns.timestamptz(of("occurred_at"))}) WITH ORDINALITY
      AS t (action, event_id, amount, balance, max, device_id, actor_id, request_id, occurred_at, n),
      (SELECT * FROM license_features WHERE license_id = ${license.id} ORDER BY feature_id LIMIT 1) AS a`
})

const sample = (rows: number) => fc.sample(row, { numRuns: rows, seed: 11 })

layer(TestServer.layer)("An export of the ledger", (it) => {
  it.effect("contains each row as JSON and as CSV, also rows with unusual texts", () =>
    Effect.gen(function* () {
      const metered = yield* makeMetered
      yield* insert(metered, sample(1_500))
      const filters = { license_id: metered.license.id }
      const rows = yield* written(metered.license.id)
      assert.lengthOf(rows, 1_500)
      const json = yield* create("json", filters)
      assert.strictEqual((yield* download(json.id)).text, figuresOf(json, rows))
      const csv = yield* create("csv", filters)
      assert.strictEqual((yield* download(csv.id)).text, csvLine(ledgerFields) + ledgerCsv(rows))
      assert.strictEqual(csv.digest, sha256Hex(figuresOf(csv, rows)))
    })
  )

  it.effect("resumed after any piece has the same bytes and digests", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const metered = yield* makeMetered
      // Pieces whose figures can be read back from their file, and one in the middle whose figures cannot.
      yield* writeLedger(metered, 5_900)
      yield* sql`UPDATE usage_ledger SET event_id = 'first-' || event_id WHERE license_id = ${metered.license.id}`
      yield* sql`DELETE FROM usage_event_ids`
      yield* insert(metered, sample(5))
      yield* writeLedger(metered, 2_500)
      const filters = { license_id: metered.license.id }
      const rows = yield* written(metered.license.id)
      const file = csvLine(ledgerFields) + ledgerCsv(rows)
      for (const pieces of [0, 1, 2, 3, 4]) {
        const created = yield* create("csv", filters)
        for (let piece = 0; piece < pieces; piece++) assert.isTrue(yield* at(61 * piece)((yield* makeWorker).step))
        const stored = yield* sql<{ part: string }>`
          SELECT part FROM report_export_chunks WHERE export_id = ${created.id} AND part = 'snapshot'`
        // Figures are stored beside the file only if they cannot be read back from it.
        assert.strictEqual(stored.length > 0, pieces >= 3, `${pieces} pieces`)
        yield* at(61 * pieces)((yield* makeWorker).pass)
        const done = yield* get(created.id)
        assert.deepInclude(done, { status: "completed", rows: 8_405 }, `${pieces} pieces`)
        assert.strictEqual(done.artifact_digest, sha256Hex(file))
        assert.strictEqual(done.digest, sha256Hex(figuresOf(created, rows)))
        assert.isTrue((yield* download(created.id)).text === file)
      }
    })
  )
})

layer(TestServer.layer)("An export with filters", (it) => {
  it.effect("accepts the filters that the report accepts", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const metered = yield* makeMetered
      const other = yield* makeMetered
      for (const one of [metered, other]) {
        yield* one.consume("exports", 1, "one")
        yield* one.consume("renders", 2, "two")
      }
      yield* client.licenses.resetUsage({
        params: { id: metered.license.id },
        payload: { feature_code: "exports", add_credits: 5 }
      })
      const { customer, license, product, subscription } = metered
      // After the last row, which may be of this millisecond.
      const time = Date.now() + 1
      const instant = formatTimestamp(time)
      const all: ReadonlyArray<Filters> = [
        { product_id: product.id },
        { customer_id: customer.id },
        { license_id: license.id },
        { subscription_id: subscription.id },
        { feature_code: "renders" },
        { customer_id: customer.id, feature_code: "renders" },
        { product_id: product.id, action: "top_up" },
        { license_id: license.id, to: instant },
        { license_id: license.id, from: instant },
        {}
      ]
      for (const filters of all) {
        const { from, to, ...named } = filters
        const period = { ...(from !== undefined && { from: time }), ...(to !== undefined && { to: time }) }
        const page = yield* client.reports.usageLedger({ query: { ...named, ...period, limit: 200 } as never })
        const created = yield* create("json", filters)
        const { rows } = JSON.parse((yield* download(created.id)).text) as { rows: ReadonlyArray<{ sequence: number }> }
        const name = JSON.stringify(filters)
        assert.deepStrictEqual(
          rows.map(({ sequence }) => sequence),
          page.items.map(({ sequence }) => sequence).toReversed(),
          name
        )
        assert.strictEqual(rows.length === 0, filters["from"] !== undefined, name)
      }
    })
  )
})

layer(TestServer.layer)("A change while an export of the ledger runs", (it) => {
  it.effect("does not appear in the export: all rows are as of its request", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const metered = yield* makeMetered
      yield* writeLedger(metered, 4_500)
      const { customer, license, subscription } = metered
      const before = yield* written(license.id)
      const [, , , , , , , , , featureId, code] = before[0]!
      const next = yield* makeMetered
      yield* writeLedger(next, 2_500)
      const others = yield* written(next.license.id)
      const fileOf = (rows: ReadonlyArray<LedgerRow>) => csvLine(ledgerFields) + ledgerCsv(rows)
      const expected = { rows: 4_500, artifact_digest: sha256Hex(fileOf(before)) }
      const requests: ReadonlyArray<readonly [Filters, object]> = [
        [{ license_id: license.id }, expected],
        [{ customer_id: customer.id }, expected],
        [{ subscription_id: subscription.id }, expected],
        [{ customer_id: customer.id, subscription_id: subscription.id }, expected],
        [{ license_id: license.id, feature_code: code! }, expected],
        [{ customer_id: next.customer.id }, { rows: 2_500, artifact_digest: sha256Hex(fileOf(others)) }]
      ]
      const created = yield* Effect.forEach(requests, ([filters]) => create("csv", filters))
      // All have their first piece.
      for (const _ of created) assert.isTrue(yield* at(0)((yield* makeWorker).step))
      yield* client.licenses.transfer({ params: { id: license.id }, payload: { customer_id: next.customer.id } })
      yield* client.licenses.transfer({ params: { id: license.id }, payload: { customer_id: "" } })
      yield* client.licenses.transfer({ params: { id: license.id }, payload: { customer_id: next.customer.id } })
      yield* client.licenses.update({ params: { id: license.id }, payload: { order_id: "", subscription_id: "" } })
      yield* client.features.update({ params: { id: featureId }, payload: { code: "renamed" } })
      // By another node, which has none of it cached.
      yield* at(61)((yield* makeWorker).pass)
      for (const [index, [filters, expected]] of requests.entries()) {
        assert.deepInclude(
          yield* get(created[index]!.id),
          { status: "completed", ...expected },
          JSON.stringify(filters)
        )
      }
      // A new request sees the present state.
      const later = yield* create("csv", { license_id: license.id })
      yield* at(61)((yield* makeWorker).pass)
      const after = yield* written(license.id)
      const presented = Object.fromEntries(ledgerFields.map((name, index) => [name, after[0]![index]]))
      const present = { customer_id: next.customer.id, subscription_id: null, feature_code: "renamed" }
      assert.deepInclude(presented, present)
      assert.strictEqual((yield* download(later.id)).text, fileOf(after))
    })
  )

  it.effect("does not appear in later pieces of the node that made the first ones", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const metered = yield* makeMetered
      yield* writeLedger(metered, 30)
      const { license } = metered
      const expected = yield* written(license.id)
      const filters = { license_id: license.id }
      const created = yield* create("csv", filters)
      const [[ledgerLast], [since]] = [
        yield* sql<{ last: number }>`SELECT ledger_last AS last FROM event_sequence`,
        yield* sql<{ sequence: number }>`SELECT sequence FROM events WHERE resource_id = ${created.id}`
      ]
      const request = { ...created, generated_at: created.created_at, ledger_last: ledgerLast!.last }
      const pieceFrom = yield* makeLedgerPieces(request, since!.sequence)
      const changes = [
        Effect.void,
        client.licenses.transfer({ params: { id: license.id }, payload: { customer_id: "" } }),
        client.features.update({ params: { id: expected[0]![9] }, payload: { code: "renamed" } })
      ]
      let position = ledgerStart
      for (const change of changes) {
        yield* change
        position = positionAfter(position, yield* pieceFrom(sql, position, 10))
      }
      assert.deepInclude(position, { rows: 30, collected: expected.at(-1)![0] })
      assert.strictEqual(
        position.digests?.artifact.digest.hex(),
        sha256Hex(csvLine(ledgerFields) + ledgerCsv(expected))
      )
    })
  )
})
