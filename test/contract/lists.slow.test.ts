/**
 * Lists of tens of thousands of rows: an index serves every filter of every list, so the cost of a page depends on its
 * rows and not on the table. The statements are those that the service runs for requests over HTTP.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { timedPolicy } from "../bench/rows/scaleRows.ts"
import { TestServer } from "../support/http/TestServer.ts"
import { Conversation, operationOf } from "./cases/Conversation.ts"
import { bodyOf } from "./cases/Fixtures.ts"
import {
  countRows,
  faultsOf,
  ids,
  layerManyRows,
  lists,
  manyMin,
  pageOf,
  readWithEveryFilter,
  requestOf,
  sizes
} from "./cases/ManyRows.ts"
import { capture, planningsOf, scansOf } from "./cases/Plans.ts"
import { productLists } from "./cases/ProductLists.ts"
import { type Operation, operations } from "./cases/Surface.ts"

interface Row {
  readonly id?: string
  readonly sequence?: number
  readonly definition_id?: string
  readonly feature_id?: string
  readonly license_id?: string
  readonly status?: string
  readonly customer_name?: string
  readonly customer_email?: string
  readonly expanded: { readonly customer?: { readonly name: string; readonly email?: string } }
  readonly created_at?: string
  readonly first_seen_at?: string
}

/** The rows of a list, page by page; `between` runs after each but the last. */
const walk = Effect.fnUntraced(function* (
  operation: Operation,
  { between = Effect.void, pages = Number.POSITIVE_INFINITY, query = "" }: Walk
) {
  const { ask } = yield* Conversation
  const rows: Array<Row> = []
  let cursor: string | number | null = null
  do {
    const place: string = cursor === null ? "" : `&cursor=${cursor}`
    const page = pageOf<Row>(yield* ask(operation, { ...requestOf(operation), query: `?limit=200${query}${place}` }))
    rows.push(...page.rows)
    cursor = page.next
    if (cursor !== null) yield* between
  } while (cursor !== null && rows.length < pages * 200)
  return rows
})

interface Walk {
  readonly between?: Effect.Effect<unknown>
  readonly pages?: number
  readonly query?: string
}

const keysOf = (rows: ReadonlyArray<Row>) =>
  rows.map(
    ({ id, sequence, definition_id, feature_id, license_id }) =>
      id ?? sequence ?? definition_id ?? feature_id ?? license_id
  )

/**
 * The operation that adds a row to a list: the POST of the same path, or an activation for a list by license key. Any change
 * adds a row to a feed.
 */
const makerOf = ({ credential, path }: Operation) =>
  operations.find((operation) => operation.path === path && operation.method === "POST") ??
  operationOf(credential === "license key" ? "activateLicense" : "createProduct")

/** On a busy machine the longest of them, of twelve seconds, took a minute. */
const minutes = 5 * 60_000

layer(layerManyRows, { timeout: minutes })("Lists", (it) => {
  // Over the same rows, of which the tests below add some and let others expire.
  describe("of a token for some products", () => productLists(it))

  for (const operation of lists) {
    it.effect(
      `${operation.id} is served by indexes with every filter`,
      () =>
        Effect.gen(function* () {
          const { complaints, read, rowsOf } = yield* readWithEveryFilter(operation)
          assert.deepStrictEqual(complaints, [])
          const most = Math.max(...[...read].map((table) => rowsOf.get(table)!))
          assert.isAtLeast(most, manyMin, `give scaleRows.ts rows for this list, which reads ${[...read].join(", ")}`)
        }),
      minutes
    )
  }

  it.effect("search is served by indexes for any text", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      const rowsOf = yield* countRows
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

  let devices = 0
  const fixture = {
    ids,
    licenseKey: "",
    fingerprint: "",
    featureCode: "",
    productCode: "",
    trialPolicyCode: "",
    leaseToken: ""
  }

  it.effect("have 50 rows on a page by default, and at most 200", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      for (const operation of lists) {
        const rowsOf = (query: string) =>
          Effect.map(ask(operation, { ...requestOf(operation), query }), (answer) => pageOf(answer).rows.length)
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
          // The records that the example links to are not in the fixture.
          const example = bodyOf(maker, { ...fixture, fingerprint: `walk-${++devices}` }) as Record<string, unknown>
          const { order_id: _, subscription_id: __, ...body } = example
          const answer = yield* ask(maker, { ...requestOf(maker), body })
          assert.isBelow(answer.status, 300, `${maker.id}: ${answer.text}`)
        })
        const rows = yield* walk(operation, { pages: 8 })
        const undisturbed = keysOf(rows)
        const disturbed = keysOf(yield* walk(operation, { pages: 8, between: add }))
        assert.strictEqual(new Set(undisturbed).size, undisturbed.length)
        assert.deepStrictEqual(disturbed, undisturbed)
        const times = rows.map(({ created_at, first_seen_at = "" }) => created_at ?? first_seen_at)
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
        const all = yield* walk(list, { query: "&expand=customer" })
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
            const named = shown.filter(({ customer_email, customer_name, expanded: { customer } }) =>
              [customer_name, customer_email, customer?.name, customer?.email].join(" ").toLowerCase().includes(part)
            )
            const found = keysOf(yield* walk(list, { query: `${query}&q=${part}`, pages: 1 }))
            assert.deepStrictEqual(found, keysOf(named).slice(0, 200), `${state} ${part}`)
          }
        }
      }),
    minutes
  )
})
