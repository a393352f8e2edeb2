/** Erasures that take several steps, and requests beside them. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { EventLog } from "../../../../src/ledger/events/EventLog.ts"
import { isConcurrentChange } from "../../../../src/platform/postgres/queries/Sql.ts"
import { Erasures } from "../../../../src/vendor/customers/erasure/Erasures.ts"
import { holdLock } from "../../../support/database/Database.ts"
import {
  assertGone,
  type ErasureBody,
  layerErasures,
  person,
  withCustomer
} from "../../../support/database/Erasures.ts"
import { assertAnswered, assertRefused } from "../../../support/http/Http.ts"
import { codeOf, freshKey, issue } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"

const makeNode = Effect.map(Layer.build(Layer.fresh(Erasures.layer.pipe(Layer.provide(EventLog.layer)))), (context) =>
  Context.get(context, Erasures)
)

layer(layerErasures)("The erasure of a customer, beside other requests,", (it) => {
  it.effect(
    "with an Idempotency-Key goes on in the background, step by step, and meanwhile nothing is found or added",
    () =>
      Effect.gen(function* () {
        const { client, send } = yield* TestServer
        const { step } = yield* Erasures
        const { alias, email, id, name, request } = yield* withCustomer
        const license = yield* issue({}, { customer_id: id, customer_name: name })
        const other = yield* issue()
        const answer = yield* request(freshKey())
        assert.deepStrictEqual((answer.json as ErasureBody).data, { customer_id: id, status: "erasing" })

        assert.deepStrictEqual((yield* client.licenses.list({ query: { q: name } })).items, [])
        const found = yield* client.search.search({ query: { q: name } })
        assert.deepStrictEqual([found.customers, found.licenses], [[], []])
        const patch = (path: string, body: unknown) => send({ method: "PATCH", path, body })
        const licenseBody = { product_id: license.product_id, policy_id: "pol_none", customer_id: id }
        const { policy_id } = yield* client.licenses.get({ params: { id: license.id } })
        const refused = [
          patch(`/api/v1/customers/${id}`, { name: alias }),
          send({ method: "DELETE", path: `/api/v1/customers/${id}` }),
          patch(license.path, { customer_name: alias }),
          other.post("transfer", { customer_id: id }),
          license.post("transfer", { customer_email: email }),
          send({
            method: "POST",
            path: "/api/v1/licenses",
            body: { ...licenseBody, policy_id, expires_at: "2999-01-01T00:00:00Z" }
          })
        ]
        for (const change of refused) assertRefused(yield* change, 409, "CONFLICT", "customer_id")
        yield* patch(license.path, { metadata: { plan: "pro" } })
        while (yield* step(id));
        yield* assertGone([name, email])
        assert.strictEqual(((yield* request()).json as ErasureBody).data.status, "erased")
        assertAnswered(yield* patch(license.path, { customer_name: alias }), 200)
        assert.strictEqual(yield* codeOf(client.customers.delete({ params: { id } })), "RESOURCE_IN_USE")
      })
  )

  it.effect("leaves nothing behind beside edits, transfers and new licenses", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { step } = yield* Erasures
      const { alias, email, id, name, request } = yield* withCustomer
      const licenses = yield* Effect.forEach(Array.from({ length: 6 }), () =>
        issue({}, { customer_id: id, customer_name: name, customer_email: email })
      )
      const others = yield* Effect.forEach(Array.from({ length: 6 }), () => issue())
      const { policy_id } = yield* client.licenses.get({ params: { id: licenses[0]!.id } })
      const create = send({
        method: "POST",
        path: "/api/v1/licenses",
        body: {
          product_id: licenses[0]!.product_id,
          policy_id,
          customer_id: id,
          customer_name: alias,
          expires_at: "2999-01-01T00:00:00Z"
        }
      })
      const answers = yield* Effect.all(
        [
          request(),
          ...licenses.map(({ path }) => send({ method: "PATCH", path, body: { customer_name: alias } })),
          ...others.map(({ post }) => post("transfer", { customer_id: id })),
          ...licenses.map(({ post }) => post("transfer", { customer_id: "" })),
          create,
          create,
          send({ method: "PATCH", path: `/api/v1/customers/${id}`, body: { name: alias } })
        ],
        { concurrency: "unbounded" }
      )
      for (const { status, text } of answers) assert.oneOf(status, [200, 201, 409], text)
      // What came after the erasure may have named the customer and its licenses anew, but by no text of before.
      while (yield* step(id));
      yield* assertGone([name, email])
    })
  )

  it.effect("waits for a license that is being linked, and has it decided again if it was first itself", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { alias, email, erase, id, name, request } = yield* withCustomer
      const [before, after] = [yield* issue(), yield* issue()]
      const link = (licenseId: string, text: string) =>
        sql`UPDATE licenses SET customer_id = ${id}, customer_name = ${text} WHERE id = ${licenseId}`
      const { release } = yield* holdLock(() => link(before.id, name))
      const erasing = yield* Effect.forkChild(request(freshKey()))
      yield* release
      yield* Fiber.join(erasing)
      const error = yield* Effect.flip(link(after.id, alias))
      assert.isTrue(isConcurrentChange(error))
      yield* erase
      yield* assertGone([name, email, alias])
    })
  )

  it.effect("goes through more licenses and events than a step takes, and other nodes continue it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { alias, id, name, request } = yield* withCustomer
      const { id: first, product_id } = yield* issue({}, { customer_id: id, customer_name: alias })
      yield* sql`
        INSERT INTO licenses (id, product_id, policy_id, customer_id, key_hash, license_key_prefix, license_key_last4, status,
          customer_name, metadata, created_at, updated_at)
        SELECT 'lic_many' || n, product_id, policy_id, ${id}, sha256(convert_to('many' || n, 'UTF8')), 'LK-00000', '0000', 'active',
          ${alias} || n, '{}', created_at + (n / 7) * interval '1 s' + (n % 5) * interval '3 us', updated_at
        FROM licenses, generate_series(1, 230) AS n WHERE licenses.id = ${first}`
      const [counter] = yield* sql<{ readonly last: number }>`
        UPDATE event_sequence SET last = last + 4430 RETURNING last - 4430 AS last`
      yield* sql`
        INSERT INTO event_log SELECT ${counter!.last}::int8 + n, 'license.updated', 'system', 'test', 'license',
          CASE WHEN n <= 4200 THEN 'lic_many7' ELSE 'lic_many' || (n - 4200) END, NULL,
          jsonb_build_object('changes', jsonb_build_object('customer_name',
            jsonb_build_object('old', ${alias}::text || (n % 100 + 500), 'new', ${name}::text))), now()
        FROM generate_series(1, 4430) AS n`
      yield* sql`
        INSERT INTO report_exports (id, report_kind, format, status, filters, content_type, created_by, generated_at, ledger_last,
          attempts, leased_until, created_at, updated_at)
        VALUES ('exp_running', 'license-audit', 'csv', 'processing', '{"license_id": "lic_many9"}', 'text/csv', 'key_1', now(), 0,
          1, now() + interval '1 h', now(), now())`
      yield* request(freshKey())
      let steps = 0
      while (yield* Effect.scoped(Effect.flatMap(makeNode, ({ step }) => step()))) {
        steps++
        // As autovacuum does it.
        yield* sql`ANALYZE erasures, erasure_records`
      }
      assert.isAbove(steps, 15)
      yield* assertGone([alias, name])
      const rows = yield* sql`SELECT customer_id FROM erasures UNION ALL SELECT customer_id FROM erasure_records`
      assert.deepStrictEqual(rows, [])
      const [running] = yield* sql`
        SELECT status, attempts, leased_until, erased_at IS NOT NULL AS erased FROM report_exports WHERE id = 'exp_running'`
      assert.deepStrictEqual(running, { status: "failed", attempts: 2, leased_until: null, erased: true })
      const [revisions] =
        yield* sql`SELECT count(*) AS count FROM licenses WHERE product_id = ${product_id} AND revision = 1`
      assert.deepStrictEqual(revisions, { count: 0 })
    })
  )

  it.effect("finds licenses without a customer by their address, also if their transfer is no longer recorded", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const { alias, email, erase, id, name } = yield* withCustomer
      const other = person()
      const copies = { customer_name: alias, customer_email: email.replace("z", "Z"), metadata: { contact: name } }
      const cleared = yield* issue({}, { customer_id: id, ...copies })
      const kept = yield* issue({}, { customer_name: other.name, customer_email: `x-${email}` })
      yield* client.licenses.transfer({ params: { id: cleared.id }, payload: { customer_id: "" } })
      // As retention removes its partition.
      yield* sql`DELETE FROM event_log WHERE resource_id = ${cleared.id} AND event_type = 'license.transferred'`
      yield* erase
      yield* assertGone([alias, name])
      const license = yield* client.licenses.get({ params: { id: cleared.id } })
      assert.deepStrictEqual(
        [license.customer_name, license.customer_email, license.metadata],
        [undefined, undefined, { contact: null }]
      )
      const similar = yield* client.licenses.get({ params: { id: kept.id } })
      assert.deepStrictEqual([similar.customer_name, similar.customer_email], [other.name, `x-${email}`])
    })
  )

  it.effect("needs the scope admin", () =>
    Effect.gen(function* () {
      const { client, connect } = yield* TestServer
      const { id } = yield* withCustomer
      const { token } = yield* client["api-keys"].create({ payload: { name: "k", scopes: ["license:write"] } })
      const limited = yield* connect({ token })
      assert.strictEqual(yield* codeOf(limited.customers.erase({ params: { id } })), "TOKEN_SCOPE_DENIED")
    })
  )
})
