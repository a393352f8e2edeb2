/** Lists of tens of thousands of rows with tokens for some products: an index serves each, for products with many and few rows. */
import { assert, type Vitest } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { SqlClient } from "effect/sql"
import { ManagementScope } from "../../../src/access/Scope.ts"
import { hotProduct, idOf } from "../../bench/rows/scaleRows.ts"
import { Conversation, operationOf } from "./Conversation.ts"
import { countRows, faultsOf, type layerManyRows, lists, readWithEveryFilter } from "./ManyRows.ts"
import { capture, planningsOf, scansOf } from "./Plans.ts"

/** Lists that take a token and whose path names no product. */
const ownLists = lists.filter(
  ({ credential, id, params }) => credential === "token" && params.length === 0 && !/ApiKeys|Webhooks/.test(id)
)

/** A page for several products reads more rows than one for all, and looks up the product of a feed's or the customer of a search's rows. */
const most = 9_000

/** A product with few rows, and several of which one has most rows. */
const limits: { readonly [name: string]: ReadonlyArray<string> } = {
  "a small product": [idOf("prod", 200)],
  "several products": [hotProduct, idOf("prod", 200), idOf("prod", 3), idOf("prod", 4)]
}

const tokenFor = Effect.fnUntraced(function* (product_ids: ReadonlyArray<string>) {
  const scopes = ManagementScope.literals.filter((scope) => scope !== "admin")
  const body = { name: "limited", scopes, product_ids }
  return `Bearer ${(yield* (yield* Conversation).data<{ readonly token: string }>("createApiKey", { body })).token}`
})

/** All rows of a list, also of those with short pages. */
const walk = Effect.fnUntraced(function* (id: string, authorization: string) {
  const { ask } = yield* Conversation
  const rows: Array<string | number> = []
  let cursor: string | number | null = null
  do {
    const place: string = cursor === null ? "" : `&cursor=${cursor}`
    const { json } = yield* ask(operationOf(id), { query: `?limit=200${place}`, authorization })
    const { data, page_info } = json as Page
    rows.push(...data.map((row) => row.sequence ?? row.id!))
    cursor = page_info.next_cursor
  } while (cursor !== null)
  return rows
})

interface Page {
  readonly data: ReadonlyArray<{ readonly id?: string; readonly sequence?: number }>
  readonly page_info: { readonly next_cursor: string | number | null }
}

/** What each list has for the products, written a second time. */
const expected: { readonly [id: string]: string } = {
  listCustomers:
    "SELECT DISTINCT customer_id AS key FROM licenses WHERE product_id = ANY($1) AND customer_id IS NOT NULL",
  listLicenses: "SELECT id AS key FROM licenses WHERE product_id = ANY($1)",
  listAllDevices:
    "SELECT d.id AS key FROM devices d JOIN licenses l ON l.id = d.license_id WHERE l.product_id = ANY($1)",
  listEvents: `SELECT sequence AS key FROM events e WHERE
    resource_type <> 'customer' AND EXISTS (SELECT FROM licenses WHERE id = coalesce(e.metadata ->> 'license_id', e.resource_id) AND product_id = ANY($1))
    OR resource_type = 'customer' AND resource_id IN (SELECT customer_id FROM licenses WHERE product_id = ANY($1))`
}

export const productLists = (it: Vitest.MethodsNonLive<Layer.Success<typeof layerManyRows>>) => {
  for (const [name, products] of Object.entries(limits)) {
    for (const operation of ownLists) {
      it.effect(
        `${operation.id} is served by indexes with every filter, for ${name}`,
        () =>
          Effect.gen(function* () {
            const { complaints } = yield* readWithEveryFilter(operation, {
              authorization: yield* tokenFor(products),
              most,
              // The token for all products reads with all of them.
              valuesMax: 2,
              ...(name === "a small product" && { statementsMax: 20 })
            })
            assert.deepStrictEqual(complaints, [])
          }),
        300_000
      )
    }

    for (const [id, statement] of Object.entries(expected)) {
      it.effect(
        `${id} has each row once, page by page, for ${name}`,
        () =>
          Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            const authorization = yield* tokenFor(products)
            const found = yield* walk(id, authorization)
            const text = statement.replaceAll("$1", `ARRAY['${products.join("', '")}']`)
            const rows = yield* sql.unsafe<{ readonly key: string | number }>(text)
            assert.deepStrictEqual(found.toSorted(), rows.map(({ key }) => key).toSorted())
            assert.isNotEmpty(found)
          }),
        300_000
      )
    }

    it.effect(`search is served by indexes for any text, for ${name}`, () =>
      Effect.gen(function* () {
        const { ask } = yield* Conversation
        const authorization = yield* tokenFor(products)
        const rowsOf = yield* countRows
        for (const text of [
          "maria",
          "zx",
          "e",
          "nobody at all",
          "host-700",
          "fp-7-0",
          "order_700",
          "customer-700",
          "ABCD"
        ]) {
          const query = `?q=${encodeURIComponent(text)}`
          const { answer, statements } = yield* capture(ask(operationOf("search"), { query, authorization }))
          assert.strictEqual(answer.status, 200, answer.text)
          for (const statement of statements) {
            const faults = faultsOf(yield* scansOf(statement, planningsOf(statement)[0]!), rowsOf, false, most)
            assert.deepStrictEqual(faults, [], `${text}: ${statement.text}`)
          }
        }
      })
    )
  }
}
