/** What is stored of requests with an Idempotency-Key, and that no change is committed without its response. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { freshKey, issue } from "../../support/http/IssuedLicenses.ts"
import { makeProduct } from "../../support/http/ProductTokens.ts"
import { TestServer } from "../../support/http/TestServer.ts"

let keyCount = 0
const nextKey = () => `kept-${++keyCount}`

/** While the effect runs, the table refuses every new row. */
const withRowsRefused = Effect.fnUntraced(function* <A, E, R>(table: string, effect: Effect.Effect<A, E, R>) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused by the test'; END $$`
  yield* sql`CREATE TRIGGER refusing BEFORE INSERT ON ${sql(table)} FOR EACH ROW EXECUTE FUNCTION refuse()`
  return yield* Effect.ensuring(effect, Effect.orDie(sql`DROP TRIGGER refusing ON ${sql(table)}`))
})

layer(TestServer.layer)("Refusals", (it) => {
  it.effect("caused by the request are stored, even if their cause disappears", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const code = nextKey()
      const { id } = yield* client.customers.create({ payload: { name: "C", code } })
      const requests = [
        [409, "DUPLICATE_CODE", { method: "POST", path: "/api/v1/customers", body: { name: "C", code } }],
        [422, "VALIDATION_ERROR", { method: "POST", path: "/api/v1/customers", body: { name: "C" } }],
        [400, "INVALID_JSON", { method: "POST", path: "/api/v1/customers", body: "{" }],
        [404, "NOT_FOUND", { method: "PATCH", path: "/api/v1/customers/none", body: {} }],
        [404, "NOT_FOUND", { method: "DELETE", path: "/api/v1/customers/none" }]
      ] as const
      const responses = yield* Effect.forEach(requests, ([status, error, message]) =>
        Effect.gen(function* () {
          const keyed = { ...message, headers: freshKey() }
          const first = yield* send(keyed)
          assertRefused(first, status, error)
          assert.notProperty(first.headers, "idempotency-replayed")
          return { first, keyed }
        })
      )
      yield* client.customers.delete({ params: { id } })
      for (const { first, keyed } of responses) {
        const again = yield* send(keyed)
        assert.deepStrictEqual([again.status, again.text], [first.status, first.text])
        assert.strictEqual(again.headers["idempotency-replayed"], "true")
      }
    })
  )

  it.effect("of a credential are not stored", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { api_key, token } = yield* client["api-keys"].create({ payload: { name: "K", scopes: ["admin"] } })
      const params = { id: api_key.id }
      const headers = { authorization: `Bearer ${token}`, ...freshKey() }
      const create = send({ method: "POST", path: "/api/v1/customers", headers, body: { name: "C", code: nextKey() } })
      yield* client["api-keys"].update({ params, payload: { is_active: false } })
      assertRefused(yield* create, 401, "TOKEN_INACTIVE")
      yield* client["api-keys"].update({ params, payload: { is_active: true, scopes: ["event:read"] } })
      assertRefused(yield* create, 403, "TOKEN_SCOPE_DENIED")
      yield* client["api-keys"].update({ params, payload: { scopes: ["admin"] } })
      assertAnswered(yield* create, 201)
    })
  )

  it.effect("caused by a failure of the service are not stored: the request runs when it is sent again", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const code = nextKey()
      const headers = freshKey()
      const create = send({ method: "POST", path: "/api/v1/customers", headers, body: { name: "C", code } })
      assertRefused(yield* withRowsRefused("customers", create), 500, "INTERNAL_ERROR")
      const answer = yield* create
      assertAnswered(answer, 201)
      assert.notProperty(answer.headers, "idempotency-replayed")
    })
  )
})

layer(TestServer.layerWith({ rateManagement: 1 }))("A rate limit", (it) => {
  it.effect("refusal is not stored", () =>
    Effect.gen(function* () {
      const { advance, send } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const create = send({
        method: "POST",
        path: "/api/v1/customers",
        headers: freshKey(),
        body: { name: "C", code: "c" }
      })
      yield* send({ path: "/api/v1/customers" })
      assertRefused(yield* create, 429, "RATE_LIMITED")
      assert.lengthOf(yield* sql`SELECT scope FROM idempotent_answers`, 0)
      yield* advance(60)
      assertAnswered(yield* create, 201)
    })
  )
})

layer(TestServer.layer)("Without its stored response", (it) => {
  /** Everything that a change could write, except times of last use. */
  const everything = Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const tables = [
      "customers",
      "licenses",
      "devices",
      "leases",
      "license_features",
      "usage_ledger",
      "events",
      "api_keys"
    ]
    const rows = yield* Effect.forEach(
      tables,
      (table) =>
        sql<{ row: string }>`SELECT (to_jsonb(t) - 'last_used_at')::text AS row FROM ${sql(table)} t ORDER BY 1`
    )
    const [sequence] = yield* sql<{ last: number; ledger_last: number }>`SELECT last, ledger_last FROM event_sequence`
    return { rows: rows.map((found) => found.map(({ row }) => row)), sequence }
  })

  it.effect("no part of a change is committed, on any path; when sent again it runs", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const license = yield* issue({ max_floating_users: 1, max_activations: 0 })
      const feature = yield* client.features.create({
        params: { id: license.product_id },
        payload: { name: "Export", code: "export" }
      })
      yield* client.licenses.assignFeature({ params: { id: license.id }, payload: { feature_id: feature.id } })
      yield* license.runtime.activate({ payload: { fingerprint: "f" } })
      const management = (method: string, path: string, body?: unknown) => ({
        method,
        path: path.startsWith("/") ? path : `${license.path}/${path}`,
        headers: freshKey(),
        ...(body === undefined ? undefined : { body })
      })
      const requests = [
        management("POST", "/api/v1/customers", { name: "C", code: nextKey() }),
        management("POST", "/api/v1/api-keys", { name: "K" }),
        management("PATCH", `/api/v1/licenses/${license.id}`, { customer_name: "N" }),
        management("POST", "renew", { extend_by_days: 1 }),
        management("POST", "features", { feature_id: feature.id, max_consumptions: 10 }),
        management("POST", "usage/reset", { feature_id: feature.id, add_credits: 5 }),
        management("POST", "transfer", { customer_name: "Another" }),
        management("POST", "suspend"),
        management("POST", "reinstate"),
        management("POST", "rotate-key")
      ]
      for (const request of requests) {
        const name = `${request.method} ${request.path}`
        const before = yield* everything
        assertRefused(yield* withRowsRefused("idempotent_answers", send(request)), 500, "INTERNAL_ERROR")
        assert.deepStrictEqual(yield* everything, before, name)
        const answer = yield* send(request)
        assert.isBelow(answer.status, 300, `${name} ${answer.text}`)
        assert.notProperty(answer.headers, "idempotency-replayed", name)
        assert.notDeepEqual(yield* everything, before, name)
        const after = yield* everything
        assert.strictEqual((yield* send(request)).text, answer.text, name)
        assert.deepStrictEqual(yield* everything, after, name)
      }
    })
  )
})

layer(TestServer.layer)("Licenses whose stored response is in a deadlock", (it) => {
  it.effect("are issued by another attempt", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const { id: product_id, policy: policy_id } = yield* makeProduct
      // A sequence counts attempts that are rolled back, too.
      yield* sql`CREATE SEQUENCE attempts`
      yield* sql.unsafe(`CREATE FUNCTION deadlock() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
        IF nextval('attempts') = 1 THEN RAISE EXCEPTION USING ERRCODE = '40P01'; END IF; RETURN NEW; END$$`)
      yield* sql`
        CREATE TRIGGER deadlock BEFORE INSERT ON idempotent_answers FOR EACH ROW EXECUTE FUNCTION deadlock()`
      const body = { licenses: [{ product_id, policy_id, expires_at: "2999-01-01T00:00:00Z" }] }
      const answer = yield* send({ method: "POST", path: "/api/v1/licenses/batch", headers: freshKey(), body })
      assertAnswered(answer, 201)
      assert.deepStrictEqual(yield* sql`SELECT count(*)::int FROM licenses`, [{ count: 1 }])
    })
  )
})

layer(TestServer.layer)("Stored responses", (it) => {
  it.effect("are sealed, so that their secrets are not readable; those of renewals are not sealed", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const license = yield* issue()
      const key = yield* send({ method: "POST", path: "/api/v1/api-keys", headers: freshKey(), body: { name: "K" } })
      const { token } = assertAnswered(key, 201) as { readonly token: string }
      const rotated = yield* license.post("rotate-key", undefined, freshKey())
      const { license_key } = assertAnswered(rotated, 200) as { readonly license_key: string }
      const renewed = yield* license.post("renew", { extend_by_days: 1 }, freshKey())
      const rows = yield* sql<{ body: Uint8Array; sealed: boolean; forever: boolean }>`
        SELECT body, sealed, expires_at IS NULL AS forever FROM idempotent_answers ORDER BY created_at`
      assert.deepStrictEqual(
        rows.map(({ forever, sealed }) => ({ forever, sealed })),
        [
          { forever: false, sealed: true },
          { forever: false, sealed: true },
          { forever: true, sealed: false }
        ]
      )
      for (const { body } of rows) {
        for (const secret of [token, license_key]) assert.isFalse(Buffer.from(body).includes(secret))
      }
      assert.strictEqual(Buffer.from(rows[2]!.body).toString(), renewed.text)
    })
  )

  it.effect("can be opened only for their own request", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const make = () => ({
        method: "POST",
        path: "/api/v1/customers",
        headers: freshKey(),
        body: { name: "C", code: nextKey() }
      })
      const [one, other] = [make(), make()]
      yield* send(one)
      const [first] = yield* sql<{
        body: Uint8Array
      }>`SELECT body FROM idempotent_answers ORDER BY created_at DESC LIMIT 1`
      yield* send(other)
      yield* sql`UPDATE idempotent_answers SET body = ${first!.body} WHERE sealed`
      assertRefused(yield* send(other), 500, "INTERNAL_ERROR")
    })
  )
})
