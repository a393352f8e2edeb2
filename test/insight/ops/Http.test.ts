import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Workers } from "../../../src/platform/workers/Workers.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { layerService } from "../../support/http/Webhooks.ts"
import { poll } from "../../support/rules/Poll.ts"

layer(TestServer.layer)("The operator's view over HTTP", (it) => {
  it.effect("returns the totals", () =>
    Effect.gen(function* () {
      const { advance, client } = yield* TestServer
      const before = yield* client.ops.summary()
      assert.strictEqual(before.licenses.total, 0)
      const product = yield* client.products.create({ payload: { name: "P", code: "p" } })
      yield* client.customers.create({ payload: { name: "C", code: "c" } })
      const policy = yield* client.policies.create({
        params: { id: product.id },
        payload: { name: "P", code: "p", license_type: "perpetual", max_floating_users: 2 }
      })
      const created = yield* Effect.forEach([1, 2, 3], () =>
        client.licenses.create({ payload: { product_id: product.id, policy_id: policy.id } })
      )
      const [first, second] = created
      yield* client.licenses.suspend({ params: { id: first!.license.id } })
      const { connect } = yield* TestServer
      const application = yield* connect({ licenseKey: second!.license_key })
      yield* application.runtime.activate({ payload: { fingerprint: "one" } })
      yield* application.runtime.checkout({ payload: { fingerprint: "two" } })
      // No worker counts here: a reader counts once the last count is this old.
      yield* advance(180)
      const { licenses, devices, leases, products, customers, event_sequence } = yield* client.ops.summary()
      assert.deepInclude(licenses, { total: 3, active: 2, suspended: 1, revoked: 0 })
      assert.deepInclude(devices, { total: 2, active: 2 })
      assert.deepStrictEqual([leases, products, customers], [{ live: 1 }, 1, 1])
      const [newest] = (yield* client.events.list({ query: { limit: 1 } })).items
      assert.strictEqual(event_sequence, newest?.sequence)
    })
  )

  it.effect("counts refusals and reports failures with their request, without their cause", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const before = (yield* client.ops.errors()).counts
      assertRefused(yield* send({ path: "/api/v1/products/none" }), 404, "NOT_FOUND")
      assertRefused(yield* send({ path: "/api/v1/products", anonymous: true }), 401, "TOKEN_MISSING")
      const keyed = { "idempotency-key": "one" }
      const body = { name: "P", code: "NOT A CODE" }
      yield* send({ method: "POST", path: "/api/v1/products", headers: keyed, body })
      yield* sql`ALTER TABLE customers RENAME TO hidden`
      const headers = { "x-request-id": "req-that-failed" }
      const failed = yield* send({ path: "/api/v1/customers?code=secret-code", headers })
      yield* sql`ALTER TABLE hidden RENAME TO customers`
      assertRefused(failed, 500, "INTERNAL_ERROR")
      const answer = yield* send({ path: "/api/v1/ops/errors" })
      const { counts, recent } = assertAnswered(answer, 200) as {
        counts: Record<string, number>
        recent: ReadonlyArray<Record<string, string>>
      }
      for (const code of ["NOT_FOUND", "TOKEN_MISSING", "VALIDATION_ERROR", "INTERNAL_ERROR"]) {
        assert.strictEqual(counts[code], (before[code] ?? 0) + 1, code)
      }
      const [{ occurred_at, ...latest } = {}] = recent
      assert.deepStrictEqual(latest, {
        request_id: "req-that-failed",
        method: "GET",
        route: "/api/v1/customers",
        code: "INTERNAL_ERROR"
      })
      assert.match(occurred_at ?? "", /Z$/)
      assert.notInclude(answer.text, "relation")
      assert.notInclude(answer.text, "secret-code")
    })
  )

  it.effect("requires ops:read", () =>
    Effect.gen(function* () {
      const { client, connect } = yield* TestServer
      for (const [scope, admitted] of [
        ["ops:read", true],
        ["report:read", false]
      ] as const) {
        const { token } = yield* client["api-keys"].create({ payload: { name: scope, scopes: [scope] } })
        const reader = yield* connect({ token })
        for (const read of [reader.ops.summary(), reader.ops.errors()] as const) {
          const outcome = yield* Effect.match(read as Effect.Effect<unknown, { readonly code: string }>, {
            onSuccess: () => "answered",
            onFailure: ({ code }) => code
          })
          assert.strictEqual(outcome, admitted ? "answered" : "TOKEN_SCOPE_DENIED")
        }
      }
    })
  )
})

layer(layerService())("The operator's view beside the workers", (it) => {
  it.effect("returns the worker's counts", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { wake } = yield* Workers
      assert.strictEqual((yield* client.ops.summary()).products, 0)
      yield* client.products.create({ payload: { name: "P", code: "p" } })
      yield* wake("counts")
      yield* poll(client.ops.summary(), ({ products }) => products === 1)
    })
  )
})
