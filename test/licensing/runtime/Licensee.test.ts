/** What signed payloads show of a license's owner, as its policy chooses, over HTTP. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

interface Shown {
  readonly data: {
    readonly entitlement_version: number
    readonly licensee?: { readonly name: string }
    readonly metadata?: object
  }
}

const owned = { customer_name: "Ada Ltd", metadata: { site: "Paris", note: "internal", seats: [1, { a: null }] } }

const made = Effect.fnUntraced(function* (policy: Parameters<typeof issue>[0]) {
  const { client, send } = yield* TestServer
  const license = yield* issue(policy, owned)
  const { policy_id } = yield* client.licenses.get({ params: { id: license.id } })
  const activate = Effect.map(
    send({
      method: "POST",
      path: "/api/v1/license/activate",
      headers: { authorization: `License ${license.license_key}` },
      body: { fingerprint: "machine" }
    }),
    ({ json }) => (json as Shown).data
  )
  const update = (payload: object) => client.licenses.update({ params: { id: license.id }, payload })
  const updatePolicy = (payload: object) => client.policies.update({ params: { id: policy_id }, payload })
  return { ...license, activate, update, updatePolicy }
})

layer(TestServer.layer)("A signed payload", (it) => {
  it.effect("has the licensee and the chosen members of the metadata only if the policy says so", () =>
    Effect.gen(function* () {
      const { activate, updatePolicy } = yield* made({})
      const hidden = yield* activate
      assert.doesNotHaveAnyKeys(hidden, ["licensee", "metadata"])
      yield* updatePolicy({ show_licensee: true, show_metadata: ["site", "seats", "missing", "__proto__"] })
      const shown = yield* activate
      assert.deepInclude(shown, {
        licensee: { name: "Ada Ltd" },
        metadata: { site: "Paris", seats: [1, { a: null }] },
        entitlement_version: hidden.entitlement_version + 1
      })
      yield* updatePolicy({ show_licensee: false, show_metadata: ["missing"] })
      assert.doesNotHaveAnyKeys(yield* activate, ["licensee", "metadata"])
    })
  )

  it.effect("has a higher entitlement version after a change of what it shows, and only then", () =>
    Effect.gen(function* () {
      const { activate, update } = yield* made({ show_licensee: true, show_metadata: ["site"] })
      const { entitlement_version: first } = yield* activate
      yield* update({ metadata: { site: "Paris", note: "changed" }, customer_email: "ada@example.com" })
      assert.strictEqual((yield* activate).entitlement_version, first)
      yield* update({ metadata: { site: "Rome" } })
      yield* update({ customer_name: null })
      const last = yield* activate
      assert.deepInclude(last, { entitlement_version: first + 2, metadata: { site: "Rome" } })
      assert.notProperty(last, "licensee")
    })
  )

  it.effect("loses the name of an erased customer with a higher entitlement version", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { activate, id } = yield* made({ show_licensee: true })
      const customer = yield* client.customers.create({
        payload: { name: "Ada Ltd", code: `ada-${id.slice(-8).toLowerCase()}` }
      })
      yield* client.licenses.transfer({
        params: { id },
        payload: { customer_id: customer.id, customer_name: "Ada Ltd" }
      })
      const { entitlement_version, licensee } = yield* activate
      assert.deepStrictEqual(licensee, { name: "Ada Ltd" })
      yield* client.customers.erase({ params: { id: customer.id }, headers: {} } as never)
      const erased = yield* activate
      assert.notProperty(erased, "licensee")
      assert.isAbove(erased.entitlement_version, entitlement_version)
    })
  )
})
