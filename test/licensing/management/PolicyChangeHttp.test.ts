/** Moves of licenses between policies, over HTTP and on two nodes. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { PolicyCreate } from "../../../src/vendor/policies/Policy.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { codeOf, freshKey, issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const day = 86_400_000

let made = 0

/** A license with another policy of its product to move to. */
const movable = Effect.fnUntraced(function* (
  from: Partial<typeof PolicyCreate.Type> = {},
  to: Partial<typeof PolicyCreate.Type> = {}
) {
  const { client } = yield* TestServer
  const license = yield* issue(from)
  const target = yield* client.policies.create({
    params: { id: license.product_id },
    payload: { name: "Pro", code: `pro-${++made}`, license_type: "subscription", ...to }
  })
  const featureOf = (code: string) =>
    Effect.map(
      client.features.create({ params: { id: license.product_id }, payload: { name: code, code } }),
      ({ id }) => id
    )
  return { ...license, policy_id: target.id, featureOf }
})

layer(TestServer.layer)("A change of policy over HTTP", (it) => {
  it.effect("moves the license, and the runtime follows at once", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { id, policy_id, runtime } = yield* movable(
        { max_activations: 2, max_floating_users: 1 },
        { max_activations: 1, license_type: "time_limited", duration_days: 90 }
      )
      yield* runtime.activate({ payload: { fingerprint: "A" } })
      const second = yield* runtime.activate({ payload: { fingerprint: "B" } })
      const seat = yield* runtime.checkout({ payload: { fingerprint: "C" } })
      const before = yield* client.licenses.get({ params: { id } })
      const moved = yield* client.licenses.changePolicy({ params: { id }, payload: { policy_id } })
      assert.deepInclude(moved, {
        policy_id,
        active_device_count: 2,
        entitlement_version: before.entitlement_version + 1
      })
      assert.isAbove(moved.expires_at!, before.expires_at! + 59 * day)
      assert.strictEqual(moved.limits.max_activations, 1)
      assert.deepStrictEqual(yield* client.licenses.get({ params: { id } }), moved)
      const { data } = yield* runtime.validate({ payload: { fingerprint: "B" } })
      assert.deepInclude(data, { policy_id, license_type: "time_limited", device_id: second.data.device_id })
      assert.strictEqual(data.entitlement_version, moved.entitlement_version)
      const third = yield* codeOf(runtime.activate({ payload: { fingerprint: "D" } }))
      assert.strictEqual(third, "ACTIVATION_LIMIT_REACHED")
      yield* runtime.heartbeat({ payload: { lease_token: seat.data.lease_token } })
      const another = yield* codeOf(runtime.checkout({ payload: { fingerprint: "E" } }))
      assert.strictEqual(another, "FLOATING_NOT_ENABLED")
    })
  )

  it.effect("replaces features of the old policy, and the listed assignments say where they come from", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { featureOf, id, policy_id } = yield* movable()
      const [api, hand] = [yield* featureOf("api"), yield* featureOf("hand")]
      yield* client.policies.setFeature({
        params: { id: policy_id, feature_id: api },
        payload: { max_consumptions: 9 }
      })
      yield* client.licenses.assignFeature({ params: { id }, payload: { feature_id: hand } })
      yield* client.licenses.changePolicy({ params: { id }, payload: { policy_id } })
      const features = Effect.map(client.licenses.listFeatures({ params: { id }, query: {} }), ({ items }) =>
        items.map(({ feature_code, from_policy, max_consumptions }) => [feature_code, from_policy, max_consumptions])
      )
      assert.sameDeepMembers(yield* features, [
        ["api", true, 9],
        ["hand", false, undefined]
      ])
      yield* client.licenses.assignFeature({ params: { id }, payload: { feature_id: api, max_consumptions: 9 } })
      assert.deepInclude(yield* features, ["api", false, 9])
    })
  )

  it.effect("happens once for an Idempotency-Key, and records one event with old and new values", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { id, policy_id, post } = yield* movable()
      const old = (yield* client.licenses.get({ params: { id } })).policy_id
      const key = freshKey()
      const first = yield* post("policy", { policy_id, expires_at: "2999-01-01T00:00:00Z" }, key)
      assertAnswered(first, 200)
      const again = yield* post("policy", { policy_id, expires_at: "2999-01-01T00:00:00Z" }, key)
      assert.deepStrictEqual([again.status, again.text], [200, first.text])
      assertAnswered(yield* post("policy", { policy_id }), 200)
      const { items } = yield* client.events.list({ query: { resource_id: id, event_type: "license.policy_changed" } })
      assert.strictEqual(items.length, 1)
      const { changes } = items[0]!.metadata as {
        readonly changes: { readonly [field: string]: { readonly new: unknown } }
      }
      assert.deepStrictEqual(changes["policy_id"], { old, new: policy_id } as never)
      assert.strictEqual(changes["expires_at"]?.new, "2999-01-01T00:00:00.000Z")
      const [activity] = (yield* client.activities.list({ query: { license_id: id, limit: 1 } })).items
      assert.strictEqual(activity?.action, "license.change_policy")
    })
  )

  it.effect("refuses wrong bodies and policies, and changes nothing", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const license = yield* movable()
      const { id, policy_id, post } = license
      const foreign = yield* movable()
      const perpetual = yield* movable({}, { license_type: "perpetual" })
      const before = yield* client.licenses.get({ params: { id } })
      const cases: ReadonlyArray<readonly [unknown, number, string, string?]> = [
        [{}, 422, "VALIDATION_ERROR", "policy_id"],
        [{ policy_id: null }, 400, "INVALID_JSON", "policy_id"],
        [{ policy_id: "pol_none" }, 404, "NOT_FOUND", "policy_id"],
        [{ policy_id: foreign.policy_id }, 422, "LINKAGE_MISMATCH", "policy_id"],
        [{ policy_id, expires_at: "2020-01-01T00:00:00Z" }, 422, "EXPIRY_NOT_IN_FUTURE", "expires_at"],
        [{ policy_id, expires_at: null }, 400, "INVALID_JSON", "expires_at"],
        [{ policy_id, keep_features: "yes" }, 400, "INVALID_JSON", "keep_features"],
        [{ policy_id, note: "" }, 400, "INVALID_JSON", "note"],
        ["", 400, "INVALID_JSON"]
      ]
      for (const [body, status, code, detail] of cases) assertRefused(yield* post("policy", body), status, code, detail)
      assert.deepStrictEqual(yield* client.licenses.get({ params: { id } }), before)
      const dated = { policy_id: perpetual.policy_id, expires_at: "2999-01-01T00:00:00Z" }
      assertRefused(yield* perpetual.post("policy", dated), 422, "VALIDATION_ERROR", "expires_at")
      assertAnswered(yield* post("revoke"), 200)
      assertRefused(yield* post("policy", { policy_id }), 409, "LICENSE_STATE_CONFLICT", "revoked")
    })
  )

  it.effect("refuses a transfer where the new policy allows none", () =>
    Effect.gen(function* () {
      const { policy_id, post } = yield* movable({}, { allow_transfer: false })
      assertAnswered(yield* post("transfer", { customer_name: "Ada" }), 200)
      assertAnswered(yield* post("policy", { policy_id }), 200)
      assertRefused(yield* post("transfer", { customer_name: "Bob" }), 403, "TRANSFER_NOT_ALLOWED", "allow_transfer")
    })
  )
})
