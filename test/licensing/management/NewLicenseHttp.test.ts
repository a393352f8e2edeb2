/** Licenses that are created with limits of their own, with features, and with a term from their policy. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { PolicyCreate } from "../../../src/vendor/policies/Policy.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { codeOf, issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const day = 86_400_000
const limits = [
  "max_activations",
  "max_container_instances",
  "max_floating_users",
  "max_transfers",
  "offline_grace_days",
  "self_deactivations_per_month"
]

let made = 0

/** A product with a policy and the features `api`, `export` and `reports`. */
const makeCatalog = Effect.fnUntraced(function* (policy: Partial<typeof PolicyCreate.Type> = {}) {
  const { client } = yield* TestServer
  const product = yield* client.products.create({ payload: { name: "P", code: `new-license-${++made}` } })
  const params = { id: product.id }
  const { id: policy_id } = yield* client.policies.create({
    params,
    payload: { name: "Lite", code: "lite", license_type: "consumption", ...policy }
  })
  const features: Record<string, string> = {}
  for (const code of ["api", "export", "reports"])
    features[code] = (yield* client.features.create({ params, payload: { name: code, code } })).id
  return { product_id: product.id, policy_id, featureOf: (code: string) => features[code]! }
})

const countLicenses = Effect.gen(function* () {
  const { client } = yield* TestServer
  return (yield* client.licenses.list({ query: { limit: 200 } })).items.length
})

const create = Effect.fnUntraced(function* (body: object) {
  return yield* (yield* TestServer).send({ method: "POST", path: "/api/v1/licenses", body })
})

layer(TestServer.layer)("Limits of one license", (it) => {
  it.effect("replace the policy's where they are set, and are the policy's again after null", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { id, policy } = yield* Effect.gen(function* () {
        const issued = yield* issue({ max_activations: 2 }, { max_floating_users: 51, max_activations: null })
        const license = yield* client.licenses.get({ params: { id: issued.id } })
        return { id: issued.id, policy: license.policy_id, license }
      })
      const read = client.licenses.get({ params: { id } })
      const first = yield* read
      assert.strictEqual(first.max_floating_users, 51)
      assert.notProperty(first, "max_activations")
      assert.deepStrictEqual(first.limits, {
        max_activations: 2,
        max_floating_users: 51,
        max_transfers: 0,
        offline_grace_days: 7,
        self_deactivations_per_month: 3
      })
      const update = (payload: object) => client.licenses.update({ params: { id }, payload })
      const all = Object.fromEntries(limits.map((name, index) => [name, index]))
      const raised = yield* update(all)
      assert.deepInclude(raised, all)
      assert.deepStrictEqual(raised.limits, all as never)
      yield* client.policies.update({ params: { id: policy }, payload: { max_activations: 9, max_transfers: 4 } })
      const cleared = yield* update(Object.fromEntries(limits.map((name) => [name, null])))
      assert.doesNotHaveAnyKeys(cleared, limits)
      assert.deepStrictEqual(cleared.limits, {
        max_activations: 9,
        max_transfers: 4,
        offline_grace_days: 7,
        self_deactivations_per_month: 3
      })
      assert.strictEqual(cleared.entitlement_version, first.entitlement_version)
      const [listed] = (yield* client.licenses.list({ query: { policy_id: policy } })).items
      assert.deepStrictEqual(listed, yield* read)
    })
  )

  it.effect("apply to the runtime immediately, and end nothing when they are lowered", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { id, runtime } = yield* issue({ max_activations: 1, max_floating_users: 1 })
      const limit = (payload: object) => client.licenses.update({ params: { id }, payload })
      const activate = (fingerprint: string) => runtime.activate({ payload: { fingerprint } })
      yield* activate("one")
      assert.strictEqual(yield* codeOf(activate("two")), "ACTIVATION_LIMIT_REACHED")
      yield* limit({ max_activations: 2 })
      yield* activate("two")
      yield* limit({ max_activations: 1, max_floating_users: 0 })
      yield* runtime.validate({ payload: { fingerprint: "two" } })
      assert.strictEqual(yield* codeOf(activate("three")), "ACTIVATION_LIMIT_REACHED")
      const seat = runtime.checkout({ payload: { fingerprint: "four" } })
      assert.strictEqual(yield* codeOf(seat), "FLOATING_NOT_ENABLED")
      assert.strictEqual((yield* client.licenses.get({ params: { id } })).active_device_count, 2)
    })
  )

  it.effect("are refused beyond their range and with a wrong type", () =>
    Effect.gen(function* () {
      const { product_id, policy_id } = yield* makeCatalog()
      const { path } = yield* issue()
      const { send } = yield* TestServer
      const before = yield* countLicenses
      for (const name of limits) {
        for (const [value, status, code] of [
          [-1, 422, "VALIDATION_ERROR"],
          [1.5, 422, "VALIDATION_ERROR"],
          [2_147_483_648, 422, "VALIDATION_ERROR"],
          ["1", 400, "INVALID_JSON"],
          [true, 400, "INVALID_JSON"]
        ] as const) {
          assertRefused(yield* create({ product_id, policy_id, [name]: value }), status, code, name)
          assertRefused(yield* send({ method: "PATCH", path, body: { [name]: value } }), status, code, name)
        }
      }
      assert.strictEqual(yield* countLicenses, before)
    })
  )
})

layer(TestServer.layer)("Features of a new license", (it) => {
  it.effect("are those of its policy, and those that the request overrides or adds", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { product_id, policy_id, featureOf } = yield* makeCatalog()
      const set = (code: string, payload: object) =>
        client.policies.setFeature({ params: { id: policy_id, feature_id: featureOf(code) }, payload })
      yield* set("api", { max_consumptions: 100, expires_after_days: 10, metadata: { tier: "lite" } })
      yield* set("export", { enabled: false })
      const plain = yield* client.licenses.create({ payload: { product_id, policy_id } })
      const featuresOf = (id: string) =>
        Effect.map(client.licenses.listFeatures({ params: { id }, query: {} }), ({ items }) =>
          items.toSorted((a, b) => (a.feature_code < b.feature_code ? -1 : 1))
        )
      const [api, exported] = yield* featuresOf(plain.license.id)
      assert.deepInclude(api, {
        feature_code: "api",
        max_consumptions: 100,
        remaining: 100,
        from_policy: true,
        metadata: { tier: "lite" }
      })
      assert.strictEqual(api!.expires_at, plain.license.created_at + 10 * day)
      assert.deepInclude(exported, { feature_code: "export", enabled: false, from_policy: true })

      const features = [
        { feature_id: featureOf("api"), max_consumptions: null },
        { feature_id: featureOf("export"), enabled: true },
        { feature_id: featureOf("reports"), max_consumptions: 5 }
      ]
      const { license } = yield* client.licenses.create({ payload: { product_id, policy_id, features } })
      const [own, enabled, added] = yield* featuresOf(license.id)
      assert.deepInclude(own, { from_policy: false, metadata: { tier: "lite" } })
      assert.notProperty(own, "max_consumptions")
      assert.deepInclude(enabled, { enabled: true, from_policy: false })
      assert.deepInclude(added, { feature_code: "reports", max_consumptions: 5, from_policy: false })

      const events = assertAnswered(yield* send({ path: `/api/v1/events?resource_id=${license.id}` }), 200)
      const [created] = events as ReadonlyArray<{
        readonly event_type: string
        readonly metadata: { features: ReadonlyArray<object> }
      }>
      assert.strictEqual(created!.event_type, "license.created")
      assert.sameDeepMembers(created!.metadata.features as Array<object>, [
        {
          feature_id: featureOf("api"),
          feature_code: "api",
          from_policy: false,
          enabled: true,
          expires_at: new Date(own!.expires_at!).toISOString()
        },
        { feature_id: featureOf("export"), feature_code: "export", from_policy: false, enabled: true },
        {
          feature_id: featureOf("reports"),
          feature_code: "reports",
          from_policy: false,
          enabled: true,
          max_consumptions: 5
        }
      ])
    })
  )

  it.effect("are refused with the index of the wrong one, and nothing is created", () =>
    Effect.gen(function* () {
      const { product_id, policy_id, featureOf } = yield* makeCatalog()
      const other = yield* makeCatalog()
      const before = yield* countLicenses
      const own = { feature_id: featureOf("api") }
      const cases: ReadonlyArray<readonly [unknown, number, string, string]> = [
        [[own, { feature_id: "feat_none" }], 404, "NOT_FOUND", "features[1].feature_id"],
        [[own, { feature_id: other.featureOf("api") }], 422, "LINKAGE_MISMATCH", "features[1].feature_id"],
        [[own, own], 422, "VALIDATION_ERROR", "features[1].feature_id"],
        [[{ max_consumptions: 1 }], 422, "VALIDATION_ERROR", "features[0].feature_id"],
        [[{ ...own, max_consumptions: -1 }], 422, "VALIDATION_ERROR", "features[0].max_consumptions"],
        [[{ ...own, note: "" }], 400, "INVALID_JSON", "features[0].note"],
        [Array.from({ length: 201 }, () => own), 422, "VALIDATION_ERROR", "features"],
        [null, 400, "INVALID_JSON", "features"],
        [own, 400, "INVALID_JSON", "features"]
      ]
      for (const [features, status, code, detail] of cases)
        assertRefused(yield* create({ product_id, policy_id, features }), status, code, detail)
      assert.strictEqual(yield* countLicenses, before)
    })
  )
})

layer(TestServer.layer)("Terms by a policy's duration", (it) => {
  it.effect("begin with the creation, unless an expiry is given", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { product_id, policy_id } = yield* makeCatalog({ license_type: "trial", duration_days: 14 })
      const { license } = yield* client.licenses.create({ payload: { product_id, policy_id } })
      assert.strictEqual(license.expires_at, license.created_at + 14 * day)
      const expires_at = license.created_at + day
      const given = yield* client.licenses.create({ payload: { product_id, policy_id, expires_at } })
      assert.strictEqual(given.license.expires_at, expires_at)
      const far = yield* create({ product_id, policy_id, starts_at: "9999-12-31T00:00:00Z" })
      assertRefused(far, 422, "VALIDATION_ERROR", "starts_at")
    })
  )

  it.effect("begin with the first activation, which shows and records the expiry", () =>
    Effect.gen(function* () {
      const { advance, client, connect } = yield* TestServer
      const { product_id, policy_id } = yield* makeCatalog({
        license_type: "time_limited",
        duration_days: 30,
        duration_starts: "first_activation"
      })
      const { license, license_key } = yield* client.licenses.create({ payload: { product_id, policy_id } })
      assert.notProperty(license, "expires_at")
      assert.notProperty(license, "term_days")
      yield* advance(3 * 86_400)
      const { runtime } = yield* connect({ licenseKey: license_key })
      const { data } = yield* runtime.activate({ payload: { fingerprint: "A" } })
      const stored = yield* client.licenses.get({ params: { id: license.id } })
      assert.isDefined(stored.expires_at)
      assert.isAtLeast(stored.expires_at!, license.created_at + 33 * day)
      assert.strictEqual(Number(data.expires_at), stored.expires_at)
      assert.strictEqual(stored.entitlement_version, license.entitlement_version + 1)
      const { items } = yield* client.events.list({ query: { resource_id: license.id, limit: 2 } })
      assert.deepStrictEqual(
        items.map(({ event_type }) => event_type),
        ["license.updated", "license.activated"]
      )
    })
  )

  it.effect("are needed or given where the type has a term, and refused for perpetual policies", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const { product_id, policy_id } = yield* makeCatalog({ license_type: "subscription" })
      assertRefused(yield* create({ product_id, policy_id }), 422, "VALIDATION_ERROR", "expires_at")
      const perpetual = { name: "P", code: "perpetual", license_type: "perpetual", duration_days: 1 }
      const path = `/api/v1/products/${product_id}/policies`
      assertRefused(yield* send({ method: "POST", path, body: perpetual }), 422, "VALIDATION_ERROR", "duration_days")
      const wrong = { name: "P", code: "wrong", license_type: "trial" }
      for (const [field, value, status, code] of [
        ["duration_days", 0, 422, "VALIDATION_ERROR"],
        ["duration_days", 36_501, 422, "VALIDATION_ERROR"],
        ["duration_days", null, 400, "INVALID_JSON"],
        ["duration_starts", "later", 422, "VALIDATION_ERROR"],
        ["allow_transfer", "no", 400, "INVALID_JSON"]
      ] as const)
        assertRefused(yield* send({ method: "POST", path, body: { ...wrong, [field]: value } }), status, code, field)
    })
  )
})
