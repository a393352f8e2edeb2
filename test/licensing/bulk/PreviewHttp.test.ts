/** Previews of a license's changes, over HTTP: what the change then does, or its refusal, and nothing is written. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { LicensePreviewRequest, PreviewAction } from "../../../src/licensing/bulk/Preview.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { codeOf, freshKey, issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

/** A license with a device, a seat and a used quota of its policy, and a larger policy with another feature. */
const make = Effect.gen(function* () {
  const { client } = yield* TestServer
  const { id, product_id, runtime } = yield* issue({ max_floating_users: 2, max_activations: 3 })
  const { policy_id } = yield* client.licenses.get({ params: { id } })
  const params = { id: product_id }
  const renders = yield* client.features.create({ params, payload: { name: "Renders", code: "renders" } })
  const support = yield* client.features.create({ params, payload: { name: "Support", code: "support" } })
  const policy = yield* client.policies.create({
    params,
    payload: { name: "Team", code: "team", license_type: "subscription", max_floating_users: 9, max_activations: 1 }
  })
  const give = (policy: string, feature: string, max: number) =>
    client.policies.setFeature({ params: { id: policy, feature_id: feature }, payload: { max_consumptions: max } })
  yield* give(policy_id, renders.id, 10)
  yield* client.licenses.changePolicy({ params: { id }, payload: { policy_id } })
  yield* give(policy.id, renders.id, 50)
  yield* give(policy.id, support.id, 5)
  yield* runtime.activate({ payload: { fingerprint: "laptop" } })
  yield* runtime.consume({ payload: { fingerprint: "laptop", feature_code: "renders", amount: 4, event_id: "one" } })
  yield* runtime.checkout({ payload: { fingerprint: "desk" } })
  return { id, policy: policy.id, previous: policy_id, runtime }
})

const get = (id: string) => Effect.flatMap(TestServer, ({ client }) => client.licenses.get({ params: { id } }))
const preview = (id: string, payload: LicensePreviewRequest) =>
  Effect.flatMap(TestServer, ({ client }) => client.licenses.preview({ params: { id }, payload }))

/** Makes a change by the operation that the action names. */
const perform = Effect.fnUntraced(function* (id: string, { action, parameters = {} }: LicensePreviewRequest) {
  const { client } = yield* TestServer
  const params = { id }
  const ofDevice = { id, device_id: parameters.device_id ?? "" }
  const operations = {
    suspend: client.licenses.suspend({ params }),
    reinstate: client.licenses.reinstate({ params }),
    revoke: client.licenses.revoke({ params }),
    renew: client.licenses.renew({ params, payload: parameters, headers: freshKey() }),
    policy: client.licenses.changePolicy({ params, payload: parameters as { readonly policy_id: string } }),
    apply_policy: Effect.flatMap(get(id), ({ policy_id }) =>
      client.licenses.changePolicy({ params, payload: { policy_id } })
    ),
    update: client.licenses.update({ params, payload: parameters }),
    reset_devices: client.licenses.transfer({ params, payload: { reset_devices: true } }),
    transfer: client.licenses.transfer({ params, payload: parameters }),
    maintenance: client.licenses.renewMaintenance({ params, payload: parameters, headers: freshKey() }),
    reset_device: client.devices.reset({ params: ofDevice, payload: {} }),
    blacklist_device: client.devices.blacklist({ params: ofDevice })
  } satisfies { readonly [A in PreviewAction]: Effect.Effect<unknown, unknown, TestServer> }
  yield* operations[action]
})

/** A license and its features without the instants of the change. */
const stateOf = Effect.fnUntraced(function* (id: string) {
  const { client } = yield* TestServer
  const { items } = yield* client.licenses.listFeatures({ params: { id }, query: {} })
  const leases = yield* client.licenses.listLeases({ params: { id }, query: {} })
  return comparable({ license: yield* get(id), features: items, live_leases: leases.items.length })
})

type State = Effect.Success<ReturnType<typeof preview>>["before"]

const comparable = ({ features, license: { updated_at: _, ...license }, live_leases }: State) => ({
  license,
  features: features.toSorted((one, other) => one.feature_code.localeCompare(other.feature_code)),
  live_leases
})

layer(TestServer.layer, { timeout: 120_000 })("A preview", (it) => {
  it.effect("is what each change then does, and writes nothing", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { id, policy, runtime } = yield* make
      const { data: phone } = yield* runtime.activate({ payload: { fingerprint: "phone" } })
      const { data: seat } = yield* runtime.checkout({ payload: { fingerprint: "booth" } })
      const changes: ReadonlyArray<LicensePreviewRequest> = [
        { action: "reset_device", parameters: { device_id: phone.device_id } },
        { action: "blacklist_device", parameters: { device_id: seat.device_id } },
        { action: "update", parameters: { max_floating_users: 5, max_activations: null } },
        { action: "policy", parameters: { policy_id: policy } },
        { action: "apply_policy" },
        { action: "renew", parameters: { extend_by_days: 30 } },
        { action: "suspend" },
        { action: "reinstate" },
        { action: "transfer", parameters: { customer_name: "Anna", reset_devices: true } },
        { action: "reset_devices" },
        { action: "revoke" }
      ]
      const effects: Array<string> = []
      for (const change of changes) {
        const before = yield* stateOf(id)
        const latest = yield* client.events.list({ query: { limit: 1 } })
        const previewed = yield* preview(id, change)
        assert.isTrue(previewed.admitted, change.action)
        assert.deepStrictEqual(comparable(previewed.before), before, change.action)
        assert.deepStrictEqual(yield* stateOf(id), before, change.action)
        assert.deepStrictEqual(yield* client.events.list({ query: { limit: 1 } }), latest, change.action)
        yield* perform(id, change)
        // A renewal of an active license begins at its expiry, so no instant of the change is in it.
        assert.deepStrictEqual(comparable(previewed.after!), yield* stateOf(id), change.action)
        effects.push(`${change.action} ${previewed.changed}`)
      }
      assert.deepStrictEqual(effects, [
        "reset_device true",
        "blacklist_device true",
        "update true",
        "policy true",
        "apply_policy false",
        "renew true",
        "suspend true",
        "reinstate true",
        "transfer true",
        "reset_devices false",
        "revoke true"
      ])
    })
  )

  it.effect("shows limits, features and what is used before and after a move to another policy", () =>
    Effect.gen(function* () {
      const { id, policy } = yield* make
      const { after, before } = yield* preview(id, { action: "policy", parameters: { policy_id: policy } })
      const shown = ({ features, license, live_leases }: State) => ({
        used: [license.active_device_count, live_leases],
        limits: [license.limits.max_activations, license.limits.max_floating_users],
        features: features.map(({ feature_code, max_consumptions, remaining }) => [
          feature_code,
          max_consumptions,
          remaining
        ])
      })
      assert.deepStrictEqual(shown(before), { used: [1, 1], limits: [3, 2], features: [["renders", 10, 6]] })
      assert.deepStrictEqual(shown(after!), {
        used: [1, 1],
        limits: [1, 9],
        features: [
          ["renders", 50, 46],
          ["support", 5, 5]
        ]
      })
    })
  )

  it.effect("shows the owner, the slot and the seat, and the end of maintenance before and after", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { id, runtime } = yield* make
      const shown = (change: LicensePreviewRequest) =>
        Effect.map(preview(id, change), ({ after, before }) =>
          [before, after!].map(({ license, live_leases }) => [
            license.customer_name,
            license.times_transferred,
            license.active_device_count,
            live_leases
          ])
        )
      assert.deepStrictEqual(
        yield* shown({ action: "transfer", parameters: { customer_name: "Anna", reset_devices: true } }),
        [
          [undefined, 0, 1, 1],
          ["Anna", 1, 0, 0]
        ]
      )
      const { data } = yield* runtime.validate({ payload: { fingerprint: "laptop" } })
      assert.deepStrictEqual(yield* shown({ action: "reset_device", parameters: { device_id: data.device_id } }), [
        [undefined, 0, 1, 1],
        [undefined, 0, 0, 1]
      ])
      const end = Date.UTC(2040, 0, 1)
      const { product_id } = yield* get(id)
      const forever = { name: "Forever", code: "forever", license_type: "perpetual" } as const
      const policy = yield* client.policies.create({ params: { id: product_id }, payload: forever })
      const { license: perpetual } = yield* client.licenses.create({
        payload: { product_id, policy_id: policy.id, maintenance_expires_at: end }
      })
      const renewal = { action: "maintenance", parameters: { extend_by_days: 2 } } as const
      const { after, before } = yield* preview(perpetual.id, renewal)
      const day = 86_400_000
      assert.deepStrictEqual(
        [before, after!].map(({ license }) => license.maintenance_expires_at),
        [end, end + 2 * day]
      )
      yield* perform(perpetual.id, renewal)
      assert.strictEqual(
        (yield* client.licenses.get({ params: { id: perpetual.id } })).maintenance_expires_at,
        end + 2 * day
      )
    })
  )

  it.effect("has the code of the refusal that the change would get, and the license as it is", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const [{ id, policy }, other] = [yield* make, yield* make]
      const refused = (request: LicensePreviewRequest) =>
        Effect.map(preview(id, request), ({ admitted, after, before, changed, code, detail, message }) => {
          assert.deepStrictEqual([admitted, after, changed, before.license.id], [false, undefined, false, id])
          assert.isNotEmpty(message)
          return detail === undefined ? code : `${code} ${detail}`
        })
      const move = (policy_id: string) => refused({ action: "policy", parameters: { policy_id } })
      assert.deepStrictEqual(yield* move(other.policy), "LINKAGE_MISMATCH policy_id")
      assert.deepStrictEqual(yield* move("pol_unknown"), "NOT_FOUND policy_id")
      const { expires_at = 0 } = yield* get(id)
      assert.deepStrictEqual(
        yield* refused({ action: "renew", parameters: { expires_at } }),
        "RENEWAL_NOT_LATER expires_at"
      )
      yield* client.licenses.revoke({ params: { id } })
      assert.deepStrictEqual(yield* refused({ action: "suspend" }), "LICENSE_STATE_CONFLICT revoked")
      assert.deepStrictEqual(yield* move(policy), "LICENSE_STATE_CONFLICT revoked")
    })
  )

  it.effect("is refused for an unknown license, action or parameter", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const { id } = yield* make
      assert.strictEqual(yield* codeOf(preview("lic_unknown", { action: "suspend" })), "NOT_FOUND")
      const ask = (body: object) => send({ method: "POST", path: `/api/v1/licenses/${id}/preview`, body })
      assertRefused(yield* ask({ action: "delete" }), 422, "VALIDATION_ERROR", "action")
      assertRefused(yield* ask({}), 422, "VALIDATION_ERROR", "action")
      const other = { action: "suspend", parameters: { extend_by_days: 1 } }
      assertRefused(yield* ask(other), 422, "VALIDATION_ERROR", "parameters.extend_by_days")
      assertRefused(yield* ask({ action: "policy" }), 422, "VALIDATION_ERROR", "parameters.policy_id")
      assertRefused(yield* ask({ action: "transfer" }), 422, "VALIDATION_ERROR", "parameters")
      const rotation = { action: "transfer", parameters: { customer_name: "Anna", rotate_key: true } }
      assertRefused(yield* ask(rotation), 400, "INVALID_JSON", "parameters.rotate_key")
      const both = { extend_by_days: 1, maintenance_expires_at: "2040-01-01T00:00:00Z" }
      assertRefused(yield* ask({ action: "maintenance", parameters: both }), 422, "VALIDATION_ERROR", "parameters")
      const device = { device_id: "dev_unknown" }
      assertRefused(
        yield* ask({ action: "blacklist_device", parameters: { ...device, release_borrowed: true } }),
        422,
        "VALIDATION_ERROR",
        "parameters.release_borrowed"
      )
      assertRefused(yield* ask({ action: "suspend", dry_run: true }), 400, "INVALID_JSON", "dry_run")
      assertAnswered(yield* ask({ action: "suspend" }), 200)
      // Within the transaction of an Idempotency-Key.
      const { json } = yield* send({
        method: "POST",
        path: `/api/v1/licenses/${id}/preview`,
        headers: freshKey(),
        body: { action: "suspend" }
      })
      assert.isTrue((json as { readonly data: { readonly changed: boolean } }).data.changed)
    })
  )
})
