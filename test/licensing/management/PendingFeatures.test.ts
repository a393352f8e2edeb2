/** Features of a policy whose days begin with the license's term (docs/API.md, "Policy features"). */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { eventsOf } from "../../support/database/Services.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const day = 86_400_000

let catalogs = 0

/** A policy whose term begins with the first use, and one of the same type without a term, both with a feature of 30 days. */
const catalog = Effect.gen(function* () {
  const { client, send } = yield* TestServer
  const code = `pending-${++catalogs}`
  const product = yield* client.products.create({ payload: { name: "Editor", code } })
  const params = { id: product.id }
  const feature = yield* client.features.create({ params, payload: { name: "Export", code: "export" } })
  const policyOf = Effect.fnUntraced(function* (name: string, more: object) {
    const policy = yield* client.policies.create({
      params,
      payload: { name, code: name, license_type: "time_limited", max_floating_users: 2, ...more }
    })
    yield* client.policies.setFeature({
      params: { id: policy.id, feature_id: feature.id },
      payload: { enabled: true, expires_after_days: 30 }
    })
    return policy.id
  })
  const boxed = yield* policyOf("boxed", { duration_days: 365, duration_starts: "first_activation" })
  const other = yield* policyOf("other", { duration_days: 90, duration_starts: "first_activation" })
  const create = (more: object = {}) =>
    client.licenses.create({ payload: { product_id: product.id, policy_id: boxed, ...more } })
  const expiryOf = (id: string) =>
    Effect.map(client.licenses.listFeatures({ params: { id }, query: {} }), ({ items }) => items[0]?.expires_at)
  const run = Effect.fnUntraced(function* (license_key: string, operation: string) {
    const { json, status } = yield* send({
      path: `/api/v1/license/${operation}`,
      method: "POST",
      headers: { authorization: `License ${license_key}` },
      body: { fingerprint: "a laptop" }
    })
    assert.strictEqual(status, 200, JSON.stringify(json))
    return (json as { readonly data: Entitlement }).data
  })
  return { client, product, feature, boxed, other, create, expiryOf, run }
})

interface Entitlement {
  readonly issued_at: string
  readonly entitlement_version: number
  readonly features: ReadonlyArray<{ readonly code: string; readonly expires_at?: string }>
}

layer(TestServer.layer)("Features that wait for the license's term", (it) => {
  it.effect("the first activation, and the first seat, begin their days in the same answer", () =>
    Effect.gen(function* () {
      const { advance } = yield* TestServer
      const { create, expiryOf, run } = yield* catalog
      for (const operation of ["activate", "floating/checkout"]) {
        const { license, license_key } = yield* create()
        assert.isUndefined(yield* expiryOf(license.id))
        yield* advance(40 * 86_400)
        const { features, issued_at } = yield* run(license_key, operation)
        const ends = Date.parse(issued_at) + 30 * day
        assert.strictEqual(Date.parse(features[0]?.expires_at ?? ""), ends)
        assert.strictEqual(yield* expiryOf(license.id), ends)
        const updated = (yield* eventsOf(license.id)).findLast(({ event_type }) => event_type === "license.updated")
        const { changes } = updated!.metadata as { readonly changes: { readonly "features.export": object } }
        const expires_at = new Date(ends).toISOString()
        assert.deepStrictEqual(changes["features.export"], {
          old: { enabled: true },
          new: { enabled: true, expires_at }
        })
        assert.deepStrictEqual((yield* run(license_key, "validate")).features, features)
      }
    })
  )

  it.effect("a batch waits too; a given expiry, a renewal and an edit of the expiry begin the days", () =>
    Effect.gen(function* () {
      const { client, create, expiryOf, boxed, feature, product } = yield* catalog
      const { licenses } = yield* client.licenses.createBatch({
        payload: { licenses: [{ product_id: product.id, policy_id: boxed }] }
      })
      assert.isUndefined(yield* expiryOf(licenses[0]!.license.id))
      const later = 4_000_000_000_000
      const dated = (yield* create({ expires_at: later })).license
      assert.strictEqual(yield* expiryOf(dated.id), dated.created_at + 30 * day)
      const edited = (yield* create()).license
      const { updated_at } = yield* client.licenses.update({
        params: { id: edited.id },
        payload: { expires_at: later }
      })
      assert.strictEqual(yield* expiryOf(edited.id), updated_at + 30 * day)
      const renewed = (yield* create()).license
      const after = yield* client.licenses.renew({
        params: { id: renewed.id },
        headers: { "idempotency-key": renewed.id },
        payload: { extend_by_days: 1 }
      })
      assert.strictEqual(yield* expiryOf(renewed.id), after.updated_at + 30 * day)
      const own = (yield* create({ features: [{ feature_id: feature.id, expires_at: later }] })).license
      assert.strictEqual(yield* expiryOf(own.id), later)
    })
  )

  it.effect(
    "a move of a license whose term is pending keeps the days waiting, a move that begins the term begins them",
    () =>
      Effect.gen(function* () {
        const { client, create, expiryOf, other, run } = yield* catalog
        const { license, license_key } = yield* create()
        const params = { id: license.id }
        yield* client.licenses.changePolicy({ params, payload: { policy_id: other } })
        assert.isUndefined(yield* expiryOf(license.id))
        const { issued_at } = yield* run(license_key, "activate")
        assert.strictEqual(yield* expiryOf(license.id), Date.parse(issued_at) + 30 * day)
        for (const keep_features of [false, true]) {
          const moved = (yield* create()).license
          const { updated_at } = yield* client.licenses.changePolicy({
            params: { id: moved.id },
            payload: { policy_id: other, expires_at: 4_000_000_000_000, keep_features }
          })
          assert.strictEqual(yield* expiryOf(moved.id), updated_at + 30 * day)
        }
      })
  )
})
