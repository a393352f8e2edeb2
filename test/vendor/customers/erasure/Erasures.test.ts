/** The erasure of customers over HTTP: what it removes, and what stays. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { recordSetting } from "../../../support/database/Database.ts"
import { placesOf } from "../../../support/database/DatabaseText.ts"
import {
  assertGone,
  type ErasureBody,
  layerErasures,
  person,
  recordEverywhere,
  withCustomer
} from "../../../support/database/Erasures.ts"
import { assertAnswered, assertRefused } from "../../../support/http/Http.ts"
import { freshKey, issue } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"

layer(layerErasures)("The erasure of a customer", (it) => {
  it.effect("removes its data from every table, stored responses and exports, and keeps the numbers of events", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const customer = yield* withCustomer
      const { alias, code, email, erase, formerName, id, name, note, phone } = customer
      const { exports, license, revoked } = yield* recordEverywhere(customer)
      const texts = [name, formerName, email, phone, note, alias]
      // Statistics contain values of two rows or more.
      const other = yield* withCustomer
      const { product_id } = yield* client.licenses.get({ params: { id: license.id } })
      const order = { external_system: "shop", external_id: other.code, status: "paid" as const, metadata: { n: 1 } }
      yield* client.commerce.createOrder({ params: { id: product_id }, payload: order })
      // As autovacuum and an operator do it.
      yield* sql`ANALYZE`
      const places = yield* Effect.forEach(texts, placesOf)
      for (const [index, text] of texts.entries()) assert.isAbove(places[index]!.length, 0, text)
      const withText = new Set(places.flat().map((place) => /^statistics of (\S+)/.exec(place)?.[1]))
      for (const table of ["customers", "licenses", "orders", "event_log", "event_log_from_1", "idempotent_answers"])
        assert.isTrue(withText.has(table), `${table} ${[...withText].join(" ")}`)
      const before = yield* sql`SELECT sequence, event_type, created_at FROM events ORDER BY sequence`

      const answer = yield* erase
      assertAnswered(answer, 200)
      const { data } = answer.json as ErasureBody
      assert.deepInclude(data, { customer_id: id, status: "erased" })

      yield* assertGone(texts)
      const after = yield* sql`SELECT sequence, event_type, created_at FROM events ORDER BY sequence`
      assert.deepStrictEqual(after.slice(0, before.length), before)
      assert.deepStrictEqual(
        after.slice(before.length).map(({ event_type }) => event_type),
        ["license.transferred", "customer.erased"]
      )
      const emptied = yield* client.customers.get({ params: { id } })
      assert.deepInclude(emptied, { name: "", code, metadata: {} })
      assert.notProperty(emptied, "email")
      assert.strictEqual(new Date(emptied.erased_at!).toISOString(), data.erased_at)
      const shown = yield* client.licenses.get({ params: { id: license.id } })
      assert.deepInclude(shown, { customer_id: id, metadata: { contact: null }, status: "suspended" })
      assert.notProperty(yield* client.licenses.get({ params: { id: revoked.id } }), "customer_id")
      const [event] = (yield* client.events.list({ query: { event_type: "customer.erased", resource_id: id } })).items
      assert.deepStrictEqual(Object.keys(event!.metadata), ["request_id"])
      assert.strictEqual(event!.actor_type, "api_key")
      for (const stored of exports) {
        const { artifact_digest, digest, erased_at } = yield* client.reports.getExport({ params: { id: stored.id } })
        assert.deepStrictEqual([digest, artifact_digest], [stored.digest, stored.artifact_digest])
        assert.isDefined(erased_at)
        const file = yield* send({ path: `/api/v1/reports/exports/${stored.id}/download` })
        assertRefused(file, 409, "EXPORT_NOT_READY", "erased")
      }
    })
  )

  it.effect("gives the same answer again, and erases what was added since", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { email, erase, id, name } = yield* withCustomer
      const first = (yield* erase).json as ErasureBody
      assert.deepStrictEqual(((yield* erase).json as ErasureBody).data, first.data)
      const erasures = client.events.list({ query: { event_type: "customer.erased", resource_id: id } })
      assert.lengthOf((yield* erasures).items, 1)
      yield* client.customers.update({ params: { id }, payload: { name, email } })
      assert.isDefined((yield* client.customers.get({ params: { id } })).erased_at)
      const again = (yield* erase).json as ErasureBody
      assert.strictEqual(again.data.status, "erased")
      yield* assertGone([name, email])
      assert.lengthOf((yield* erasures).items, 2)
      yield* client.customers.delete({ params: { id } })
      assertRefused(yield* erase, 404, "NOT_FOUND", "id")
      const unknown = yield* send({ method: "POST", path: "/api/v1/customers/cust_none/erase" })
      assertRefused(unknown, 404, "NOT_FOUND", "id")
    })
  )

  it.effect("replays stored responses without the erased data", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const { email, erase, id, name } = yield* withCustomer
      const license = yield* issue({}, { customer_id: id, customer_name: name, customer_email: email })
      const [suspension, renewal] = [freshKey(), freshKey()]
      const first = yield* license.post("suspend", undefined, suspension)
      yield* license.post("renew", { extend_by_days: 1 }, renewal)
      const idle = yield* recordSetting("idle_in_transaction_session_timeout", "UPDATE ON idempotent_answers")
      yield* erase
      // Opening and searching them is computing.
      assert.include(yield* idle, "10s")
      const replayed = yield* license.post("suspend", undefined, suspension)
      assert.strictEqual(replayed.headers["idempotency-replayed"], "true")
      const {
        customer_email: _,
        customer_name: __,
        ...rest
      } = (first.json as { data: { [name: string]: unknown } }).data
      assert.deepStrictEqual((replayed.json as { data: unknown }).data, rest)
      const renewed = yield* license.post("renew", { extend_by_days: 1 }, renewal)
      assert.strictEqual(renewed.headers["idempotency-replayed"], "true")
      assert.notInclude(renewed.text, name)
      const other = yield* send({
        method: "POST",
        path: `${license.path}/renew`,
        body: { extend_by_days: 2 },
        headers: renewal
      })
      assertRefused(other, 422, "IDEMPOTENCY_KEY_REUSED", "Idempotency-Key")
    })
  )

  it.effect("finds licenses that were the customer's before, and leaves what belongs to others", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { alias, email, erase, formerName, id, name } = yield* withCustomer
      const other = person()
      const next = yield* client.customers.create({
        payload: { name: other.name, code: other.code, email: other.email }
      })
      const sold = yield* issue({}, { customer_id: id, customer_name: alias, customer_email: email })
      const cleared = yield* issue({}, { customer_id: id, customer_name: formerName })
      const rename = { params: { id: sold.id }, payload: { customer_name: name } }
      yield* client.licenses.update(rename)
      yield* client.licenses.transfer({ params: { id: sold.id }, payload: { customer_id: next.id } })
      yield* client.licenses.update({ params: { id: sold.id }, payload: { customer_name: other.alias } })
      yield* client.licenses.transfer({ params: { id: cleared.id }, payload: { customer_id: "" } })
      assert.strictEqual((yield* client.licenses.get({ params: { id: cleared.id } })).customer_name, formerName)
      yield* erase
      yield* assertGone([alias, email, name, formerName])
      const license = yield* client.licenses.get({ params: { id: sold.id } })
      assert.deepInclude(license, { customer_id: next.id, customer_name: other.alias, customer_email: other.email })
      const [renamed] = (yield* client.events.list({ query: { resource_id: sold.id } })).items
      assert.deepStrictEqual(renamed!.metadata["changes"], {
        customer_name: { old: other.name, new: other.alias }
      } as never)
    })
  )
})
