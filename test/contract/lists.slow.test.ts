/**
 * Lists of tens of thousands of rows: an index serves every filter of every list, so the cost of a page depends on its
 * rows and not on the table. The statements are those that the service runs for requests over HTTP.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { totalMax } from "../../src/api/Paging.ts"
import { openSession } from "../../src/postgres/Postgres.ts"
import { recordFirstEvents, split } from "../bench/scalePartitions.ts"
import { fill, hotProduct, idOf, meteredFeature, type Sizes, timedPolicy } from "../bench/scaleRows.ts"
import { Database } from "../support/Database.ts"
import { TestServer } from "../support/TestServer.ts"
import { Conversation, operationOf } from "./Conversation.ts"
import { queriesOf } from "./FilterValues.ts"
import { bodyOf } from "./Fixtures.ts"
import { capture, layerCapturing, planningsOf, type Scan, scansOf } from "./Plans.ts"
import { type Operation, operations } from "./Surface.ts"

const sizes: Sizes = {
  products: 20_000,
  licenses: 20_000,
  customers: 20_000,
  devices: 40_000,
  events: 60_000,
  others: 20_000,
  crowd: 20_000
}

/** No sweep runs meanwhile: its events would appear in the feed. */
const settings = { rateFailures: 0, rateManagement: 0, rateRuntime: 0, rateActivation: 0, sweepSeconds: 86_400 }
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
  })
)
const Subject = Layer.merge(Conversation.layer, Filled).pipe(
  Layer.provideMerge(TestServer.layerOver(settings)),
  Layer.provideMerge(layerCapturing),
  Layer.provideMerge(Database.layerUrl)
)

/** Tables with fewer rows may be read in any way. */
const smallMax = 100
/** The most rows that a page of 200 may read from all tables: few compared with all rows. */
const rowsMax = 5_000
/** The most rows that a total may read: each one that it counts, with its policy or its state. */
const countedMax = 2 * totalMax + 100
/** Changes by time are searched per policy; there are far fewer policies than licenses. */
const readWhole = new Set(["policies"])
/** A list of fewer rows proves nothing. */
const manyMin = 1_000

/** Reports aggregate all rows, over other connections. */
const lists = operations.filter(
  ({ path, query }) => query.some(({ name }) => name === "limit") && !path.startsWith("/api/v1/reports/")
)

/** The resources in paths and bodies, which have many rows of every kind. */
const ids: { readonly [kind: string]: string } = {
  products: hotProduct,
  policies: timedPolicy,
  features: meteredFeature,
  licenses: idOf("lic", 1),
  customers: idOf("cust", 1)
}

/** The faults of a page's plan. */
const faultsOf = (
  scans: ReadonlyArray<Scan>,
  rowsOf: ReadonlyMap<string, number>,
  counts: boolean
): ReadonlyArray<string> => {
  const whole = scans.filter(
    ({ table, type }) => type === "Seq Scan" && !counts && rowsOf.get(table)! > smallMax && !readWhole.has(table)
  )
  const rows = scans.reduce((sum, scan) => sum + scan.rows, 0)
  return [
    ...whole.map(({ table }) => `reads all of ${table}`),
    ...(rows > (counts ? countedMax : rowsMax)
      ? [`reads ${rows} rows: ${scans.map((scan) => `${scan.rows} by ${scan.index ?? scan.type}`).join(", ")}`]
      : [])
  ]
}

interface Page {
  readonly data: ReadonlyArray<{
    readonly id?: string
    readonly sequence?: number
    readonly definition_id?: string
    readonly feature_id?: string
    readonly status?: string
    readonly customer_name?: string
    readonly customer_email?: string
    readonly created_at?: string
  }>
  readonly page_info: { readonly next_cursor: string | number | null }
}

/** The rows of a list, page by page; `between` runs after each but the last. */
const walk = Effect.fnUntraced(function* (
  operation: Operation,
  { between = Effect.void, pages = Number.POSITIVE_INFINITY, query = "" }: Walk
) {
  const { ask } = yield* Conversation
  const params = Object.fromEntries(operation.params.map(({ kind, name }) => [name, ids[kind]!]))
  const rows: Array<Page["data"][number]> = []
  let cursor: string | number | null = null
  do {
    const place: string = cursor === null ? "" : `&cursor=${cursor}`
    const answer = yield* ask(operation, { params, query: `?limit=200${query}${place}` })
    const { data, page_info } = answer.json as Page
    rows.push(...data)
    cursor = page_info.next_cursor
    if (cursor !== null) yield* between
  } while (cursor !== null && rows.length < pages * 200)
  return rows
})

interface Walk {
  readonly between?: Effect.Effect<unknown>
  readonly pages?: number
  readonly query?: string
}

const keysOf = (rows: Page["data"]) =>
  rows.map(({ id, sequence, definition_id, feature_id }) => id ?? sequence ?? definition_id ?? feature_id)

/** The operation that adds a row to a list: the POST of the same path. Any change adds a row to a feed. */
const makerOf = ({ path }: Operation) =>
  operations.find((operation) => operation.path === path && operation.method === "POST") ?? operationOf("createProduct")

layer(Subject, { timeout: "1 minute" })("Lists", (it) => {
  for (const operation of lists) {
    it.effect(
      `${operation.id} is served by indexes with every filter`,
      () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const { ask } = yield* Conversation
          const tables = yield* sql<{ readonly name: string; readonly rows: number }>`
          SELECT relname AS name, reltuples::int4 AS rows FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`
          const rowsOf = new Map(tables.map(({ name, rows }) => [name, rows]))
          const params = Object.fromEntries(operation.params.map(({ kind, name }) => [name, ids[kind]!]))
          const complaints: Array<string> = []
          const read = new Set<string>()
          for (const query of queriesOf(operation)) {
            const first = `?limit=200${query}`
            const { answer, statements } = yield* capture(ask(operation, { params, query: first }))
            assert.strictEqual(answer.status, 200, `${operation.id}: ${answer.text.slice(0, 300)}`)
            const { next_cursor } = (answer.json as { readonly page_info: { readonly next_cursor: unknown } }).page_info
            const second =
              next_cursor === null
                ? []
                : (yield* capture(ask(operation, { params, query: `${first}&cursor=${next_cursor}` }))).statements
            // A feed runs the same statement again for each page.
            const each = new Map([...statements, ...second].map((statement) => [statement.text, statement]))
            for (const statement of each.values()) {
              for (const planning of planningsOf(statement)) {
                const scans = yield* scansOf(statement, planning)
                for (const { table } of scans) read.add(table)
                const faults = faultsOf(scans, rowsOf, query === "&include_total=true")
                complaints.push(...faults.map((fault) => `${query}: ${planning.name} it ${fault}`))
              }
            }
          }
          assert.deepStrictEqual(complaints, [])
          const most = Math.max(...[...read].map((table) => rowsOf.get(table)!))
          assert.isAtLeast(most, manyMin, `give scaleRows.ts rows for this list, which reads ${[...read].join(", ")}`)
        }),
      60_000
    )
  }

  it.effect("search is served by indexes for any text", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { ask } = yield* Conversation
      const tables = yield* sql<{ readonly name: string; readonly rows: number }>`
        SELECT relname AS name, reltuples::int4 AS rows FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`
      const rowsOf = new Map(tables.map(({ name, rows }) => [name, rows]))
      const texts = [
        "maria",
        "zx",
        "e",
        "nobody at all",
        "host-700",
        "fp-7-0",
        "order_700",
        "sub_700",
        "customer-700",
        "ABCD"
      ]
      for (const text of texts) {
        const { answer, statements } = yield* capture(
          ask(operationOf("search"), { query: `?q=${encodeURIComponent(text)}` })
        )
        assert.strictEqual(answer.status, 200, answer.text)
        for (const statement of statements) {
          const planning = planningsOf(statement)[0]!
          assert.deepStrictEqual(
            faultsOf(yield* scansOf(statement, planning), rowsOf, false),
            [],
            `${text}: ${statement.text}`
          )
        }
      }
    })
  )

  const fixture = {
    ids,
    licenseKey: "",
    fingerprint: "walk",
    featureCode: "",
    productCode: "",
    trialPolicyCode: "",
    leaseToken: ""
  }

  it.effect("have 50 rows on a page by default, and at most 200", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      for (const operation of lists) {
        const params = Object.fromEntries(operation.params.map(({ kind, name }) => [name, ids[kind]!]))
        const rowsOf = (query: string) =>
          Effect.map(ask(operation, { params, query }), ({ json }) => (json as Page).data.length)
        const all = yield* rowsOf("?limit=200")
        for (const [query, most] of [
          ["", 50],
          ["?limit=1", 1],
          ["?limit=201", 200],
          ["?limit=9999999999", 200],
          [`?limit=${"9".repeat(400)}`, 200]
        ] as const) {
          assert.strictEqual(yield* rowsOf(query), Math.min(most, all), `${operation.id} ${query}`)
        }
      }
    })
  )

  for (const operation of lists) {
    it.effect(`${operation.id} returns the same rows while others are added`, () =>
      Effect.gen(function* () {
        const { ask } = yield* Conversation
        const maker = makerOf(operation)
        const add = Effect.gen(function* () {
          const params = Object.fromEntries(maker.params.map(({ kind, name }) => [name, ids[kind]!]))
          const answer = yield* ask(maker, { params, body: bodyOf(maker, fixture) })
          assert.isBelow(answer.status, 300, `${maker.id}: ${answer.text}`)
        })
        const rows = yield* walk(operation, { pages: 8 })
        const undisturbed = keysOf(rows)
        const disturbed = keysOf(yield* walk(operation, { pages: 8, between: add }))
        assert.strictEqual(new Set(undisturbed).size, undisturbed.length)
        assert.deepStrictEqual(disturbed, undisturbed)
        const times = rows.map(({ created_at = "" }) => created_at)
        assert.deepStrictEqual(times, times.toSorted().reverse(), "the newest come first")
      })
    )
  }

  it.effect(
    "listLicenses by state and part of a name returns each license once, in the state by its clock and policy",
    () =>
      Effect.gen(function* () {
        const { advance, client } = yield* TestServer
        const list = operationOf("listLicenses")
        yield* client.policies.update({ params: { id: timedPolicy }, payload: { grace_period_days: 20 } })
        yield* advance(40 * 86_400)
        const all = yield* walk(list, {})
        assert.isAtLeast(all.length, sizes.licenses)
        const states = [...new Set(all.map(({ status }) => status!))]
        assert.sameMembers(states, ["active", "grace_period", "expired", "suspended", "revoked"])
        // Parts that most, many and few licenses contain, so that different plans are used.
        const parts = ["e", "maria", "berkow", "hugo.berk"]
        for (const state of [undefined, ...states]) {
          const shown = all.filter(({ status }) => state === undefined || status === state)
          const query = state === undefined ? "" : `&status=${state}`
          assert.deepStrictEqual(keysOf(yield* walk(list, { query })), keysOf(shown), state)
          for (const part of parts) {
            const named = shown.filter(({ customer_name, customer_email }) =>
              `${customer_name ?? ""} ${customer_email ?? ""}`.toLowerCase().includes(part)
            )
            const found = keysOf(yield* walk(list, { query: `${query}&q=${part}`, pages: 1 }))
            assert.deepStrictEqual(found, keysOf(named).slice(0, 200), `${state} ${part}`)
          }
        }
      }),
    60_000
  )
})
