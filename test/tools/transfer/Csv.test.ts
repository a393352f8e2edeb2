/** Licenses with keys of their own from a CSV file, beside a running instance. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { csvRecords } from "../../../src/tools/transfer/csv/CsvText.ts"
import type { ErasureBody } from "../../support/database/Erasures.ts"
import { assertAnswered } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { operatorSettings, runLine } from "../../support/processes/CommandLine.ts"
import { poll } from "../../support/rules/Poll.ts"

const parse = (...pieces: ReadonlyArray<string>) =>
  Stream.runCollect(csvRecords(Stream.fromIterable(pieces).pipe(Stream.rechunk(1)))).pipe(
    Effect.map((records) => records.map(({ fields, line }) => [line, ...fields]))
  )

const faultOf = (text: string) => Effect.map(Effect.flip(parse(text)), ({ message }) => message)

describe("The CSV parser", () => {
  const text = '\uFEFFa,"b, ""c""\nd",\r\n\r\n"","e""f","g\r\nh\ri"\n"end"'
  const records = [
    [1, "a", 'b, "c"\nd', ""],
    [4, "", 'e"f', "g\r\nh\ri"],
    [7, "end"]
  ]
  it.effect("reads quotes, line breaks and empty fields, however the text is cut", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* parse(text), records)
      assert.deepStrictEqual(yield* parse(...text), records)
    })
  )

  it.effect("names the line and the field of a quote that is wrong, and the line of a record that is too long", () =>
    Effect.gen(function* () {
      assert.match(yield* faultOf('a\nb,"c\nd\n'), /line 2, field 2: Unterminated/)
      assert.match(yield* faultOf('a\n"x\ny"\nb,"c"d\n'), /line 4, field 2: Expected a delimiter/)
      assert.match(yield* faultOf('a\n\n5" disk,b\n'), /line 3, field 1: Unexpected quote/)
      assert.match(yield* faultOf(`a\n"${"x\n".repeat(200_000)}`), /line 2: the record is longer/)
    })
  )
})

layer(TestServer.layerWith({}), { timeout: 120_000 })("`licensing import csv`", (it) => {
  const home = Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-csv-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  const run = (rows: ReadonlyArray<string>, ...args: ReadonlyArray<string>) => runFile(rows.join("\n"), ...args)
  const runFile = Effect.fnUntraced(function* (content: string | Uint8Array, ...args: ReadonlyArray<string>) {
    const path = join(yield* home, "given.csv")
    writeFileSync(path, content)
    const { code, out } = yield* runLine(yield* operatorSettings, "import", "csv", path, ...args, "--json")
    return { code, ...JSON.parse(out) } as {
      readonly code: number
      readonly imported?: Record<string, number>
      readonly existed_already?: number
      readonly erased?: ReadonlyArray<{ readonly line: number; readonly message: string }>
      readonly faults: ReadonlyArray<{ readonly line: number; readonly message: string }>
      readonly error?: string
    }
  })
  const catalog = Effect.fnUntraced(function* (code: string) {
    const { client } = yield* TestServer
    const product = yield* client.products.create({ payload: { name: "Editor", code } })
    const params = { id: product.id }
    const feature = yield* client.features.create({ params, payload: { name: "Exports", code: "exports" } })
    const policy = yield* client.policies.create({
      params,
      payload: { name: "Pro", code: "pro", license_type: "time_limited" }
    })
    yield* client.policies.setFeature({
      params: { id: policy.id, feature_id: feature.id },
      payload: { enabled: true, max_consumptions: 5 }
    })
    return product
  })
  const count = Effect.flatMap(TestServer, ({ client }) =>
    Effect.map(client.licenses.list({ query: { include_total: "true" } }), ({ total }) => total)
  )

  it.effect("imports keys, customers, dates, limits, metadata and the policy's features, once", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      yield* catalog("csv-editor")
      const rows = [
        "\uFEFFlicense_key,product,policy,customer,customer_name,customer_email,expires_at,status,max_activations,metadata.order",
        'OLD-KEY-00000001,csv-editor,pro,ada,"Lovelace, Ada",ada@example.com,2099-12-31,,7,1',
        "OLD-KEY-00000002,csv-editor,pro,ada,,ada@example.com,2020-01-01T12:00:00+01:00,,,2",
        "OLD-KEY-00000003,csv-editor,pro,,,,2099-12-31,suspended,,"
      ]
      const rehearsed = yield* run(rows, "--dry-run")
      assert.deepStrictEqual(rehearsed.imported, { customer: 1, license: 3, license_feature: 3 })
      assert.strictEqual(yield* count, 0)
      const done = yield* run(rows)
      assert.deepStrictEqual([done.code, done.imported], [0, rehearsed.imported])
      const again = yield* run(rows)
      assert.deepStrictEqual([again.code, again.imported, again.existed_already], [0, {}, 3])
      const answer = yield* send({
        ...{ method: "POST", path: "/api/v1/license/activate", anonymous: true, body: { fingerprint: "m" } },
        headers: { authorization: "License OLD-KEY-00000001" }
      })
      const { license_id } = assertAnswered(answer, 200) as { readonly license_id: string }
      const license = yield* client.licenses.get({ params: { id: license_id } })
      assert.deepInclude(license, {
        customer_name: "Lovelace, Ada",
        max_activations: 7,
        expires_at: Date.UTC(2099, 11, 31)
      })
      assert.deepStrictEqual(license.metadata, { order: "1" })
      const created = yield* client.events.list({ query: { event_type: "license.created", resource_id: license_id } })
      assert.deepInclude(created.items[0]?.metadata, {
        ...{ imported: true, max_activations: 7, expires_at: "2099-12-31T00:00:00.000Z" }
      })
      const statuses = (yield* client.licenses.list({ query: {} })).items.map(({ status }) => status)
      assert.sameMembers([...statuses], ["active", "expired", "suspended"])
      const customers = (yield* client.customers.list({ query: { code: "ada" } })).items
      assert.strictEqual(customers[0]?.id, license.customer_id)
    }).pipe(Effect.scoped)
  )

  it.effect("leaves out the data of a customer that was erased, and names its lines", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      yield* catalog("csv-erased")
      const head =
        "license_key,product,policy,customer,customer_name,customer_email,expires_at,metadata.for,metadata.order"
      const row = (n: number, customer = "quist", name = "Zoe Quist") =>
        `QUIST-KEY-000${n},csv-erased,pro,${customer},${name},${customer}@example.com,2099-12-31,For ${name},${n}`
      yield* run([head, row(1)])
      const [{ id } = { id: "" }] = (yield* client.customers.list({ query: { code: "quist" } })).items
      const erase = (headers = {}) => send({ method: "POST", path: `/api/v1/customers/${id}/erase`, headers })
      yield* erase({ "idempotency-key": "erases-later" })
      const unnamed = "QUIST-KEY-0004,csv-erased,pro,quist,,,2099-12-31,Ask Zoe Quist,4"
      const rows = [head, row(1), row(2, "other", "Ota Neumann"), row(3), unnamed]
      const early = yield* run(rows)
      assert.strictEqual(early.code, 1)
      assert.deepStrictEqual(
        early.faults.map(({ line }) => line),
        [4, 5]
      )
      assert.include(early.faults[0]?.message, "is being erased")

      yield* poll(erase(), ({ json }) => (json as ErasureBody).data.status === "erased")
      for (const dry of [["--dry-run"], []]) {
        const done = yield* run(rows, ...dry)
        assert.deepStrictEqual([done.code, done.imported?.["license"], done.existed_already], [0, 3, 1])
        const message = `The customer ${id} was erased: its data is left out.`
        assert.deepStrictEqual(done.erased, [
          { line: 4, message },
          { line: 5, message }
        ])
      }
      const { items } = yield* client.licenses.list({ query: { customer_id: id } })
      assert.notInclude(JSON.stringify(items), "quist@")
      assert.notInclude(JSON.stringify(items), "Zoe")
      assert.sameDeepMembers(
        items.map(({ metadata }) => metadata),
        [...["1", "3"].map((order) => ({ for: null, order })), {}]
      )
      const other = yield* client.licenses.list({ query: { q: "Ota Neumann" } })
      assert.strictEqual(other.items[0]?.customer_email, "other@example.com")
    }).pipe(Effect.scoped)
  )

  it.effect("imports nothing of a file with wrong lines, and names them", () =>
    Effect.gen(function* () {
      const before = yield* count
      yield* catalog("csv-faults")
      const row = (index: number, expiry = "2099-01-01", key = `FAULTY-KEY-${index}`) =>
        `${key},csv-faults,pro,${expiry}`
      const rows = [
        "license_key,product,policy,expires_at",
        ...Array.from({ length: 1_200 }, (_, index) => row(index + 2))
      ]
      const wrong = rows.with(699, row(700, "soon")).with(899, row(900, "2099-01-01", "FAULTY-KEY-20"))
      const refused = yield* run(wrong)
      assert.strictEqual(refused.code, 1)
      assert.deepStrictEqual(
        refused.faults.map(({ line, message }) => [line, message.split(":")[0]]),
        [
          [700, "expires_at"],
          [900, "license_key"]
        ]
      )
      assert.match(refused.faults[1]?.message ?? "", /line 20/)
      assert.notInclude(JSON.stringify(refused), "FAULTY-KEY")
      assert.strictEqual(yield* count, before)

      // A key that another license has, and a policy that does not exist, show when the database is asked.
      const { client } = yield* TestServer
      const other = yield* client.products.create({ payload: { name: "Other", code: "csv-other" } })
      const { id: policy_id } = yield* client.policies.create({
        params: { id: other.id },
        payload: { name: "Pro", code: "pro", license_type: "perpetual" }
      })
      const { license } = yield* client.licenses.create({
        payload: { product_id: other.id, policy_id, license_key: "FAULTY-KEY-700" }
      })
      const clashing = rows.with(9, "FAULTY-KEY-10,csv-faults,none,2099-01-01").with(19, row(20, ""))
      const rehearsed = yield* run(clashing, "--dry-run")
      assert.deepStrictEqual(
        rehearsed.faults.map(({ line }) => line),
        [10, 700, 20]
      )
      assert.include(rehearsed.faults[1]?.message, license.id)
      const stopped = yield* run(rows)
      assert.deepStrictEqual([stopped.code, stopped.faults.map(({ line }) => line)], [1, [700]])
      assert.match(stopped.error ?? "", /run the same command again/)
      const mended = yield* run(rows.with(699, row(700, "2099-01-01", "FAULTY-KEY-X")))
      assert.strictEqual(mended.code, 0)
      assert.strictEqual((mended.imported?.["license"] ?? 0) + (mended.existed_already ?? 0), 1_200)
      assert.strictEqual(yield* count, (before ?? 0) + 1_201)
    }).pipe(Effect.scoped)
  )

  it.effect("refuses a license that was sold in the future, because its term would begin then", () =>
    Effect.gen(function* () {
      yield* catalog("csv-sold")
      const head = "license_key,product,policy,expires_at,created_at"
      const { faults } = yield* run([head, "SOLD-KEY-0001,csv-sold,pro,2199-01-01,2162-01-31"])
      assert.match(JSON.stringify(faults), /^\[{"line":2,"message":"created_at: /)
    }).pipe(Effect.scoped)
  )

  it.effect("refuses files that are no table of licenses", () =>
    Effect.gen(function* () {
      for (const [rows, message] of [
        [["license_key,product"], /column policy is missing/],
        [["license_key,product,policy,colour"], /"colour" is unknown/],
        [["license_key,product,policy,POLICY"], /policy is there twice/],
        [["license_key,product,policy,metadata.__proto__"], /metadata\.__proto__ .*rename it/],
        [["license_key,product,policy", '"A'], /line 2, field 1: Unterminated/],
        [[""], /empty/]
      ] as const) {
        const { code, error } = yield* run(rows)
        assert.strictEqual(code, 1)
        assert.match(error ?? "", message)
      }
    }).pipe(Effect.scoped)
  )

  it.effect("reads the encodings, separators and headers that spreadsheets write", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      yield* catalog("csv-saved")
      const text = (key: string, separator: string) =>
        `License_Key,PRODUCT,policy,customer_name,expires_at,Metadata.Größe\r\n${key},csv-saved,pro,Zoë € ${key},2099-12-31,1`.replaceAll(
          ",",
          separator
        )
      const ansi = Buffer.from(text("SAVED-KEY-1", ";").replace("€", "\x80"), "latin1")
      const refused = yield* runFile(ansi)
      assert.match(refused.error ?? "", /line 1: .*not UTF-8.*--encoding windows-1252/)
      const wide = Buffer.from(`\uFEFF${text("SAVED-KEY-2", "\t")}`, "utf16le")
      for (const [key, content, ...args] of [
        ["SAVED-KEY-1", ansi, "--encoding", "windows-1252"],
        ["SAVED-KEY-2", wide],
        ["SAVED-KEY-3", Buffer.from(`\uFEFF${text("SAVED-KEY-3", "\t")}`, "utf16le").swap16()],
        ["SAVED-KEY-4", text("SAVED-KEY-4", ";")]
      ] as const) {
        assert.deepInclude(yield* runFile(content, ...args), { code: 0, faults: [] })
        const { items } = yield* client.licenses.list({ query: { q: key } })
        assert.deepStrictEqual(
          items.map(({ customer_name, metadata }) => [customer_name, metadata]),
          [[`Zoë € ${key}`, { Größe: "1" }]]
        )
      }
    }).pipe(Effect.scoped)
  )

  it.effect("counts in a dry run what the lines without faults would do", () =>
    Effect.gen(function* () {
      yield* catalog("csv-counts")
      const row = (key: string, name = "") => `${key},csv-counts,pro,2099-12-31,${name}`
      const head = "license_key,product,policy,expires_at,customer_name"
      yield* run([head, row("COUNTED-KEY-1")])
      const lines = [head, row("COUNTED-KEY-1"), row("COUNTED-KEY-2"), row("1.23457E+15"), row("1.23E+15")]
      const bytes = Buffer.concat([
        Buffer.from(`${lines.join("\n")}\n`),
        Buffer.from(row("COUNTED-KEY-3", "Zo\xEB"), "latin1")
      ])
      const dry = yield* runFile(bytes, "--dry-run")
      assert.deepInclude(dry, { code: 1, existed_already: 1 })
      assert.deepStrictEqual(dry.imported, { license: 1, license_feature: 1 })
      assert.deepStrictEqual(
        dry.faults.map(({ line }) => line),
        [4, 5, 6]
      )
      assert.match(dry.faults[0]?.message ?? "", /^license_key: A spreadsheet .*as text/)
      assert.match(dry.faults[2]?.message ?? "", /not UTF-8/)
      assert.deepInclude(yield* runFile(bytes), { code: 1, faults: dry.faults })
      // A customer of refused lines only would not be created.
      const refused = ["COUNTED-KEY-4,csv-counts,pro,nobody,", "COUNTED-KEY-5,csv-counts,pro,somebody,2099-12-31"]
      const owned = yield* run(["license_key,product,policy,customer,expires_at", ...refused], "--dry-run")
      assert.deepStrictEqual([owned.imported?.["customer"], owned.faults.map(({ line }) => line)], [1, [2]])
    }).pipe(Effect.scoped)
  )
})
