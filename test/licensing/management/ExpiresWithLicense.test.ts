/** Features that end with their license (docs/API.md, "Policy features"). */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { eventsOf } from "../../support/database/Services.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const day = 86_400_000

let catalogs = 0

/** A policy with three days of grace and as many features that end with the license; and one of its licenses, activated. */
const catalog = Effect.fnUntraced(function* (count: number) {
  const { advance, client, send } = yield* TestServer
  const code = `following-${++catalogs}`
  const product = yield* client.products.create({ payload: { name: "Editor", code } })
  const params = { id: product.id }
  const policy = yield* client.policies.create({
    params,
    payload: { name: code, code, license_type: "subscription", grace_period_days: 3, duration_days: 30 }
  })
  const features = yield* Effect.forEach(Array.from({ length: count }).keys(), (index) =>
    client.features.create({ params, payload: { name: `Feature ${index}`, code: `feature-${index}` } })
  )
  const set = (feature_id: string, payload: object) =>
    client.policies.setFeature({ params: { id: policy.id, feature_id }, payload })
  yield* Effect.forEach(features, ({ id }) => set(id, { expires_with_license: true, max_consumptions: 5 }))
  const { license, license_key } = yield* client.licenses.create({
    payload: { product_id: product.id, policy_id: policy.id }
  })
  const run = Effect.fnUntraced(function* (operation: string, more: object = {}) {
    const { json, status } = yield* send({
      path: `/api/v1/license/${operation}`,
      method: "POST",
      headers: { authorization: `License ${license_key}` },
      body: { fingerprint: "a laptop", ...more }
    })
    assert.strictEqual(status, 200, JSON.stringify(json))
    const { features } = (json as { readonly data: Entitlement }).data
    return features.map(({ expires_at }) => (expires_at === undefined ? undefined : Date.parse(expires_at)))
  })
  yield* run("activate")
  const listed = Effect.map(
    client.licenses.listFeatures({ params: { id: license.id }, query: {} }),
    ({ items }) => items
  )
  const assign = (payload: object) =>
    client.licenses.assignFeature({
      params: { id: license.id },
      payload: { feature_id: features[0]!.id, ...payload }
    })
  return { advance, assign, client, feature: features[0]!, license, listed, policy, run, send, set }
})

interface Entitlement {
  readonly features: ReadonlyArray<{ readonly expires_at?: string }>
}

layer(TestServer.layer)("Features that end with their license", (it) => {
  it.effect("show the end of access, follow renewals and longer grace, and stay usable until access ends", () =>
    Effect.gen(function* () {
      // Lists of 16 and more features are cached.
      for (const count of [1, 17]) {
        const { advance, client, license, listed, policy, run } = yield* catalog(count)
        const ends = license.expires_at! + 3 * day
        const all = (end: number) => Array.from({ length: count }, () => end)
        assert.deepStrictEqual(yield* run("validate"), all(ends))
        assert.deepStrictEqual(
          (yield* listed).map(({ expires_at, expires_with_license }) => [expires_at, expires_with_license]),
          all(0).map(() => [ends, true])
        )
        yield* client.licenses.renew({
          params: { id: license.id },
          headers: { "idempotency-key": license.id },
          payload: { extend_by_days: 10 }
        })
        assert.deepStrictEqual(yield* run("validate"), all(ends + 10 * day))
        yield* client.policies.update({ params: { id: policy.id }, payload: { grace_period_days: 4 } })
        const later = ends + 11 * day
        assert.deepStrictEqual(yield* run("consume", { feature_code: "feature-0", event_id: "early" }), all(later))
        yield* advance((later - day - license.created_at) / 1000)
        assert.deepStrictEqual(yield* run("consume", { feature_code: "feature-0", event_id: "late" }), all(later))
        assert.strictEqual((yield* listed)[0]?.expires_at, later)
        const types = (yield* eventsOf(license.id)).map(({ event_type }) => event_type)
        assert.include(types, "license.grace_period_started")
        assert.notInclude(types, "license.feature_expired")
      }
    })
  )

  it.effect("a date by hand takes the place of the license's end, and that of a date", () =>
    Effect.gen(function* () {
      const { assign, license, run } = yield* catalog(1)
      const ends = license.expires_at! + 3 * day
      const dated = yield* assign({ expires_at: ends - day })
      assert.strictEqual(dated.expires_at, ends - day)
      assert.isUndefined(dated.expires_with_license)
      const following = yield* assign({ expires_with_license: true })
      assert.deepStrictEqual([following.expires_at, following.expires_with_license], [ends, true])
      assert.strictEqual((yield* assign({ max_consumptions: 9 })).expires_with_license, true)
      assert.deepStrictEqual(yield* run("validate"), [ends])
      for (const without of [{ expires_at: null }, { expires_with_license: false }]) {
        yield* assign({ expires_with_license: true })
        const plain = yield* assign(without)
        assert.doesNotHaveAnyKeys(plain, ["expires_at", "expires_with_license"])
        assert.deepStrictEqual(yield* run("validate"), [undefined])
      }
      const changed = (yield* eventsOf(license.id)).findLast(
        ({ event_type }) => event_type === "license.feature_assigned"
      )
      assert.deepStrictEqual(changed?.metadata.changes, { expires_with_license: { old: true, new: null } })
    })
  )

  it.effect("applying the policy brings the license's end to features, and days back", () =>
    Effect.gen(function* () {
      const { client, feature, license, listed, policy, set } = yield* catalog(1)
      const apply = client.licenses.changePolicy({ params: { id: license.id }, payload: { policy_id: policy.id } })
      yield* set(feature.id, { expires_after_days: 7 })
      const { updated_at } = yield* apply
      assert.deepInclude((yield* listed)[0], { expires_at: updated_at + 7 * day })
      assert.isUndefined((yield* listed)[0]?.expires_with_license)
      yield* set(feature.id, { expires_with_license: true })
      yield* apply
      assert.deepInclude((yield* listed)[0], { expires_at: license.expires_at! + 3 * day, expires_with_license: true })
    })
  )

  it.effect("no request names both an end and the license's", () =>
    Effect.gen(function* () {
      const { feature, license, policy, send } = yield* catalog(1)
      const both = { expires_with_license: true, expires_at: "2031-01-01T00:00:00Z" }
      const refused = [
        { path: `policies/${policy.id}/features/${feature.id}`, method: "PUT", body: { expires_after_days: 5 } },
        { path: `licenses/${license.id}/features`, method: "POST", body: { feature_id: feature.id, ...both } },
        {
          path: "licenses",
          method: "POST",
          body: {
            product_id: license.product_id,
            policy_id: policy.id,
            features: [{ feature_id: feature.id, ...both }]
          }
        }
      ]
      for (const { body, method, path } of refused) {
        const { json, status } = yield* send({
          path: `/api/v1/${path}`,
          method,
          body: path === "licenses" ? body : { ...body, expires_with_license: true }
        })
        assert.strictEqual(status, 422, path)
        assert.strictEqual((json as { readonly error: { readonly code: string } }).error.code, "VALIDATION_ERROR")
      }
    })
  )
})
