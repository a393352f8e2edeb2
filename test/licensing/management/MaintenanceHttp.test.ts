/** Maintenance of perpetual licenses, over HTTP: its first end by the policy, its renewal, and licenses by its end. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { freshKey } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const day = 86_400_000
const iso = (millis: number) => new Date(millis).toISOString()

const make = Effect.fnUntraced(function* (code: string) {
  const { client, send } = yield* TestServer
  const product = yield* client.products.create({ payload: { name: "P", code } })
  const policyOf = (code: string, rules: object) =>
    client.policies.create({
      params: { id: product.id },
      payload: { name: code, code, license_type: "perpetual", ...rules }
    })
  const issue = (policy_id: string, rest: object = {}) =>
    client.licenses.create({ payload: { product_id: product.id, policy_id, ...rest } })
  const renew = (id: string, body: object, headers: object = freshKey()) =>
    send({ method: "POST", path: `/api/v1/licenses/${id}/maintenance`, headers: { ...headers }, body })
  const eventsOf = (resource_id: string) =>
    Effect.map(client.events.list({ query: { resource_id } }), ({ items }) => items)
  return { client, eventsOf, issue, policyOf, product, renew, send }
})

layer(TestServer.layer)("Maintenance", (it) => {
  it.effect("ends as the policy says, from the creation or the first activation", () =>
    Effect.gen(function* () {
      const { client, issue, policyOf, product, send } = yield* make("terms")
      const sold = yield* policyOf("sold", { maintenance_days: 365 })
      const { license } = yield* issue(sold.id)
      assert.strictEqual(license.maintenance_expires_at, license.created_at + 365 * day)
      assert.notProperty(license, "expires_at")
      const given = license.created_at + 5 * day
      const { license: other } = yield* issue(sold.id, { maintenance_expires_at: given })
      assert.strictEqual(other.maintenance_expires_at, given)

      const boxed = yield* policyOf("boxed", { maintenance_days: 30, duration_starts: "first_activation" })
      const pending = yield* issue(boxed.id)
      assert.notProperty(pending.license, "maintenance_expires_at")
      const headers = { authorization: `License ${pending.license_key}` }
      const activated = yield* send({
        method: "POST",
        path: "/api/v1/license/activate",
        headers,
        body: { fingerprint: "f" }
      })
      assertAnswered(activated, 200)
      const begun = yield* client.licenses.get({ params: { id: pending.license.id } })
      assert.strictEqual(begun.maintenance_expires_at, begun.updated_at + 30 * day)
      assert.notProperty(begun, "expires_at")

      const wrong = { name: "W", code: "w", license_type: "trial", duration_days: 1, maintenance_days: 1 }
      const path = `/api/v1/products/${product.id}/policies`
      assertRefused(yield* send({ method: "POST", path, body: wrong }), 422, "VALIDATION_ERROR", "maintenance_days")
    })
  )

  it.effect("is renewed from its end, or from now, once for each Idempotency-Key, and never shortened", () =>
    Effect.gen(function* () {
      const { advance } = yield* TestServer
      const { eventsOf, issue, policyOf, renew } = yield* make("renewed")
      const { id: policy_id } = yield* policyOf("sold", { maintenance_days: 10 })
      const { license } = yield* issue(policy_id)
      const { id } = license
      const ends = license.created_at + 10 * day
      const key = freshKey()
      const extended = assertAnswered(yield* renew(id, { extend_by_days: 30 }, key), 200) as typeof license
      assert.deepInclude(extended, { maintenance_expires_at: iso(ends + 30 * day) as never, entitlement_version: 2 })
      const repeated = yield* renew(id, { extend_by_days: 30 }, key)
      assert.deepInclude(repeated.json, { data: extended })
      const [event] = yield* eventsOf(id)
      assert.strictEqual(event!.event_type, "license.maintenance_renewed")
      assert.deepInclude(event!.metadata, {
        maintenance_expires_at: { old: iso(ends), new: iso(ends + 30 * day) },
        extend_by_days: 30
      })
      const earlier = { maintenance_expires_at: iso(ends + 29 * day) }
      assertRefused(yield* renew(id, earlier), 422, "RENEWAL_NOT_LATER", "maintenance_expires_at")
      const past = { maintenance_expires_at: iso(license.created_at - day) }
      assertRefused(yield* renew(id, past), 422, "EXPIRY_NOT_IN_FUTURE", "maintenance_expires_at")
      assertRefused(yield* renew(id, { extend_by_days: 4_000_000 }), 422, "VALIDATION_ERROR")
      assertRefused(yield* renew(id, { extend_by_days: 1 }, {}), 400, "IDEMPOTENCY_KEY_REQUIRED", "Idempotency-Key")
      assertRefused(yield* renew(id, {}), 422, "VALIDATION_ERROR")
      assertRefused(yield* renew(id, { extend_by_days: 1, order_id: "none" }), 404, "NOT_FOUND", "order_id")
      yield* advance(60 * 86_400)
      const late = assertAnswered(yield* renew(id, { extend_by_days: 1 }), 200) as { [name: string]: string }
      assert.strictEqual(Date.parse(late["maintenance_expires_at"]!), Date.parse(late["updated_at"]!) + day)
    })
  )

  it.effect("cannot be renewed without an end, and begins with a renewal while it is pending", () =>
    Effect.gen(function* () {
      const { client, issue, policyOf, renew } = yield* make("without")
      const none = yield* issue((yield* policyOf("none", {})).id)
      const refused = yield* renew(none.license.id, { extend_by_days: 1 })
      assertRefused(refused, 422, "VALIDATION_ERROR", "maintenance_expires_at")
      const boxed = yield* policyOf("boxed", { maintenance_days: 30, duration_starts: "first_activation" })
      const { license } = yield* issue(boxed.id)
      assertAnswered(yield* renew(license.id, { extend_by_days: 5 }), 200)
      const begun = yield* client.licenses.get({ params: { id: license.id } })
      assert.strictEqual(begun.maintenance_expires_at, begun.updated_at + 35 * day)
      const timed = yield* policyOf("timed", { license_type: "time_limited", duration_days: 3 })
      const other = yield* issue(timed.id)
      assertRefused(yield* renew(other.license.id, { extend_by_days: 1 }), 422, "VALIDATION_ERROR")
      yield* client.licenses.revoke({ params: { id: license.id } })
      assertRefused(yield* renew(license.id, { extend_by_days: 1 }), 409, "LICENSE_STATE_CONFLICT")
    })
  )

  it.effect("filters and sorts the list of licenses; those without an end are last", () =>
    Effect.gen(function* () {
      const { client, issue, policyOf, product } = yield* make("listed")
      const { id } = yield* policyOf("plain", {})
      const at = product.created_at
      const ids: Array<string> = []
      for (const days of [3, 1, 2, undefined]) {
        const given = days === undefined ? {} : { maintenance_expires_at: at + days * day }
        ids.push((yield* issue(id, given)).license.id)
      }
      const [third, first, second, none] = ids
      const listed = (query: object) =>
        Effect.map(client.licenses.list({ query: { product_id: product.id, ...query } }), ({ items }) =>
          items.map(({ id }) => id)
        )
      assert.deepStrictEqual(yield* listed({ sort: "maintenance_expires_at" }), [first, second, third, none])
      assert.deepStrictEqual(yield* listed({ sort: "-maintenance_expires_at" }), [none, third, second, first])
      assert.deepStrictEqual(
        yield* listed({ maintenance_expires_before: at + 2 * day, sort: "maintenance_expires_at" }),
        [first]
      )
      assert.deepStrictEqual(yield* listed({ maintenance_expires_after: at + 2 * day }), [third])
    })
  )
})
