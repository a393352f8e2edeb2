import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../support/http/TestServer.ts"

layer(TestServer.layer)("Product versions over HTTP", (it) => {
  it.effect("are created, read and deleted, but not updated", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { id } = yield* client.products.create({ payload: { name: "P", code: "p" } })
      const path = `/api/v1/products/${id}/versions`
      const created = yield* send({
        method: "POST",
        path,
        body: { version: "1.0", released_at: "2030-01-01T00:00:00+02:00" }
      })
      assert.strictEqual(created.status, 201)
      const { data } = created.json as { data: { id: string; released_at: string } }
      assert.strictEqual(data.released_at, "2029-12-31T22:00:00.000Z")
      const one = `${path}/${data.id}`
      assert.deepStrictEqual(((yield* send({ path: one })).json as { data: unknown }).data, data)
      assert.strictEqual((yield* send({ method: "PATCH", path: one, body: {} })).status, 405)
      const list = yield* client.versions.list({ params: { id }, query: { version: "1.0" } })
      assert.lengthOf(list.items, 1)
      assert.strictEqual((yield* send({ method: "DELETE", path: one })).status, 204)
      const missing = yield* send({ path: one })
      assert.deepStrictEqual(
        [missing.status, missing.error.code, missing.error.detail],
        [404, "NOT_FOUND", "version_id"]
      )
    })
  )

  it.effect("are refused if a version is taken or a request is invalid", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { id } = yield* client.products.create({ payload: { name: "P", code: "refusals" } })
      yield* client.versions.create({ params: { id }, payload: { version: "1.0" } })
      const cases = [
        [{ version: "1.0" }, 409, "DUPLICATE_VERSION", "version"],
        [{ version: "" }, 422, "VALIDATION_ERROR", "version"],
        [{}, 422, "VALIDATION_ERROR", "version"],
        [{ version: "2.0", released_at: "2030-02-30T00:00:00Z" }, 422, "VALIDATION_ERROR", "released_at"],
        [{ version: "2.0", released_at: null }, 400, "INVALID_JSON", "released_at"]
      ] as const
      for (const [body, status, code, detail] of cases) {
        const { error, ...answer } = yield* send({ method: "POST", path: `/api/v1/products/${id}/versions`, body })
        assert.deepStrictEqual([answer.status, error.code, error.detail], [status, code, detail])
      }
    })
  )
})
