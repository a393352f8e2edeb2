/** Lists, feeds, reports and exports of a token for some products among many records of others. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { code, idsIn, makeLicense, makeProduct, tokenFor } from "../../support/http/ProductTokens.ts"
import { TestServer } from "../../support/http/TestServer.ts"

type Ask = Effect.Success<ReturnType<typeof tokenFor>>["ask"]

interface Page {
  readonly data: ReadonlyArray<{ readonly id?: string; readonly sequence?: number; readonly resource_id?: string }>
  readonly page_info: { readonly next_cursor: string | number | null; readonly total?: number }
}

/** All rows of a list, and the sizes of its pages. */
const walk = Effect.fnUntraced(function* (ask: Ask, path: string) {
  const rows: Array<Page["data"][number]> = []
  const sizes: Array<number> = []
  let cursor: string | number | null = null
  do {
    const answer = yield* ask("GET", cursor === null ? path : `${path}&cursor=${cursor}`)
    assertAnswered(answer, 200)
    const page = answer.json as Page
    rows.push(...page.data)
    sizes.push(page.data.length)
    cursor = page.page_info.next_cursor
  } while (cursor !== null)
  return { rows, sizes }
})

const idsOf = (rows: Page["data"]) => rows.map(({ id }) => id)

layer(TestServer.layer, { timeout: "1 minute" })("The license list", (it) => {
  it.effect("merges several products page by page, in each order, and counts them together", () =>
    Effect.gen(function* () {
      const { advance } = yield* TestServer
      const products = [yield* makeProduct, yield* makeProduct, yield* makeProduct]
      const licenses: Array<{ readonly id: string; readonly product: number; readonly days: number | undefined }> = []
      for (const [index, product] of [0, 1, 2, 1, 0, 2, 0, 0, 1, 2, 1, 0].entries()) {
        yield* advance(1)
        const days = (index * 5) % 12
        const expires_at = Date.UTC(2100, 0, 1 + days)
        licenses.push({ id: (yield* makeLicense(products[product]!, { expires_at })).id, product, days })
      }
      const newest = licenses.toReversed()
      const { ask } = yield* tokenFor(products[0]!, products[1]!)
      const own = newest.filter(({ product }) => product < 2)
      assert.deepStrictEqual(
        idsOf((yield* walk(ask, "/licenses?limit=2")).rows),
        own.map(({ id }) => id)
      )
      assert.deepStrictEqual(
        idsOf((yield* walk(ask, "/licenses?limit=3&sort=created_at")).rows),
        own.map(({ id }) => id).reverse()
      )
      const byExpiry = own.toSorted((a, b) => b.days! - a.days!).map(({ id }) => id)
      assert.deepStrictEqual(idsOf((yield* walk(ask, "/licenses?limit=4&sort=-expires_at")).rows), byExpiry)
      const counted = (yield* ask("GET", "/licenses?limit=1&include_total=true")).json as Page
      assert.strictEqual(counted.page_info.total, own.length)
      const first = own.filter(({ product }) => product === 0).map(({ id }) => id)
      assert.deepStrictEqual(idsIn((yield* ask("GET", `/licenses?product_id=${products[0]!.id}`)).json), first)
      assert.deepStrictEqual(idsIn((yield* ask("GET", `/licenses?policy_id=${products[0]!.policy}`)).json), first)
      assert.deepStrictEqual(idsIn((yield* ask("GET", `/licenses?policy_id=${products[2]!.policy}`)).json), [])
      assert.deepStrictEqual(idsIn((yield* ask("GET", `/licenses?product_id=${products[2]!.id}`)).json), [])
      const expanded = (yield* ask("GET", "/licenses?expand=product,policy&status=active&limit=1")).json as {
        readonly data: ReadonlyArray<{ readonly expanded: { readonly product: { readonly id: string } } }>
      }
      assert.strictEqual(expanded.data[0]!.expanded.product.id, products[own[0]!.product]!.id)
    })
  )
})

layer(TestServer.layer, { timeout: "1 minute" })("Lists among many records of other products", (it) => {
  it.effect("show devices in the list's order, with pages that may be short", () =>
    Effect.gen(function* () {
      const { client, connect } = yield* TestServer
      const [a, b] = [yield* makeProduct, yield* makeProduct]
      const devices: Array<string> = []
      for (const product of [a, b, a, b, b]) {
        const { license_key } = yield* makeLicense(product)
        const { data } = yield* (yield* connect({ licenseKey: license_key })).runtime.activate({
          payload: { fingerprint: code() }
        })
        if (product === a) devices.unshift(data.device_id)
      }
      const { ask } = yield* tokenFor(a)
      assert.deepStrictEqual(idsOf((yield* walk(ask, "/devices?limit=1")).rows), devices)
      const { items } = yield* client.devices.listAll({ query: { product_id: b.id } })
      assert.strictEqual(items.length, 3)
      for (const path of [`/devices?product_id=${b.id}`, `/devices?license_id=${items[0]!.license_id}`]) {
        const { data, page_info } = (yield* ask("GET", path)).json as Page
        assert.deepStrictEqual([data, page_info.next_cursor], [[], null], path)
      }
    })
  )

  it.effect("of customers give cursors that name no customer of others, in any order", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [a, b] = [yield* makeProduct, yield* makeProduct]
      const { ask } = yield* tokenFor(a)
      const own = Array.from({ length: 12 }, (_, n) => `Own ${String.fromCharCode(65 + n)}`)
      const insert = (names: ReadonlyArray<string>, product: typeof a, copies: number) => sql`
        WITH made AS (
          INSERT INTO customers (id, name, code, metadata, created_at, updated_at)
          SELECT 'cust_' || lower(replace(name, ' ', '_')), name, lower(replace(name, ' ', '-')), '{}',
            timestamptz '2029-01-01Z' + ordinal * interval '1 s', now()
          FROM jsonb_array_elements_text(${JSON.stringify(names)}::text::jsonb) WITH ORDINALITY AS given (name, ordinal)
          RETURNING id
        )
        INSERT INTO licenses (id, product_id, policy_id, customer_id, key_hash, license_key_prefix, license_key_last4, status,
          metadata, created_at, updated_at)
        SELECT 'lic_' || made.id || n, ${product.id}, ${product.policy}, made.id, sha256(convert_to(made.id || n, 'UTF8')),
          'LK-00000', '0000', 'active', '{}', now(), now()
        FROM made, generate_series(1, ${copies}::int4) AS n`
      // More licenses than those whose customers are read at once, and between two customers more others than are read at once.
      yield* insert(own, a, 200)
      const foreign = (name: string) => Array.from({ length: 1_100 }, (_, n) => `${name} Foreign ${n}`)
      yield* insert(own.slice(2, 4).flatMap(foreign), b, 1)
      for (const sort of ["name", "-name", "created_at", "-created_at"]) {
        const seen: Array<string> = []
        let cursor: string | number | null = null
        do {
          const path: string = `/customers?limit=1&sort=${sort}${cursor === null ? "" : `&cursor=${cursor}`}`
          const page = (yield* ask("GET", path)).json as Pick<Page, "page_info"> & {
            readonly data: ReadonlyArray<{ readonly name: string }>
          }
          seen.push(...page.data.map(({ name }) => name))
          cursor = page.page_info.next_cursor
          const plain = Buffer.from(String(cursor ?? ""), "base64url").toString()
          if (sort.endsWith("name")) assert.notInclude(plain, "Foreign", sort)
        } while (cursor !== null)
        assert.sameMembers(seen, own, sort)
      }
    })
  )

  it.effect("go on past events and activities of other products", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const [a, b] = [yield* makeProduct, yield* makeProduct]
      const first = yield* makeLicense(a)
      for (let n = 0; n < 30; n++)
        yield* client.licenses.update({ params: { id: (yield* makeLicense(b)).id }, payload: { metadata: { n } } })
      const last = yield* makeLicense(a)
      const { ask } = yield* tokenFor(a)
      for (const path of ["/events?limit=2", "/activities?limit=2", "/events?limit=2&resource_type=license"]) {
        const { rows } = yield* walk(ask, path)
        const text = JSON.stringify(rows)
        assert.include(text, first.id)
        assert.include(text, last.id)
        assert.notInclude(text, b.id)
        const sequences = rows.map(({ sequence }) => sequence!)
        assert.deepStrictEqual(
          sequences,
          sequences.toSorted((x, y) => y - x)
        )
      }
      const all = yield* client.events.list({ query: { limit: 200 } })
      const types = (yield* walk(ask, "/events?limit=2")).rows.map(({ sequence }) => sequence)
      const own = all.items.filter(
        ({ metadata, resource_id }) =>
          [a.id, a.policy, first.id, last.id].includes(resource_id ?? "") || metadata["product_id"] === a.id
      )
      assert.deepStrictEqual(
        types,
        own.map(({ sequence }) => sequence)
      )
    })
  )
})

layer(TestServer.layer, { timeout: "1 minute" })("Reports and exports", (it) => {
  /** A license of a product that has used a feature. */
  const used = Effect.fnUntraced(function* (amount: number) {
    const { client, connect } = yield* TestServer
    const product = yield* makeProduct
    const feature = yield* client.features.create({
      params: { id: product.id },
      payload: { name: "Feature", code: "metered" }
    })
    const { id, license_key } = yield* makeLicense(product)
    yield* client.licenses.assignFeature({ params: { id }, payload: { feature_id: feature.id } })
    const { runtime } = yield* connect({ licenseKey: license_key })
    yield* runtime.activate({ payload: { fingerprint: "f" } })
    yield* runtime.consume({ payload: { fingerprint: "f", feature_code: "metered", event_id: "e", amount } })
    return { ...product, license: id }
  })

  it.effect("have the figures of the token's products, and no others", () =>
    Effect.gen(function* () {
      const [a, b] = [yield* used(3), yield* used(5)]
      const { ask } = yield* tokenFor(a)
      for (const query of ["", "?bucket=1d", "?group_by=product_id", "?group_by=license_id", "?group_by=customer_id"]) {
        const { totals } = assertAnswered(yield* ask("GET", `/reports/usage-summary${query}`), 200) as {
          readonly totals: { readonly consumed: number }
        }
        assert.strictEqual(totals.consumed, 3, query)
      }
      const ledger = (yield* ask("GET", "/reports/usage-ledger")).json as {
        data: ReadonlyArray<{ license_id: string }>
      }
      assert.deepStrictEqual(
        ledger.data.map(({ license_id }) => license_id),
        [a.license]
      )
      for (const report_kind of ["usage-ledger", "usage-summary"]) {
        for (const format of ["json", "csv"]) {
          const made = yield* ask("POST", "/reports/exports", {
            report_kind,
            format,
            filters: { group_by: "license_id" }
          })
          if (report_kind === "usage-ledger") assertRefused(made, 422, "VALIDATION_ERROR")
          const body = {
            report_kind,
            format,
            ...(report_kind === "usage-summary" && { filters: { group_by: "license_id" } })
          }
          const { id, product_ids } = assertAnswered(yield* ask("POST", "/reports/exports", body), 201) as {
            readonly id: string
            readonly product_ids: ReadonlyArray<string>
          }
          assert.deepStrictEqual(product_ids, [a.id])
          const { text } = yield* ask("GET", `/reports/exports/${id}/download`)
          assert.include(text, a.license)
          assert.notInclude(text, b.license)
        }
      }
    })
  )

  it.effect("belong to the products of the token that made them", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const [a, b] = [yield* makeProduct, yield* makeProduct]
      const make = { report_kind: "usage-summary" } as const
      const [ofA, ofB, ofBoth] = [yield* tokenFor(a), yield* tokenFor(b), yield* tokenFor(a, b)]
      const exportOf = ({ ask }: typeof ofA) =>
        Effect.map(
          ask("POST", "/reports/exports", make),
          (answer) => (assertAnswered(answer, 201) as { id: string }).id
        )
      const ids = { a: yield* exportOf(ofA), b: yield* exportOf(ofB), both: yield* exportOf(ofBoth) }
      const { id: all } = yield* client.reports.createExport({ payload: make })
      const found = Effect.fnUntraced(function* ({ ask }: typeof ofA) {
        const names: Array<string> = []
        for (const [name, id] of Object.entries({ ...ids, all })) {
          const answers = [
            yield* ask("GET", `/reports/exports/${id}`),
            yield* ask("GET", `/reports/exports/${id}/download`)
          ]
          assert.strictEqual(answers[0]!.status, answers[1]!.status)
          if (answers[0]!.status === 200) names.push(name)
          else for (const answer of answers) assertRefused(answer, 404, "NOT_FOUND", "id")
        }
        return names
      })
      assert.deepStrictEqual(yield* found(ofA), ["a"])
      assert.deepStrictEqual(yield* found(ofB), ["b"])
      assert.deepStrictEqual(yield* found(ofBoth), ["a", "b", "both"])
    })
  )
})
