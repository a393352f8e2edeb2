/** The list of exports. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { assertAnswered, assertRefused } from "../../../support/http/Http.ts"
import { idsIn, makeProduct, tokenFor } from "../../../support/http/ProductTokens.ts"
import { TestServer } from "../../../support/http/TestServer.ts"

const body = { report_kind: "usage-summary", format: "csv" }

interface Page {
  readonly data: ReadonlyArray<{ readonly id: string; readonly download_url: string }>
  readonly page_info: { readonly next_cursor: string | null; readonly total?: number }
}

layer(TestServer.layer)("The list of report exports", (it) => {
  it.effect("has the newest first, page by page, each as the export itself is shown", () =>
    Effect.gen(function* () {
      const { advance, client, send } = yield* TestServer
      const made: Array<string> = []
      for (const format of ["csv", "json", "pdf"] as const) {
        yield* advance(1)
        made.unshift((yield* client.reports.createExport({ payload: { report_kind: "usage-summary", format } })).id)
      }
      const path = "/api/v1/reports/exports"
      const first = assertAnswered(yield* send({ path: `${path}?limit=2` }), 200)
      assert.deepStrictEqual(idsIn({ data: first }), made.slice(0, 2))
      const { json } = yield* send({ path: `${path}?limit=2&include_total=true` })
      const { page_info } = json as Page
      assert.strictEqual(page_info.total, 3)
      const rest = (yield* send({ path: `${path}?limit=2&cursor=${page_info.next_cursor}` })).json as Page
      assert.deepStrictEqual([idsIn(rest), rest.page_info.next_cursor], [made.slice(2), null])
      const single = assertAnswered(yield* send({ path: `${path}/${made[2]}` }), 200)
      assert.deepStrictEqual(rest.data[0], single)
      const oldest = yield* client.reports.listExports({ query: { sort: "created_at", limit: 1 } })
      assert.deepStrictEqual(oldest.items[0]?.id, made[2])
    })
  )

  it.effect("shows a token for some products the exports that were limited to them", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const [one, other] = [yield* makeProduct, yield* makeProduct]
      const [ofOne, ofBoth] = [yield* tokenFor(one), yield* tokenFor(one, other)]
      const create = (ask: typeof ofOne.ask) =>
        Effect.map(
          ask("POST", "/reports/exports", body),
          (answer) => (assertAnswered(answer, 201) as { id: string }).id
        )
      const narrow = yield* create(ofOne.ask)
      const wide = yield* create(ofBoth.ask)
      const all = yield* send({ method: "POST", path: "/api/v1/reports/exports", body })
      assertAnswered(all, 201)
      assert.deepStrictEqual(idsIn((yield* ofOne.ask("GET", "/reports/exports")).json), [narrow])
      assert.sameMembers(idsIn((yield* ofBoth.ask("GET", "/reports/exports")).json), [narrow, wide])
      assertRefused(yield* ofOne.ask("GET", `/reports/exports/${wide}`), 404, "NOT_FOUND")
      const found = (query: string) =>
        Effect.map(ofBoth.ask("GET", `/reports/exports?${query}`), ({ json }) => idsIn(json))
      assert.sameMembers(yield* found("report_kind=usage-summary&status=completed"), [narrow, wide])
      assert.deepStrictEqual(yield* found("status=failed"), [])
    })
  )

  it.effect("takes the report and the status as filters", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const create = (report_kind: "usage-summary" | "usage-ledger") =>
        Effect.map(client.reports.createExport({ payload: { report_kind } }), ({ id }) => id)
      const [summary, failed, ledger] = [
        yield* create("usage-summary"),
        yield* create("usage-summary"),
        yield* create("usage-ledger")
      ]
      yield* sql`UPDATE report_exports SET status = 'failed' WHERE id = ${failed}`
      const found = (query: NonNullable<Parameters<typeof client.reports.listExports>[0]>["query"]) =>
        Effect.map(client.reports.listExports({ query }), ({ items }) => items.map(({ id }) => id))
      assert.deepStrictEqual(yield* found({ report_kind: "usage-ledger" }), [ledger])
      assert.deepStrictEqual(yield* found({ status: "failed" }), [failed])
      const completed = yield* found({ report_kind: "usage-summary", status: "completed" })
      assert.include(completed, summary)
      for (const id of [failed, ledger]) assert.notInclude(completed, id)
      const wrong = yield* send({ path: "/api/v1/reports/exports?status=done" })
      assertRefused(wrong, 400, "INVALID_QUERY", "status")
    })
  )
})
