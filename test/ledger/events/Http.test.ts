import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../support/http/TestServer.ts"

const path = "/api/v1/events"

interface Feed {
  readonly data: ReadonlyArray<{ readonly sequence: number; readonly created_at: string; readonly metadata: object }>
  readonly page_info: { readonly next_cursor: number | null }
}

layer(TestServer.layer)("The event feed over HTTP", (it) => {
  it.effect("is read in pages whose cursor is an integer", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      for (const code of ["a", "b", "c"]) yield* client.products.create({ payload: { name: "P", code } })
      const first = (yield* send({ path: `${path}?limit=2&resource_type=product` })).json as Feed
      assert.lengthOf(first.data, 2)
      const last = first.data[1]?.sequence
      assert.strictEqual(first.page_info.next_cursor, last)
      const second = (yield* send({ path: `${path}?limit=2&resource_type=product&cursor=${last}` })).json as Feed
      assert.deepStrictEqual(
        second.data.map(({ sequence }) => sequence),
        [(last ?? 0) - 1]
      )
      assert.isNull(second.page_info.next_cursor)
    })
  )

  it.effect("contains the request and the time of an event", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const headers = { "x-request-id": "req-of-this-test" }
      yield* send({ method: "POST", path: "/api/v1/products", headers, body: { name: "P", code: "named" } })
      const [event] = ((yield* send({ path: `${path}?limit=1` })).json as Feed).data
      assert.deepInclude(event?.metadata, { request_id: "req-of-this-test", code: "named" })
      assert.match(event?.created_at ?? "", /^\d{4}-\d\d-\d\dT.*Z$/)
      const page = yield* client.events.list({ query: { event_type: "product.created", limit: 1 } })
      assert.strictEqual(page.items[0]?.sequence, event?.sequence)
    })
  )

  it.effect("refuses invalid and unknown parameters", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const faults = [
        "cursor=0",
        "cursor=-1",
        "cursor=x",
        "cursor=9007199254740992",
        "limit=0",
        "limit=1.5",
        "limit=",
        "actor_type=user",
        "from=2030-01-01"
      ]
      for (const query of faults) {
        const { error, status } = yield* send({ path: `${path}?${query}` })
        assert.deepStrictEqual([status, error.code, error.detail], [400, "INVALID_QUERY", query.split("=")[0]], query)
      }
      for (const query of ["limit=500", "event_type=unknown.thing", "cursor=9007199254740991"]) {
        assert.strictEqual((yield* send({ path: `${path}?${query}` })).status, 200, query)
      }
    })
  )
})
