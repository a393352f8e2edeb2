/**
 * A service over tens of thousands of rows of every kind, and the plans of its lists: whether an index serves each filter,
 * and how many rows a page reads.
 */
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { totalMax } from "../../../src/contract/api/Paging.ts"
import * as LicenseKey from "../../../src/licensing/model/LicenseKey.ts"
import { openSession } from "../../../src/platform/postgres/driver/Postgres.ts"
import { recordFirstEvents, split } from "../../bench/rows/scalePartitions.ts"
import { fill, hotProduct, idOf, meteredFeature, type Sizes, timedPolicy } from "../../bench/rows/scaleRows.ts"
import { Database } from "../../support/database/Database.ts"
import type { Answer } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { Conversation } from "./Conversation.ts"
import { queriesOf } from "./FilterValues.ts"
import { allowingUnrouted } from "./Fixtures.ts"
import { capture, layerCapturing, planningsOf, type Scan, scansOf } from "./Plans.ts"
import { type Operation, operations } from "./Surface.ts"

export const sizes: Sizes = {
  products: 20_000,
  licenses: 20_000,
  customers: 20_000,
  devices: 40_000,
  events: 60_000,
  others: 20_000,
  crowd: 20_000
}

/** No sweep runs meanwhile: its events would appear in the feed. */
const settings = {
  ...{ rateFailures: 0, rateManagement: 0, rateRuntime: 0, rateActivation: 0, sweepSeconds: 86_400 },
  ...allowingUnrouted
}
/** The license that the ids name, and its key. */
const license = idOf("lic", 1)
const licenseKey = LicenseKey.fromBytes(new Uint8Array(28))

/**
 * The service starts before the rows are inserted, because it makes its first API key in an empty database. Events and
 * ledger have many partitions.
 */
const Filled = Layer.effectDiscard(
  Effect.gen(function* () {
    const { url } = yield* Database
    const session = yield* openSession(url)
    yield* split(session, 12, { events: sizes.events, ledger: sizes.events * 0.45 })
    yield* fill(session, sizes)
    yield* recordFirstEvents(session)
    yield* session.values(
      `UPDATE licenses SET key_hash = '\\x${LicenseKey.hashHex(licenseKey)}' WHERE id = '${license}'`
    )
  })
)
export const layerManyRows = Layer.merge(Conversation.layer, Filled).pipe(
  Layer.provideMerge(TestServer.layerOver(settings)),
  Layer.provideMerge(layerCapturing),
  Layer.provideMerge(Database.layerUrl)
)

/** Tables with fewer rows may be read in any way. */
const smallMax = 100
/** The most rows that a page of 200 may read from all tables: few compared with all rows. A search also reads linked customers. */
const rowsMax = 7_000
/** The most rows that a total may read: each one that it counts, with its policy or its state. */
const countedMax = 2 * totalMax + 100
/** Changes by time are searched per policy; there are far fewer policies than licenses. */
const readWhole = new Set(["policies"])
/** A list of fewer rows proves nothing. */
export const manyMin = 1_000

/** Reports aggregate all rows, over other connections. */
export const lists = operations.filter(
  ({ id, path, query }) =>
    query.some(({ name }) => name === "limit") && (!path.startsWith("/api/v1/reports/") || id === "listReportExports")
)

/** The resources in paths and bodies, which have many rows of every kind. */
export const ids: { readonly [kind: string]: string } = {
  products: hotProduct,
  policies: timedPolicy,
  features: meteredFeature,
  licenses: license,
  customers: idOf("cust", 1),
  "bulk-jobs": idOf("bulk", 1)
}

/** A list with many rows: its ids, and the key of the license if a key is its credential. */
export const requestOf = ({ credential, params }: Operation) => ({
  params: Object.fromEntries(params.map(({ kind, name }) => [name, ids[kind]!])),
  authorization: credential === "license key" ? `License ${licenseKey}` : undefined
})

interface Paged<Row> {
  readonly rows: ReadonlyArray<Row>
  readonly next: string | number | null
}

/** The rows of a page, and the cursor of the next one. A signed page is a payload. */
export const pageOf = <Row>({ json }: Answer): Paged<Row> => {
  const { data, page_info } = json as {
    readonly data: ReadonlyArray<Row> & { readonly devices: ReadonlyArray<Row>; readonly next_cursor: string | null }
    readonly page_info?: { readonly next_cursor: string | number | null }
  }
  return page_info === undefined
    ? { rows: data.devices, next: data.next_cursor }
    : { rows: data, next: page_info.next_cursor }
}

/** The faults of a page's plan. */
export const faultsOf = (
  scans: ReadonlyArray<Scan>,
  rowsOf: ReadonlyMap<string, number>,
  counts: boolean,
  most = rowsMax
): ReadonlyArray<string> => {
  const whole = scans.filter(
    ({ table, type }) => type === "Seq Scan" && !counts && rowsOf.get(table)! > smallMax && !readWhole.has(table)
  )
  const rows = scans.reduce((sum, scan) => sum + scan.rows, 0)
  return [
    ...whole.map(({ table }) => `reads all of ${table}`),
    ...(rows > (counts ? countedMax : most)
      ? [`reads ${rows} rows: ${scans.map((scan) => `${scan.rows} by ${scan.index ?? scan.type}`).join(", ")}`]
      : [])
  ]
}

/** The number of rows of each table. */
export const countRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const tables = yield* sql<{ readonly name: string; readonly rows: number }>`
    SELECT relname AS name, reltuples::int4 AS rows FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`
  return new Map(tables.map(({ name, rows }) => [name, rows]))
})

interface Reading {
  readonly authorization?: string
  /** The most rows that a page may read. */
  readonly most?: number
  /** The most statements of a page. */
  readonly statementsMax?: number
  /** The most values of each filter. */
  readonly valuesMax?: number
}

/** Reads two pages of a list with each filter. Returns the faults of their plans, and the tables that they read. */
export const readWithEveryFilter = Effect.fnUntraced(function* (
  operation: Operation,
  { authorization, most, statementsMax = Number.POSITIVE_INFINITY, valuesMax }: Reading = {}
) {
  const { ask } = yield* Conversation
  const rowsOf = yield* countRows
  const request = { ...requestOf(operation), ...(authorization !== undefined && { authorization }) }
  // The first request with a key loads the license, whose cost does not depend on the list.
  if (operation.credential === "license key") yield* ask(operation, request)
  const complaints: Array<string> = []
  const read = new Set<string>()
  for (const query of queriesOf(operation, valuesMax)) {
    const first = `?limit=200${query}`
    const { answer, statements } = yield* capture(ask(operation, { ...request, query: first }))
    assert.strictEqual(answer.status, 200, `${operation.id}: ${answer.text.slice(0, 300)}`)
    const { next } = pageOf(answer)
    const second =
      next === null ? [] : (yield* capture(ask(operation, { ...request, query: `${first}&cursor=${next}` }))).statements
    const count = Math.max(statements.length, second.length)
    if (count > statementsMax) complaints.push(`${query}: a page takes ${count} statements`)
    // A feed runs the same statement again for each scan.
    const each = new Map([...statements, ...second].map((statement) => [statement.text, statement]))
    for (const statement of each.values()) {
      for (const planning of planningsOf(statement)) {
        const scans = yield* scansOf(statement, planning)
        for (const { table } of scans) read.add(table)
        const faults = faultsOf(scans, rowsOf, query === "&include_total=true", most)
        complaints.push(...faults.map((fault) => `${query}: ${planning.name} it ${fault}`))
      }
    }
  }
  return { complaints, read, rowsOf }
})
