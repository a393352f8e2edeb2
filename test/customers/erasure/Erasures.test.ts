/** The erasure of customers over HTTP: what it removes, what stays, and what happens beside it. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Erasures } from "../../../src/customers/erasure/Erasures.ts"
import { EventLog } from "../../../src/events/EventLog.ts"
import { isConcurrentChange } from "../../../src/postgres/Sql.ts"
import { Database, holdLock } from "../../support/Database.ts"
import { placesOf } from "../../support/DatabaseText.ts"
import { assertAnswered, assertRefused } from "../../support/Http.ts"
import { codeOf, freshKey, issue } from "../../support/IssuedLicenses.ts"
import { TestServer } from "../../support/TestServer.ts"

const Subject = Erasures.layer.pipe(
  Layer.provide(EventLog.layer),
  Layer.provideMerge(TestServer.layer),
  Layer.provideMerge(Database.layer)
)

let made = 0

/** Texts that occur nowhere else. */
const person = () => {
  const n = ++made
  return {
    name: `Zdenka Quist-${n}0`,
    formerName: `Zdenka Unwed-${n}0`,
    email: `zdenka${n}@mailbox-of-quist.example`,
    phone: `+41-555-0199-${n}0`,
    note: `prefers-carrier-pigeons-${n}0`,
    alias: `Z. Q. the ${n}0th`,
    code: `buyer-${n}`
  }
}

const withCustomer = Effect.gen(function* () {
  const { client, send } = yield* TestServer
  const texts = person()
  const { id } = yield* client.customers.create({
    payload: { name: texts.formerName, code: texts.code, email: texts.email, metadata: { note: texts.note } }
  })
  yield* client.customers.update({ params: { id }, payload: { name: texts.name } })
  const request = (headers = {}) => send({ method: "POST", path: `/api/v1/customers/${id}/erase`, headers })
  const { step } = yield* Erasures
  /** To the end, also on a machine that is too busy to get there within the request. */
  const erase = Effect.gen(function* () {
    yield* request()
    while (yield* step(id));
    return yield* request()
  })
  return { ...texts, id, erase, request }
})

const assertGone = Effect.fnUntraced(function* (texts: ReadonlyArray<string>) {
  for (const text of texts) assert.deepStrictEqual(yield* placesOf(text), [], text)
})

interface ErasureBody {
  readonly data: { readonly customer_id: string; readonly status: string; readonly erased_at?: string }
}

layer(Subject)("The erasure of a customer", (it) => {
  it.effect("removes its data from every table, stored responses and exports, and keeps the numbers of events", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const { alias, code, email, erase, formerName, id, name, note, phone } = yield* withCustomer
      const license = yield* issue(
        {},
        { customer_id: id, customer_name: name, customer_email: email, metadata: { for: name } }
      )
      const revoked = yield* issue({}, { customer_id: id, customer_name: alias })
      const patch = (body: unknown) =>
        send({ method: "PATCH", path: license.path, body, headers: freshKey() }).pipe(
          Effect.tap((a) => Effect.sync(() => assertAnswered(a, 200)))
        )
      yield* patch({ customer_name: alias })
      yield* patch({ metadata: { contact: `Ask ${name}!` } })
      yield* send({
        method: "PATCH",
        path: `/api/v1/customers/${id}`,
        body: { metadata: { note, phone } },
        headers: freshKey()
      })
      assertAnswered(yield* license.post("renew", { extend_by_days: 3 }, freshKey()), 200)
      assertAnswered(yield* license.post("suspend", undefined, freshKey()), 200)
      yield* revoked.post("revoke", undefined, freshKey())
      for (const resource_type of ["customer", "license"] as const) {
        const field = yield* client["custom-fields"].create({
          params: { id: license.product_id },
          payload: { resource_type, code: "phone", name: "Phone", value_type: "string" }
        })
        const path = resource_type === "customer" ? `/api/v1/customers/${id}` : license.path
        const string_value = resource_type === "customer" ? phone : `call ${name}`
        const set = {
          method: "PUT",
          path: `${path}/custom-fields/${field.id}`,
          body: { string_value },
          headers: freshKey()
        }
        assertAnswered(yield* send(set), 200)
      }
      const order = yield* client.commerce.createOrder({
        params: { id: license.product_id },
        payload: {
          external_system: "shop",
          external_id: code,
          status: "paid",
          customer_id: id,
          metadata: { bill_to: email }
        }
      })
      const exports = yield* Effect.forEach(
        [
          { report_kind: "customer-summary", filters: { customer_id: id } },
          { report_kind: "license-audit", filters: { license_id: license.id }, format: "csv" },
          { report_kind: "license-audit", filters: { license_id: revoked.id }, format: "pdf" },
          { report_kind: "subscription-settlement", filters: { order_id: order.id, from: "2020-01-01T00:00:00Z" } }
        ],
        (payload) => client.reports.createExport({ payload: payload as never })
      )
      const texts = [name, formerName, email, phone, note, alias]
      for (const text of texts) assert.isAbove((yield* placesOf(text)).length, 0, text)
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
      const customer = yield* client.customers.get({ params: { id } })
      assert.deepInclude(customer, { name: "", code, metadata: {} })
      assert.notProperty(customer, "email")
      assert.strictEqual(new Date(customer.erased_at!).toISOString(), data.erased_at)
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
      yield* erase
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
