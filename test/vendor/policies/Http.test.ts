import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const valid = { name: "Pro", code: "pro", license_type: "trial" }

layer(TestServer.layer)("Policies over HTTP", (it) => {
  it.effect("are created, read, updated and deleted", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { id } = yield* client.products.create({ payload: { name: "P", code: "p" } })
      const created = yield* send({ method: "POST", path: `/api/v1/products/${id}/policies`, body: valid })
      assert.strictEqual(created.status, 201)
      const { data } = created.json as { data: { id: string; max_floating_users?: number } }
      const path = `/api/v1/policies/${data.id}`
      const read = yield* send({ path })
      assert.deepStrictEqual((read.json as { data: unknown }).data, data)
      assert.notProperty(data, "max_floating_users")
      const patch = (body: unknown) => send({ method: "PATCH", path, body })
      assert.strictEqual(
        ((yield* patch({ max_floating_users: 3 })).json as typeof created.json & { data: typeof data }).data
          .max_floating_users,
        3
      )
      assert.notProperty(
        ((yield* patch({ max_floating_users: null })).json as { data: object }).data,
        "max_floating_users"
      )
      const list = yield* client.policies.list({ params: { id }, query: { license_type: "trial" } })
      assert.deepStrictEqual(
        list.items.map((policy) => policy.id),
        [data.id]
      )
      assert.strictEqual((yield* send({ method: "DELETE", path })).status, 204)
      assert.strictEqual((yield* send({ path })).status, 404)
    })
  )

  it.effect("are refused with a field's path when a request is invalid", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { id } = yield* client.products.create({ payload: { name: "P", code: "faulty" } })
      const faults = [
        [{ ...valid, license_type: "forever" }, 422, "VALIDATION_ERROR", "license_type"],
        [{ ...valid, code: "Not A Code" }, 422, "VALIDATION_ERROR", "code"],
        [{ ...valid, floating_timeout_minutes: 0 }, 422, "VALIDATION_ERROR", "floating_timeout_minutes"],
        [{ ...valid, max_floating_users: -1 }, 422, "VALIDATION_ERROR", "max_floating_users"],
        [{ ...valid, max_activations: 1.5 }, 422, "VALIDATION_ERROR", "max_activations"],
        [{ ...valid, max_activations: "1" }, 400, "INVALID_JSON", "max_activations"],
        [{ ...valid, max_floating_users: null }, 400, "INVALID_JSON", "max_floating_users"],
        [{ ...valid, color: "red" }, 400, "INVALID_JSON", "color"],
        [{ name: "Pro", code: "pro" }, 422, "VALIDATION_ERROR", "license_type"]
      ] as const
      for (const [body, status, code, detail] of faults) {
        const answer = yield* send({ method: "POST", path: `/api/v1/products/${id}/policies`, body })
        assert.deepStrictEqual([answer.status, answer.error.code, answer.error.detail], [status, code, detail])
      }
      const list = yield* send({ path: `/api/v1/products/${id}/policies?license_type=forever` })
      assert.deepStrictEqual([list.status, list.error.code, list.error.detail], [400, "INVALID_QUERY", "license_type"])
    })
  )

  it.effect("report an unknown product or policy before an invalid body, and after invalid JSON", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const requests = [
        { method: "POST", path: "/api/v1/products/none/policies" },
        { method: "PATCH", path: "/api/v1/policies/none" }
      ]
      for (const request of requests) {
        const unknown = yield* send({ ...request, body: { name: "" } })
        assert.deepStrictEqual([unknown.status, unknown.error.code, unknown.error.detail], [404, "NOT_FOUND", "id"])
        const unreadable = yield* send({ ...request, body: { name: 1 } })
        assert.deepStrictEqual([unreadable.status, unreadable.error.code], [400, "INVALID_JSON"])
      }
    })
  )

  it.effect("have public trials only if they are of the type trial, with duration_days", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { id } = yield* client.products.create({ payload: { name: "P", code: "trial-policies" } })
      const path = `/api/v1/products/${id}/policies`
      const create = (body: object) =>
        send({ method: "POST", path, body: { name: "P", code: "trial", public_trial: true, ...body } })
      const subscription = yield* create({ license_type: "subscription", duration_days: 3 })
      assertRefused(subscription, 422, "VALIDATION_ERROR", "public_trial")
      assertRefused(yield* create({ license_type: "trial" }), 422, "VALIDATION_ERROR", "duration_days")
      const policy = assertAnswered(yield* create({ license_type: "trial", duration_days: 3 }), 201) as { id: string }
      const update = (body: object) => send({ method: "PATCH", path: `/api/v1/policies/${policy.id}`, body })
      assertRefused(yield* update({ duration_days: null }), 422, "VALIDATION_ERROR", "duration_days")
      assertRefused(yield* update({ license_type: "subscription" }), 422, "VALIDATION_ERROR", "public_trial")
      assertAnswered(yield* update({ license_type: "subscription", public_trial: false }), 200)
      const plain = yield* client.policies.create({
        params: { id },
        payload: { name: "P", code: "plain", license_type: "trial" }
      })
      assert.isFalse(plain.public_trial)
    })
  )
})
