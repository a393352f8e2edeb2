/** Moves between policies race with each other, and with edits and the deletion of the policy, on two nodes. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { startServer, TestServer } from "../../support/http/TestServer.ts"

let made = 0

/** A license with another policy of its product to move to. */
const movable = Effect.gen(function* () {
  const { client } = yield* TestServer
  const { id, product_id } = yield* issue()
  const params = { id: product_id }
  const payload = { name: "Pro", code: `moves-${++made}`, license_type: "subscription" } as const
  const featureOf = (code: string) =>
    Effect.map(client.features.create({ params, payload: { name: code, code } }), (feature) => feature.id)
  const policy = yield* client.policies.create({ params, payload })
  return { id, product_id, policy_id: policy.id, featureOf }
})

layer(TestServer.layer, { excludeTestServices: true, timeout: 120_000 })(
  "Moves at the same time on two nodes",
  (it) => {
    const rounds = 30

    it.effect("end under one policy, with one event for each move and its features alone", () =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const other = (yield* startServer()).client
        for (let round = 0; round < rounds; round++) {
          const { featureOf, id, policy_id, product_id } = yield* movable
          const second = yield* client.policies.create({
            params: { id: product_id },
            payload: { name: "Max", code: `max-${round}`, license_type: "subscription" }
          })
          for (const [policy, code] of [
            [policy_id, "first"],
            [second.id, "second"]
          ] as const) {
            const params = { id: policy, feature_id: yield* featureOf(code) }
            yield* client.policies.setFeature({ params, payload: {} })
          }
          const move = (node: typeof client, policy: string) =>
            node.licenses.changePolicy({ params: { id }, payload: { policy_id: policy } })
          yield* Effect.all([move(client, policy_id), move(other, second.id)], { concurrency: 2 })
          const license = yield* client.licenses.get({ params: { id } })
          const { items } = yield* other.licenses.listFeatures({ params: { id }, query: {} })
          assert.deepStrictEqual(
            items.map(({ feature_code }) => feature_code),
            [license.policy_id === policy_id ? "first" : "second"]
          )
          assert.strictEqual(license.entitlement_version, 3)
          const events = yield* client.events.list({ query: { resource_id: id, event_type: "license.policy_changed" } })
          const steps = events.items.map(
            ({ metadata }) => (metadata["changes"] as { policy_id: { old: string; new: string } }).policy_id
          )
          assert.deepStrictEqual([steps.length, steps[0]?.old, steps[0]?.new], [2, steps[1]?.new, license.policy_id])
        }
      })
    )

    it.effect("get the features that the policy has when they are recorded, or the policy is gone", () =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const other = (yield* startServer()).client
        const sql = yield* SqlClient.SqlClient
        for (let round = 0; round < rounds; round++) {
          const { featureOf, id, policy_id } = yield* movable
          const params = { id: policy_id, feature_id: yield* featureOf("api") }
          yield* client.policies.setFeature({ params, payload: { max_consumptions: 1 } })
          const [moved] = yield* Effect.all(
            [
              Effect.exit(client.licenses.changePolicy({ params: { id }, payload: { policy_id } })),
              Effect.exit(other.policies.setFeature({ params, payload: { max_consumptions: 2 } })),
              Effect.exit(other.policies.update({ params: { id: policy_id }, payload: { max_activations: 5 } })),
              ...(round % 2 === 0 ? [Effect.exit(other.policies.delete({ params: { id: policy_id } }))] : [])
            ],
            { concurrency: "unbounded" }
          )
          const license = yield* other.licenses.get({ params: { id } })
          assert.strictEqual(license.policy_id === policy_id, moved?._tag === "Success")
          const orphans =
            yield* sql`SELECT FROM policy_features f WHERE NOT EXISTS (SELECT FROM policies WHERE id = f.policy_id)`
          assert.strictEqual(orphans.length, 0)
          if (license.policy_id !== policy_id) continue
          const [feature] = (yield* client.licenses.listFeatures({ params: { id }, query: {} })).items
          const [event] = (yield* client.events.list({
            query: { resource_id: id, event_type: "license.policy_changed" }
          })).items
          const { changes } = event!.metadata as {
            readonly changes: { readonly [field: string]: { readonly new: { readonly max_consumptions: number } } }
          }
          assert.strictEqual(feature?.max_consumptions, changes["features.api"]?.new.max_consumptions)
        }
      })
    )
  }
)
