/** Licenses by a part of their customer's name or address. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { LicenseList } from "../../../src/licensing/management/LicenseList.ts"
import { instant } from "../../../src/platform/postgres/driver/Parameters.ts"
import { search } from "../../../src/platform/postgres/queries/Search.ts"
import { Policies } from "../../../src/vendor/policies/Policies.ts"
import { Products } from "../../../src/vendor/products/Products.ts"
import { Foundations, insertLicense, makePolicy } from "../../support/database/Services.ts"

const people: ReadonlyArray<readonly [name: string | null, email: string | null]> = [
  ["Ada Lovelace", "ada@example.com"],
  ["Grace Hopper", null],
  [null, "grace.hopper@example.com"],
  [null, null],
  ["Žofie Nováková", "zofie@příklad.cz"],
  ["ŽOFIE", null],
  ["Ελένη Παπαδοπούλου", null],
  ["王小明", "wang@example.cn"],
  ["Siân O'Connor", "sian.o'connor@example.com"],
  ["C:\\Program \\ 100% _under_", "a&b|c!(d):*<->'x'@example.com"],
  ["Li", "li@x.io"],
  ["x", "y"],
  ["🗝 Keys & Sons", "keys@example.com"]
]

const textOf = ([name, email]: (typeof people)[number]) => `${name ?? ""} ${email ?? ""}`.toLowerCase()

/** Every part of up to six characters of every text, and parts that some or no texts contain. */
const parts = [
  ...new Set(
    people.flatMap((person) => {
      const letters = [...textOf(person)]
      return letters.flatMap((_, from) =>
        [1, 2, 3, 4, 5, 6].map((length) => letters.slice(from, from + length).join(""))
      )
    })
  ),
  ...people.map(textOf),
  "LOVELACE",
  "ΠΑΠΑΔ",
  "příklad.cz",
  "ada lovelace ada@",
  "lovelace, ada",
  "zy",
  "%",
  "\\'",
  "''",
  "ada' | 'grace"
]

const Subject = Layer.mergeAll(LicenseList.layer, Policies.layer).pipe(
  Layer.provideMerge(Products.layer),
  Layer.provideMerge(Foundations)
)

layer(Subject, { timeout: 60_000 })("The license list", (it) => {
  it.effect("finds customers by any part of name or address, in every alphabet, including SQL wildcards", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { page } = yield* LicenseList
      const policy = yield* makePolicy()
      const now = yield* Clock.currentTimeMillis
      const licenses: Array<{ readonly id: string; readonly text: string }> = []
      for (const [index, person] of people.entries()) {
        const id = yield* insertLicense({ product_id: policy.product_id, policy_id: policy.id })
        yield* sql`
          UPDATE licenses SET customer_name = ${person[0]}, customer_email = ${person[1]}, created_at = ${instant(now + index)}
          WHERE id = ${id}`
        licenses.unshift({ id, text: textOf(person) })
      }
      for (const q of parts) {
        const expected = licenses.filter(({ text }) => text.includes(q.toLowerCase())).map(({ id }) => id)
        const { items } = yield* page({ q })
        assert.deepStrictEqual(
          items.map(({ id }) => id),
          expected,
          q
        )
        const pages: Array<string> = []
        let next = yield* page({ q, limit: 2 })
        for (;;) {
          pages.push(...next.items.map(({ id }) => id))
          if (next.next === undefined) break
          next = yield* page({ q, limit: 2, cursor: next.next })
        }
        assert.deepStrictEqual(pages, expected, `${q}, page by page`)
      }
      assert.lengthOf((yield* page({ q: "" })).items, people.length)
    })
  )

  it.effect("finds licenses by the name or address of the customer they are linked to", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { page } = yield* LicenseList
      const policy = yield* makePolicy()
      yield* sql`
        INSERT INTO customers (id, name, code, email, metadata, created_at, updated_at)
        VALUES ('cust_linked', 'Quillfeather GmbH', 'linked', 'buchhaltung@quill.example', '{}', now(), now())`
      const id = yield* insertLicense({ product_id: policy.product_id, policy_id: policy.id })
      yield* sql`UPDATE licenses SET customer_id = 'cust_linked', customer_name = 'Team West' WHERE id = ${id}`
      const found = (q: string) =>
        Effect.map(page({ q, include_total: "true" }), ({ items, total }) => [...items.map((item) => item.id), total])
      for (const q of ["quillfeather", "BUCHHALTUNG@", "team west"]) assert.deepStrictEqual(yield* found(q), [id, 1], q)
      yield* sql`
        INSERT INTO erasures (customer_id, phase, position, terms, actor_type, actor_id, request_id, requested_at)
        VALUES ('cust_linked', 'licenses', '', '{}', 'system', '', '', now())`
      assert.deepStrictEqual(yield* found("quillfeather"), [0])
    })
  )
})

describe("A search", () => {
  interface Row {
    readonly walked: boolean
  }
  /**
   * The queries made when the given number of a thousand sampled rows match, and a walk finds the given rows of either
   * kind.
   */
  const queriesFor = Effect.fnUntraced(function* (matching: number, found: ReadonlyArray<Row>, seen = 1_000) {
    const steps: Array<"walk" | "index"> = []
    const step = (name: "walk" | "index", rows: ReadonlyArray<Row>) =>
      Effect.sync(() => {
        steps.push(name)
        return rows
      })
    const rows = yield* search<Row, never>({
      rowsMin: 51,
      sample: { sampled: seen, matching },
      isScanned: ({ walked }) => walked,
      scan: () => step("walk", found),
      lookUp: step("index", [])
    })
    return [...steps, rows.length]
  })
  const rows = (count: number, walked = true) => Array.from({ length: count }, () => ({ walked }))

  it.effect("walks the list for common parts, and uses the index for rare or unknown ones", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* queriesFor(1_000, rows(51)), ["walk", 51])
      assert.deepStrictEqual(yield* queriesFor(3, rows(51)), ["walk", 51])
      assert.deepStrictEqual(yield* queriesFor(2, rows(51)), ["index", 0])
      assert.deepStrictEqual(yield* queriesFor(0, rows(51)), ["index", 0])
      assert.deepStrictEqual(yield* queriesFor(0, rows(51), 0), ["index", 0])
      assert.deepStrictEqual(yield* queriesFor(2, rows(51), 100), ["index", 0])
      assert.deepStrictEqual(yield* queriesFor(3, rows(51), 2_000), ["index", 0])
    })
  )

  it.effect("returns no page that the walk has not filled, even if the index found more", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* queriesFor(1_000, rows(50)), ["walk", "index", 0])
      assert.deepStrictEqual(yield* queriesFor(1_000, [...rows(50), ...rows(51, false)]), ["walk", "index", 0])
      assert.deepStrictEqual(yield* queriesFor(1_000, [...rows(51), ...rows(51, false)]), ["walk", 102])
    })
  )
})
