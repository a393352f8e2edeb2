/** Issuing, editing and finding licenses over HTTP. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { eventsOf } from "../../support/database/Services.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const day = 86_400_000

let catalogs = 0

/** A product with a policy of this type and a feature. */
const catalog = Effect.fnUntraced(function* (
  license_type: "perpetual" | "time_limited" | "trial" | "subscription" | "consumption",
  policy: { readonly grace_period_days?: number } = {}
) {
  const { client } = yield* TestServer
  const code = `licenses-${++catalogs}`
  const product = yield* client.products.create({ payload: { name: "Editor", code } })
  const createdPolicy = yield* client.policies.create({
    params: { id: product.id },
    payload: { name: "Policy", code: "policy", license_type, ...policy }
  })
  return { client, product_id: product.id, policy_id: createdPolicy.id }
})

/** The service's time of day, from its responses. */
const now = Effect.gen(function* () {
  const { send } = yield* TestServer
  const { meta } = (yield* send({ path: "/health" })).json as { readonly meta: { readonly timestamp: string } }
  return Date.parse(meta.timestamp)
})

layer(TestServer.layer)("Licenses over HTTP", (it) => {
  it.effect("every editable member is stored, and its event contains old and new values", () =>
    Effect.gen(function* () {
      const { client, product_id, policy_id } = yield* catalog("perpetual")
      const { license } = yield* client.licenses.create({ payload: { product_id, policy_id } })
      const params = { id: license.id }
      const edits = {
        customer_email: "ada@example.com",
        customer_name: "Ada",
        starts_at: 1_900_000_000_000,
        maintenance_expires_at: 2_000_000_000_000,
        metadata: { seat: 4 }
      }
      const edited = yield* client.licenses.update({ params, payload: edits })
      assert.deepInclude(edited, { ...edits, entitlement_version: 2 })
      assert.deepInclude(yield* client.licenses.get({ params }), edits)
      const cleared = { customer_email: null, customer_name: null, starts_at: null, maintenance_expires_at: null }
      yield* client.licenses.update({ params, payload: cleared })
      assert.doesNotHaveAnyKeys(yield* client.licenses.get({ params }), Object.keys(cleared))
      const events = (yield* eventsOf(license.id)).filter(({ event_type }) => event_type === "license.updated")
      assert.deepStrictEqual((events[0]!.metadata as { changes: object }).changes, {
        customer_email: { old: null, new: "ada@example.com" },
        customer_name: { old: null, new: "Ada" },
        starts_at: { old: null, new: new Date(edits.starts_at).toISOString() },
        maintenance_expires_at: { old: null, new: new Date(edits.maintenance_expires_at).toISOString() },
        metadata: { old: {}, new: { seat: 4 } }
      })
      assert.strictEqual(events.length, 2)
    })
  )

  it.effect("an edit that changes nothing writes nothing", () =>
    Effect.gen(function* () {
      const { client, product_id, policy_id } = yield* catalog("perpetual")
      const { license } = yield* client.licenses.create({ payload: { product_id, policy_id, customer_name: "Ada" } })
      const params = { id: license.id }
      assert.deepStrictEqual(yield* client.licenses.update({ params, payload: {} }), license)
      assert.deepStrictEqual(yield* client.licenses.update({ params, payload: { customer_name: "Ada" } }), license)
      assert.strictEqual((yield* eventsOf(license.id)).length, 1)
    })
  )

  it.effect("dates must match the license type, when it is issued and when it is edited", () =>
    Effect.gen(function* () {
      const perpetual = yield* catalog("perpetual")
      const limited = yield* catalog("time_limited")
      const soon = (yield* now) + day
      const create = ({ client, ...ids }: typeof perpetual, dates: object) =>
        Effect.map(Effect.flip(client.licenses.create({ payload: { ...ids, ...dates } })), (refusal) => [
          (refusal as { code?: string }).code,
          (refusal as { detail?: string }).detail
        ])
      assert.deepStrictEqual(yield* create(perpetual, { expires_at: soon }), ["VALIDATION_ERROR", "expires_at"])
      assert.deepStrictEqual(yield* create(limited, {}), ["VALIDATION_ERROR", "expires_at"])
      assert.deepStrictEqual(yield* create(limited, { expires_at: soon - 2 * day }), [
        "EXPIRY_NOT_IN_FUTURE",
        "expires_at"
      ])
      assert.deepStrictEqual(yield* create(limited, { expires_at: soon, maintenance_expires_at: soon }), [
        "VALIDATION_ERROR",
        "maintenance_expires_at"
      ])
      assert.deepStrictEqual(yield* create(limited, { expires_at: soon, starts_at: soon }), [
        "VALIDATION_ERROR",
        "starts_at"
      ])
      const { client, ...ids } = limited
      const { license } = yield* client.licenses.create({ payload: { ...ids, expires_at: soon } })
      const refused = yield* Effect.flip(
        client.licenses.update({ params: { id: license.id }, payload: { expires_at: null } })
      )
      assert.strictEqual((refused as { code?: string }).code, "VALIDATION_ERROR")
    })
  )

  it.effect("the status filter applies the clock, before any sweep", () =>
    Effect.gen(function* () {
      const { client, product_id, policy_id } = yield* catalog("time_limited", { grace_period_days: 2 })
      const { advance } = yield* TestServer
      const start = yield* now
      const issue = (days: number) =>
        Effect.map(
          client.licenses.create({ payload: { product_id, policy_id, expires_at: start + days * day } }),
          ({ license }) => license.id
        )
      const [expired, grace, active] = [yield* issue(1), yield* issue(3), yield* issue(9)]
      const suspended = yield* issue(1)
      yield* client.licenses.suspend({ params: { id: suspended } })
      yield* advance((4 * day) / 1000)
      const foundByStatus = Effect.fnUntraced(function* (status: "active" | "grace_period" | "expired" | "suspended") {
        const page = yield* client.licenses.list({ query: { product_id, status } })
        assert.deepStrictEqual(
          page.items.map((license) => license.status),
          page.items.map(() => status)
        )
        return page.items.map(({ id }) => id)
      })
      assert.deepStrictEqual(
        [
          yield* foundByStatus("active"),
          yield* foundByStatus("grace_period"),
          yield* foundByStatus("expired"),
          yield* foundByStatus("suspended")
        ],
        [[active], [grace], [expired], [suspended]]
      )
    })
  )

  it.effect("the list can be searched by customer, key and links", () =>
    Effect.gen(function* () {
      const { client, product_id, policy_id } = yield* catalog("perpetual")
      const issue = (customer: { readonly customer_name?: string; readonly customer_email?: string }) =>
        Effect.map(
          client.licenses.create({ payload: { product_id, policy_id, ...customer } }),
          ({ license }) => license
        )
      const ada = yield* issue({ customer_name: "Ada Lovelace" })
      const grace = yield* issue({ customer_email: "grace.hopper@example.com" })
      yield* issue({})
      const ids = (query: Parameters<typeof client.licenses.list>[0]["query"]) =>
        Effect.map(client.licenses.list({ query: { product_id, ...query } }), ({ items }) => items.map(({ id }) => id))
      assert.deepStrictEqual(yield* ids({ q: "LOVE" }), [ada.id])
      assert.deepStrictEqual(yield* ids({ q: "hopper@" }), [grace.id])
      assert.deepStrictEqual(yield* ids({ q: "%" }), [])
      assert.include(yield* ids({ license_key_last4: ada.license_key_last4 }), ada.id)
      assert.deepStrictEqual(yield* ids({ order_id: "ord_none" }), [])
      assert.strictEqual((yield* ids({})).length, 3)
    })
  )

  it.effect("licenses and policies can be listed by a feature that they have", () =>
    Effect.gen(function* () {
      const { client, product_id, policy_id } = yield* catalog("perpetual")
      const feature = (code: string) =>
        client.features.create({ params: { id: product_id }, payload: { name: code, code } })
      const [included, assigned] = [yield* feature("included"), yield* feature("assigned")]
      const inPolicy = { params: { id: policy_id, feature_id: included.id } }
      const { license: before } = yield* client.licenses.create({ payload: { product_id, policy_id } })
      yield* client.policies.setFeature({ ...inPolicy, payload: {} })
      yield* client.policies.create({
        params: { id: product_id },
        payload: { name: "Other", code: "other", license_type: "perpetual" }
      })
      const { license: after } = yield* client.licenses.create({ payload: { product_id, policy_id } })
      const params = { id: before.id }
      yield* client.licenses.assignFeature({ params, payload: { feature_id: assigned.id } })
      const having = (feature_id: string) =>
        Effect.gen(function* () {
          const licenses = yield* client.licenses.list({ query: { feature_id, include_total: "true" } })
          const policies = yield* client.policies.list({
            params: { id: product_id },
            query: { feature_id, include_total: "true" }
          })
          assert.strictEqual(licenses.total, licenses.items.length)
          assert.strictEqual(policies.total, policies.items.length)
          return [licenses, policies].map(({ items }) => items.map(({ id }) => id))
        })
      assert.deepStrictEqual(yield* having(included.id), [[after.id], [policy_id]])
      assert.deepStrictEqual(yield* having(assigned.id), [[before.id], []])
      yield* client.licenses.removeFeature({ params: { id: before.id, feature_id: assigned.id } })
      yield* client.policies.removeFeature(inPolicy)
      // A license keeps what came with its policy.
      assert.deepStrictEqual(yield* having(included.id), [[after.id], []])
      assert.deepStrictEqual(yield* having(assigned.id), [[], []])
    })
  )
})
