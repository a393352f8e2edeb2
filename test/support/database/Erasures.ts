/** Customers to erase, with texts that occur nowhere else, and the places in which the service records them. */
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { Erasures } from "../../../src/vendor/customers/erasure/Erasures.ts"
import { assertAnswered } from "../http/Http.ts"
import { freshKey, issue } from "../http/IssuedLicenses.ts"
import { TestServer } from "../http/TestServer.ts"
import { Database } from "./Database.ts"
import { placesOf } from "./DatabaseText.ts"

export const layerErasures = Erasures.layer.pipe(
  Layer.provide(EventLog.layer),
  Layer.provideMerge(TestServer.layer),
  Layer.provideMerge(Database.layer)
)

let made = 0

/** Texts that occur nowhere else. */
export const person = () => {
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

export const withCustomer = Effect.gen(function* () {
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

export const assertGone = Effect.fnUntraced(function* (texts: ReadonlyArray<string>) {
  for (const text of texts) assert.deepStrictEqual(yield* placesOf(text), [], text)
})

export interface ErasureBody {
  readonly data: { readonly customer_id: string; readonly status: string; readonly erased_at?: string }
}

type Person = ReturnType<typeof person> & { readonly id: string }

/** Records the texts of a customer everywhere: in licenses, fields, orders, events, stored responses and exports. */
export const recordEverywhere = Effect.fnUntraced(function* ({ alias, code, email, id, name, note, phone }: Person) {
  const { client, send } = yield* TestServer
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
  return { exports, license, revoked }
})
