/** Sorting, counting and filtering of lists, over HTTP. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { assertAnswered, assertRefused } from "../support/http/Http.ts"
import { TestServer } from "../support/http/TestServer.ts"

interface Listed {
  readonly data: ReadonlyArray<{ readonly [field: string]: unknown }>
  readonly page_info: {
    readonly next_cursor: string | null
    readonly total?: number
    readonly total_is_capped?: boolean
  }
}

const makeCustomer = Effect.fnUntraced(function* (code: string, more: object = {}) {
  const { advance, client } = yield* TestServer
  yield* advance(1)
  return yield* client.customers.create({ payload: { name: `Name ${code}`, code, ...more } })
})

const ask = (path: string) => Effect.flatMap(TestServer, ({ send }) => send({ path: `/api/v1${path}` }))
const list = Effect.fnUntraced(function* (path: string) {
  const answer = yield* ask(path)
  assertAnswered(answer, 200)
  return answer.json as Listed
})
const codesOf = ({ data }: Listed) => data.map(({ code }) => code)

/** The codes of a list, read in pages of two. */
const walk = Effect.fnUntraced(function* (path: string, field = "code") {
  const found: Array<unknown> = []
  let cursor: string | null = null
  do {
    const page: Listed = yield* list(`${path}&limit=2${cursor === null ? "" : `&cursor=${cursor}`}`)
    found.push(...page.data.map((record) => record[field]))
    cursor = page.page_info.next_cursor
  } while (cursor !== null)
  return found
})

layer(TestServer.layer)("Customers", (it) => {
  it.effect("are sorted by a field in either direction, page by page, also where values are equal", () =>
    Effect.gen(function* () {
      const names = { b: "Same", d: "Same", a: "Zed", c: "Ann", e: "Same" }
      for (const [code, name] of Object.entries(names)) yield* makeCustomer(code, { name })
      assert.deepStrictEqual(yield* walk("/customers?sort=code"), ["a", "b", "c", "d", "e"])
      assert.deepStrictEqual(yield* walk("/customers?sort=-code"), ["e", "d", "c", "b", "a"])
      assert.deepStrictEqual(yield* walk("/customers?sort=created_at"), ["b", "d", "a", "c", "e"])
      assert.deepStrictEqual(yield* walk("/customers?sort=-created_at"), ["e", "c", "a", "d", "b"])
      assert.deepStrictEqual(yield* walk("/customers?"), ["e", "c", "a", "d", "b"])
      assert.deepStrictEqual(yield* walk("/customers?sort=name", "name"), ["Ann", "Same", "Same", "Same", "Zed"])
      const byName = yield* walk("/customers?sort=name")
      assert.deepStrictEqual(yield* walk("/customers?sort=-name"), byName.toReversed())
    })
  )

  it.effect("refuse an unknown sort with the known ones, and a cursor of another sort", () =>
    Effect.gen(function* () {
      const unknown = yield* ask("/customers?sort=email")
      assertRefused(unknown, 400, "INVALID_QUERY", "sort")
      for (const sort of ["created_at", "-created_at", "code", "name"]) assert.include(unknown.error.message, sort)
      const cursorOf = (query: string) =>
        Effect.map(list(`/customers?limit=1${query}`), ({ page_info }) => page_info.next_cursor!)
      const plain = yield* cursorOf("")
      const byCode = yield* cursorOf("&sort=code")
      const refused = [
        `cursor=${byCode}`,
        `cursor=${byCode}&sort=name`,
        `cursor=${byCode}&sort=-code`,
        `cursor=${plain}&sort=created_at`,
        `cursor=${Buffer.from("created_at cust_1 yesterday").toString("base64url")}&sort=created_at`,
        `cursor=${Buffer.from("code cust_1 a\0b").toString("base64url")}&sort=code`
      ]
      for (const query of refused) assertRefused(yield* ask(`/customers?${query}`), 400, "INVALID_QUERY", "cursor")
      yield* list(`/customers?cursor=${plain}&sort=-created_at`)
    })
  )

  it.effect("are filtered by the time of creation, and counted with every filter", () =>
    Effect.gen(function* () {
      const first = yield* makeCustomer("t1")
      const second = yield* makeCustomer("t2")
      const third = yield* makeCustomer("t3")
      const [from, to] = [first, third].map(({ created_at }) => new Date(created_at).toISOString())
      const between = `created_after=${from}&created_before=${to}`
      assert.deepStrictEqual(codesOf(yield* list(`/customers?${between}`)), [second.code])
      const { page_info } = yield* list(`/customers?created_after=${from}&include_total=true&limit=1`)
      assert.deepInclude(page_info, { total: 2, total_is_capped: false })
      const next = yield* list(
        `/customers?created_after=${from}&include_total=true&limit=1&cursor=${page_info.next_cursor}`
      )
      assert.deepStrictEqual(next.page_info, { next_cursor: null, total: 2, total_is_capped: false })
      assert.notProperty((yield* list("/customers?include_total=false")).page_info, "total")
      assertRefused(yield* ask("/customers?created_after=yesterday"), 400, "INVALID_QUERY", "created_after")
    })
  )

  it.effect("are found by an address in any case, and by metadata", () =>
    Effect.gen(function* () {
      yield* makeCustomer("m1", {
        email: "Ada@Example.com",
        metadata: { plan: "pro", seats: 5, active: true, tags: ["a"] }
      })
      yield* makeCustomer("m2", { metadata: { plan: "pro", seats: "5" } })
      yield* makeCustomer("m3", { metadata: { plan: "Pro", "a]b": "x" } })
      assert.deepStrictEqual(codesOf(yield* list("/customers?email=aDA@example.COM")), ["m1"])
      const found: ReadonlyArray<readonly [query: string, codes: Array<string>]> = [
        ["metadata[plan]=pro", ["m2", "m1"]],
        ["metadata%5Bplan%5D=pro&sort=code", ["m1", "m2"]],
        ["metadata[seats]=5", ["m2", "m1"]],
        ["metadata[seats]=5&metadata[active]=true", ["m1"]],
        ["metadata[a]b]=x", ["m3"]],
        ["metadata[tags]=a", []],
        ["metadata[none]=1", []],
        ["metadata[plan]=pro&code=m1", ["m1"]]
      ]
      for (const [query, codes] of found)
        assert.deepStrictEqual(codesOf(yield* list(`/customers?${query}`)), codes, query)
      const { page_info } = yield* list("/customers?metadata[plan]=pro&include_total=true&limit=1")
      assert.strictEqual(page_info.total, 2)
      for (const [query, name] of [
        ["metadata=pro", "metadata"],
        ["metadata[plan=pro", "metadata[plan"],
        ["metadata[a]=1&metadata[a]=2", "metadata[a]"],
        ["metadata[a]=%00", "metadata[a]"],
        ["metadata[%00]=a", "metadata[\0]"]
      ] as const) {
        assertRefused(yield* ask(`/customers?${query}`), 400, "INVALID_QUERY", name)
      }
      assertRefused(yield* ask("/products?metadata[plan]=pro"), 400, "INVALID_QUERY", "metadata[plan]")
      const { client } = yield* TestServer
      const typed = yield* client.customers.list({ query: { "metadata[plan]": "pro", sort: "code" } })
      assert.deepStrictEqual(
        typed.items.map(({ code }) => code),
        ["m1", "m2"]
      )
    })
  )
})

layer(TestServer.layer)("Licenses", (it) => {
  it.effect("are sorted by expiry, those without one last, with every state and with the records that they name", () =>
    Effect.gen(function* () {
      const { advance, client } = yield* TestServer
      const product = yield* client.products.create({ payload: { name: "P", code: "p" } })
      const policy = yield* client.policies.create({
        params: { id: product.id },
        payload: { name: "Metered", code: "metered", license_type: "consumption", max_activations: 1 }
      })
      const customer = yield* client.customers.create({ payload: { name: "C", code: "c" } })
      const now = policy.created_at
      const make = Effect.fnUntraced(function* (name: string, days: number | undefined) {
        yield* advance(1)
        const { license } = yield* client.licenses.create({
          payload: {
            product_id: product.id,
            policy_id: policy.id,
            customer_name: name,
            metadata: { name },
            ...(name === "b" && { customer_id: customer.id }),
            ...(days !== undefined && { expires_at: now + days * 86_400_000 })
          }
        })
        return license.id
      })
      for (const [name, days] of [
        ["d", undefined],
        ["b", 2],
        ["a", 1],
        ["e", undefined],
        ["c", 3]
      ] as const) {
        yield* make(name, days)
      }
      const ascending = ["a", "b", "c", "d", "e"]
      const names = (query: string) => walk(`/licenses?${query}`, "customer_name")
      assert.deepStrictEqual(yield* names("sort=expires_at"), ascending)
      assert.deepStrictEqual(yield* names("sort=-expires_at"), ascending.toReversed())
      assert.deepStrictEqual(yield* names("sort=created_at"), ["d", "b", "a", "e", "c"])
      assert.deepStrictEqual(yield* names("sort=created_at&status=active"), ["d", "b", "a", "e", "c"])
      assert.deepStrictEqual(yield* names("sort=-expires_at&status=active"), ascending.toReversed())
      assert.deepStrictEqual(yield* names("metadata[name]=c"), ["c"])
      assert.deepStrictEqual(yield* names("metadata[name]=c&q=d"), [])
      const total = Effect.fnUntraced(function* (query: string) {
        return (yield* list(`/licenses?include_total=true&limit=1&${query}`)).page_info.total
      })
      assert.strictEqual(yield* total(""), 5)
      yield* advance(1.5 * 86_400)
      const counts = {
        "status=active": 4,
        "status=expired": 1,
        "q=b": 1,
        "metadata[name]=a": 1,
        "status=active&q=a": 0
      }
      for (const [query, count] of Object.entries(counts)) assert.strictEqual(yield* total(query), count, query)
      const { data } = yield* list("/licenses?expand=product,policy,customer&sort=expires_at&limit=2")
      assert.deepStrictEqual(
        data.map(({ expanded }) => Object.entries(expanded as object).map(([kind, { id }]) => [kind, id])),
        [
          [
            ["product", product.id],
            ["policy", policy.id]
          ],
          [
            ["product", product.id],
            ["policy", policy.id],
            ["customer", customer.id]
          ]
        ]
      )
      assert.notProperty((yield* list("/licenses")).data[0], "expanded")
      assertRefused(yield* ask("/licenses?expand=order"), 400, "INVALID_QUERY", "expand")
    })
  )
})
