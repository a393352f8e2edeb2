import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../support/http/TestServer.ts"

layer(TestServer.layer)("Features over HTTP", (it) => {
  it.effect("are created, read, updated and deleted", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { id } = yield* client.products.create({ payload: { name: "P", code: "p" } })
      const body = { name: "Export", code: "export", metadata: { unit: "page" } }
      const created = yield* send({ method: "POST", path: `/api/v1/products/${id}/features`, body })
      assert.strictEqual(created.status, 201)
      const { data } = created.json as { data: { id: string; created_at: string } }
      assert.deepStrictEqual<object>(data, { ...body, id: data.id, product_id: id, created_at: data.created_at })
      const params = { id: data.id }
      assert.strictEqual((yield* client.features.update({ params, payload: { name: "Print" } })).name, "Print")
      assert.strictEqual((yield* client.features.get({ params })).name, "Print")
      const list = yield* client.features.list({ params: { id }, query: { code: "export" } })
      assert.lengthOf(list.items, 1)
      const removed = yield* send({ method: "DELETE", path: `/api/v1/features/${data.id}` })
      assert.deepStrictEqual([removed.status, removed.text], [204, ""])
      assert.strictEqual((yield* Effect.flip(client.features.get({ params })))._tag, "Refusal")
    })
  )

  it.effect("are refused if a code is taken, unknown fields are sent, or an id is unknown", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { id } = yield* client.products.create({ payload: { name: "P", code: "refusals" } })
      const feature = yield* client.features.create({ params: { id }, payload: { name: "A", code: "a" } })
      const cases = [
        ["POST", `/products/${id}/features`, { name: "B", code: "a" }, 409, "DUPLICATE_CODE"],
        ["POST", `/products/${id}/features`, { name: "B", code: "b", product_id: "x" }, 400, "INVALID_JSON"],
        ["POST", `/products/${feature.id}/features`, { name: "B", code: "b" }, 404, "NOT_FOUND"],
        ["PATCH", `/features/${id}`, {}, 404, "NOT_FOUND"],
        ["PATCH", `/features/${feature.id}`, { code: "" }, 422, "VALIDATION_ERROR"],
        ["DELETE", "/features/none", undefined, 404, "NOT_FOUND"]
      ] as const
      for (const [method, path, body, status, code] of cases) {
        const answer = yield* send({ method, path: `/api/v1${path}`, ...(body && { body }) })
        assert.deepStrictEqual([answer.status, answer.error.code], [status, code], `${method} ${path}`)
      }
    })
  )
})
