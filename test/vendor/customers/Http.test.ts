import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../support/http/TestServer.ts"

const path = "/api/v1/customers"

layer(TestServer.layer)("Customers over HTTP", (it) => {
  it.effect("are created, read, updated and deleted", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const body = { name: "Ada", code: "ada", email: "ada@example.com" }
      const created = yield* send({ method: "POST", path, body })
      assert.strictEqual(created.status, 201)
      const { data } = created.json as { data: { id: string } }
      const params = { id: data.id }
      assert.deepStrictEqual(((yield* send({ path: `${path}/${data.id}` })).json as { data: unknown }).data, data)
      const cleared = yield* client.customers.update({ params, payload: { email: null } })
      assert.notProperty(cleared, "email")
      assert.strictEqual((yield* send({ method: "DELETE", path: `${path}/${data.id}` })).status, 204)
      assert.strictEqual((yield* send({ path: `${path}/${data.id}` })).status, 404)
    })
  )

  it.effect("are refused if a code is taken or a request is invalid", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      yield* client.customers.create({ payload: { name: "Bob", code: "bob" } })
      const cases = [
        [{ name: "B", code: "bob" }, 409, "DUPLICATE_CODE", "code"],
        [{ name: "B", code: "b", email: "nobody" }, 422, "VALIDATION_ERROR", "email"],
        [{ name: "B", code: "b", email: null }, 400, "INVALID_JSON", "email"],
        [{ name: "x".repeat(256), code: "b" }, 422, "VALIDATION_ERROR", "name"],
        [{ name: "B", code: "b", metadata: [] }, 400, "INVALID_JSON", "metadata"]
      ] as const
      for (const [body, status, code, detail] of cases) {
        const { error, ...answer } = yield* send({ method: "POST", path, body })
        assert.deepStrictEqual([answer.status, error.code, error.detail], [status, code, detail])
      }
    })
  )

  it.effect("are listed in pages that the cursor connects", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      for (const code of ["one", "two", "three"]) {
        yield* client.customers.create({ payload: { name: "Paged", code, email: "paged@example.com" } })
      }
      const query = `${path}?email=paged%40example.com&limit=2`
      const first = yield* send({ path: query })
      const { data, page_info } = first.json as { data: Array<{ code: string }>; page_info: { next_cursor: string } }
      assert.deepStrictEqual(
        data.map(({ code }) => code),
        ["three", "two"]
      )
      const second = yield* send({ path: `${query}&cursor=${page_info.next_cursor}` })
      const rest = second.json as { data: Array<{ code: string }>; page_info: unknown }
      assert.deepStrictEqual([rest.data.map(({ code }) => code), rest.page_info], [["one"], { next_cursor: null }])
      const malformed = yield* send({ path: `${path}?cursor=nonsense` })
      assert.deepStrictEqual([malformed.status, malformed.error.code], [400, "INVALID_QUERY"])
    })
  )
})
