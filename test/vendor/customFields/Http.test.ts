import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../support/http/TestServer.ts"

const text = { resource_type: "customer", code: "note", name: "Note", value_type: "string" } as const

layer(TestServer.layer)("Custom fields over HTTP", (it) => {
  it.effect("are defined, read, updated and deleted", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { id } = yield* client.products.create({ payload: { name: "P", code: "p" } })
      const path = `/api/v1/products/${id}/custom-fields`
      const created = yield* send({ method: "POST", path, body: text })
      assert.strictEqual(created.status, 201)
      const { data } = created.json as { data: { id: string } }
      const one = `${path}/${data.id}`
      assert.deepStrictEqual(((yield* send({ path: one })).json as { data: unknown }).data, data)
      for (const field of ["resource_type", "value_type"] as const) {
        const { error, status } = yield* send({ method: "PATCH", path: one, body: { [field]: text[field] } })
        assert.deepStrictEqual([status, error.code, error.detail], [400, "INVALID_JSON", field])
      }
      assert.strictEqual((yield* send({ method: "PATCH", path: one, body: { name: "Remark" } })).status, 200)
      const list = yield* client["custom-fields"].list({ params: { id }, query: { resource_type: "customer" } })
      assert.deepStrictEqual(
        list.items.map(({ name }) => name),
        ["Remark"]
      )
      assert.strictEqual((yield* send({ method: "DELETE", path: one })).status, 204)
      const missing = yield* send({ path: one })
      assert.deepStrictEqual([missing.status, missing.error.detail], [404, "field_id"])
    })
  )

  it.effect("refuse options that repeat or are missing", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { id } = yield* client.products.create({ payload: { name: "P", code: "options" } })
      for (const enum_options of [["a", "a"], [""], []]) {
        const body = { ...text, value_type: "enum", enum_options }
        const { error, status } = yield* send({ method: "POST", path: `/api/v1/products/${id}/custom-fields`, body })
        assert.deepStrictEqual([status, error.code], [422, "VALIDATION_ERROR"])
        assert.match(error.detail ?? "", /^enum_options/)
      }
    })
  )

  it.effect("accept values of customers: 200 with the value, 204 without a body when cleared", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { id } = yield* client.products.create({ payload: { name: "P", code: "values" } })
      const customer = yield* client.customers.create({ payload: { name: "C", code: "c" } })
      const field = yield* client["custom-fields"].create({ params: { id }, payload: text })
      const path = `/api/v1/customers/${customer.id}/custom-fields`
      const put = (body: unknown) => send({ method: "PUT", path: `${path}/${field.id}`, body })
      const set = yield* put({ string_value: "hello" })
      assert.strictEqual(set.status, 200)
      const { data } = set.json as { data: object & { readonly updated_at: string } }
      const { id: definition_id, created_at: _, ...definition } = field
      assert.deepStrictEqual<object>(data, {
        ...definition,
        definition_id,
        resource_id: customer.id,
        string_value: "hello",
        updated_at: data.updated_at
      })
      assert.deepStrictEqual(((yield* send({ path })).json as { data: unknown }).data, [data])
      const cleared = yield* put({ clear: true })
      assert.deepStrictEqual([cleared.status, cleared.text], [204, ""])
      assert.deepStrictEqual(((yield* send({ path })).json as { data: unknown }).data, [])
    })
  )

  it.effect("refuse values with the code and field that explain why", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { id } = yield* client.products.create({ payload: { name: "P", code: "refused" } })
      const customer = yield* client.customers.create({ payload: { name: "C", code: "refused" } })
      const { id: field } = yield* client["custom-fields"].create({ params: { id }, payload: text })
      const own = `${customer.id}/custom-fields/${field}`
      const cases = [
        [own, {}, 422, "VALIDATION_ERROR"],
        [own, { string_value: "a", integer_value: 1 }, 422, "VALIDATION_ERROR"],
        [own, { integer_value: 1 }, 422, "CUSTOM_FIELD_TYPE_MISMATCH"],
        [own, { integer_value: 2 ** 53 }, 422, "VALIDATION_ERROR"],
        [own, { string_value: null }, 400, "INVALID_JSON"],
        [own, { string_value: 1 }, 400, "INVALID_JSON"],
        [own, { value: "a" }, 400, "INVALID_JSON"],
        [`none/custom-fields/${field}`, { integer_value: 1.5 }, 404, "NOT_FOUND"],
        [`${customer.id}/custom-fields/none`, { integer_value: 1.5 }, 404, "NOT_FOUND"]
      ] as const
      for (const [path, body, status, code] of cases) {
        const { error, ...answer } = yield* send({ method: "PUT", path: `/api/v1/customers/${path}`, body })
        assert.deepStrictEqual([answer.status, error.code], [status, code], `${path} ${JSON.stringify(body)}`)
      }
    })
  )

  it.effect("accept values of licenses", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { id: product_id } = yield* client.products.create({ payload: { name: "P", code: "licensed" } })
      const policy = { name: "A", code: "a", license_type: "perpetual" } as const
      const { id: policy_id } = yield* client.policies.create({ params: { id: product_id }, payload: policy })
      const { license } = yield* client.licenses.create({ payload: { product_id, policy_id } })
      const field = yield* client["custom-fields"].create({
        params: { id: product_id },
        payload: { ...text, resource_type: "license" }
      })
      const params = { id: license.id, field_id: field.id }
      const set = yield* client["custom-fields"].setLicenseValue({ params, payload: { string_value: "a" } })
      const listed = yield* client["custom-fields"].listLicenseValues({ params, query: {} })
      assert.deepStrictEqual<unknown>(listed.items, [set])
      assert.isUndefined(yield* client["custom-fields"].setLicenseValue({ params, payload: { clear: true } }))
      yield* client.licenses.revoke({ params })
      const refusal = yield* Effect.flip(
        client["custom-fields"].setLicenseValue({ params, payload: { string_value: "a" } })
      )
      assert.strictEqual(refusal._tag === "Refusal" && refusal.code, "LICENSE_STATE_CONFLICT")
    })
  )
})
