import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { License } from "../../../src/licensing/model/License.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { freshKey, issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const iso = (millis: number) => new Date(millis).toISOString()
const day = 86_400_000

/** A license as JSON. */
type LicenseJson = { readonly [K in keyof License]: unknown }

layer(TestServer.layer)("Renewals over HTTP", (it) => {
  it.effect("extend a license by days or to an instant, through the typed client too", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { id, expires_at, post } = yield* issue()
      const extended = assertAnswered(yield* post("renew", { extend_by_days: 3 }, freshKey()), 200) as LicenseJson
      assert.deepInclude(extended, {
        id,
        status: "active",
        expires_at: iso(expires_at + 3 * day),
        entitlement_version: 2
      })
      const to = expires_at + 40 * day
      const renewed = yield* client.licenses.renew({ params: { id }, headers: freshKey(), payload: { expires_at: to } })
      assert.deepInclude(renewed, { expires_at: to, entitlement_version: 3 })
    })
  )

  it.effect("require an Idempotency-Key, even if other parts are invalid", () =>
    Effect.gen(function* () {
      const { post } = yield* issue()
      assertRefused(yield* post("renew", "no JSON"), 400, "IDEMPOTENCY_KEY_REQUIRED", "Idempotency-Key")
      assertRefused(
        yield* post("renew", { extend_by_days: 1 }, { "idempotency-key": "" }),
        400,
        "IDEMPOTENCY_KEY_REQUIRED"
      )
      assertRefused(yield* post("renew", {}, { "idempotency-key": "k".repeat(256) }), 400, "BAD_REQUEST")
      assertAnswered(yield* post("renew", { extend_by_days: 1 }, { "idempotency-key": "k".repeat(255) }), 200)
    })
  )

  it.effect("happen once for a license and a key", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { id, expires_at, post } = yield* issue()
      const key = freshKey()
      const first = yield* post("renew", { extend_by_days: 1 }, key)
      const again = yield* post("renew", { extend_by_days: 1 }, key)
      assert.strictEqual(again.text, first.text)
      assert.strictEqual(again.headers["idempotency-replayed"], "true")
      assert.strictEqual((yield* client.licenses.get({ params: { id } })).expires_at, expires_at + day)
      assertRefused(yield* post("renew", { extend_by_days: 2 }, key), 422, "IDEMPOTENCY_KEY_REUSED")
      assertAnswered(yield* (yield* issue()).post("renew", { extend_by_days: 2 }, key), 200)
    })
  )

  it.effect("refuse a body with missing, unknown or invalid members", () =>
    Effect.gen(function* () {
      const { expires_at, post } = yield* issue()
      const at = iso(expires_at)
      const faults: ReadonlyArray<readonly [unknown, number, string, string?]> = [
        [{}, 422, "VALIDATION_ERROR", "expires_at"],
        [{ expires_at: at, extend_by_days: 1 }, 422, "VALIDATION_ERROR", "extend_by_days"],
        [{ extend_by_days: 0 }, 422, "VALIDATION_ERROR", "extend_by_days"],
        [{ extend_by_days: 1.5 }, 422, "VALIDATION_ERROR", "extend_by_days"],
        [{ extend_by_days: 2_147_483_647 }, 422, "VALIDATION_ERROR", "extend_by_days"],
        [{ extend_by_days: "1" }, 400, "INVALID_JSON", "extend_by_days"],
        [{ expires_at: null }, 400, "INVALID_JSON", "expires_at"],
        [{ expires_at: "tomorrow" }, 422, "VALIDATION_ERROR", "expires_at"],
        [{ extend_by_days: 1, order_id: null }, 400, "INVALID_JSON", "order_id"],
        [{ extend_by_days: 1, note: "" }, 400, "INVALID_JSON", "note"],
        [{ extend_by_days: 1, order_id: "ord_none" }, 404, "NOT_FOUND", "order_id"],
        [{ extend_by_days: 1, subscription_id: "sub_none" }, 404, "NOT_FOUND", "subscription_id"],
        [{ expires_at: "2020-01-01T00:00:00Z" }, 422, "EXPIRY_NOT_IN_FUTURE", "expires_at"],
        [{ expires_at: at }, 422, "RENEWAL_NOT_LATER", "expires_at"],
        [{ expires_at: iso(expires_at - day) }, 422, "RENEWAL_NOT_LATER", "expires_at"],
        ["", 400, "INVALID_JSON"]
      ]
      for (const [body, status, code, detail] of faults) {
        assertRefused(yield* post("renew", body, freshKey()), status, code, detail)
      }
    })
  )

  it.effect("refuse licenses without a term, and orders of another product", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const consumption = yield* issue({ license_type: "consumption" })
      assertRefused(yield* consumption.post("renew", { extend_by_days: 1 }, freshKey()), 422, "LICENSE_NOT_RENEWABLE")
      const license = yield* issue()
      const order = yield* client.commerce.createOrder({
        params: { id: consumption.product_id },
        payload: { external_system: "s", external_id: "e", status: "paid" }
      })
      const answer = yield* license.post("renew", { extend_by_days: 1, order_id: order.id }, freshKey())
      assertRefused(answer, 422, "LINKAGE_MISMATCH", "order_id")
    })
  )
})

layer(TestServer.layer)("Transfers over HTTP", (it) => {
  it.effect("change the owner and the count; to the same owner they change neither", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { id: customer_id } = yield* client.customers.create({ payload: { name: "C", code: "c" } })
      const { post } = yield* issue({ max_transfers: 2 })
      const body = { customer_id, customer_email: "a@example.com", customer_name: "Ada" }
      const transferred = assertAnswered(yield* post("transfer", body), 200) as LicenseJson
      assert.deepInclude(transferred, { ...body, times_transferred: 1, entitlement_version: 2, status: "active" })
      const same = assertAnswered(yield* post("transfer", body), 200)
      assert.deepStrictEqual(same, transferred)
      const cleared = assertAnswered(yield* post("transfer", { customer_id: "" }), 200) as LicenseJson
      assert.notProperty(cleared, "customer_id")
      assert.deepInclude(cleared, { customer_name: "Ada", times_transferred: 2 })
      assertRefused(yield* post("transfer", { customer_name: "Bob" }), 409, "TRANSFER_LIMIT_REACHED", "2")
    })
  )

  it.effect("take name and e-mail over from another customer, and end the old key on demand", () =>
    Effect.gen(function* () {
      const { client, connect } = yield* TestServer
      const named = { name: "Ada Ltd", email: "office@ada.example" }
      const first = yield* client.customers.create({ payload: { ...named, code: "taken-over" } })
      const bare = yield* client.customers.create({ payload: { name: "Bare", code: "bare" } })
      const license = yield* issue({}, { customer_name: "Old", customer_email: "old@example.com" })
      const moved = assertAnswered(yield* license.post("transfer", { customer_id: first.id }), 200)
      assert.deepInclude(moved, { customer_name: named.name, customer_email: named.email })
      const body = { customer_id: bare.id, rotate_key: true }
      const again = freshKey()
      const answer = yield* license.post("transfer", body, again)
      const { license: last, license_key } = assertAnswered(answer, 200) as {
        readonly license: Record<string, unknown> & { readonly license_key_last4: string }
        readonly license_key: string
      }
      assert.deepInclude(last, { customer_id: bare.id, customer_name: "Bare", times_transferred: 2 })
      assert.notProperty(last, "customer_email")
      assert.strictEqual((yield* license.post("transfer", body, again)).text, answer.text)
      assert.strictEqual(last.license_key_last4, license_key.slice(-4))
      const payload = { fingerprint: "a" }
      const { runtime } = yield* connect({ licenseKey: license_key })
      assert.strictEqual((yield* runtime.activate({ payload })).data.license_id, license.id)
      assert.deepInclude(yield* Effect.flip(license.runtime.check({ payload })), { code: "LICENSE_KEY_INVALID" })
      const typed = yield* client.licenses.transfer({
        params: { id: license.id },
        payload: { customer_name: "Bob", rotate_key: true }
      })
      assert.property(typed, "license_key")
    })
  )

  it.effect("remove the license from its devices", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { id, post, runtime } = yield* issue({ max_activations: 0 })
      for (const fingerprint of ["a", "b", "c"]) yield* runtime.activate({ payload: { fingerprint } })
      yield* runtime.deactivate({ payload: { fingerprint: "c" } })
      const reset = assertAnswered(yield* post("transfer", { reset_devices: true }), 200) as LicenseJson
      assert.deepInclude(reset, { active_device_count: 0, times_activated: 3, times_transferred: 0 })
      const { items } = yield* client.devices.list({ params: { id }, query: {} })
      assert.deepStrictEqual(
        items.map(({ status }) => status),
        ["reset", "reset", "reset"]
      )
    })
  )

  it.effect("leave a suspended license's devices free to give their slots back", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { id, runtime } = yield* issue()
      const payload = { fingerprint: "a" }
      yield* runtime.activate({ payload })
      yield* client.licenses.suspend({ params: { id } })
      assert.strictEqual((yield* runtime.deactivate({ payload })).data.status, "suspended")
      assert.strictEqual((yield* client.licenses.get({ params: { id } })).active_device_count, 0)
      assert.deepInclude(yield* Effect.flip(runtime.activate({ payload })), { code: "LICENSE_SUSPENDED" })
    })
  )

  it.effect("refuse a body that changes nothing, and unknown customers", () =>
    Effect.gen(function* () {
      const { post } = yield* issue()
      const faults: ReadonlyArray<readonly [unknown, number, string, string?]> = [
        [{}, 422, "VALIDATION_ERROR"],
        [{ reset_devices: false }, 422, "VALIDATION_ERROR"],
        [{ customer_id: null }, 400, "INVALID_JSON", "customer_id"],
        [{ customer_email: null }, 400, "INVALID_JSON", "customer_email"],
        [{ customer_name: "" }, 422, "VALIDATION_ERROR", "customer_name"],
        [{ customer_email: "nobody" }, 422, "VALIDATION_ERROR", "customer_email"],
        [{ reset_devices: "yes" }, 400, "INVALID_JSON", "reset_devices"],
        [{ customer_id: "cust_none" }, 404, "NOT_FOUND", "customer_id"]
      ]
      for (const [body, status, code, detail] of faults)
        assertRefused(yield* post("transfer", body), status, code, detail)
    })
  )
})

layer(TestServer.layer)("Usage and keys over HTTP", (it) => {
  it.effect("usage is reset and topped up, and the assignment returned", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { id, product_id, post, runtime } = yield* issue()
      const feature = yield* client.features.create({
        params: { id: product_id },
        payload: { name: "F", code: "export" }
      })
      yield* client.licenses.assignFeature({
        params: { id },
        payload: { feature_id: feature.id, max_consumptions: 10 }
      })
      yield* runtime.activate({ payload: { fingerprint: "a" } })
      yield* runtime.consume({ payload: { fingerprint: "a", feature_code: "export", event_id: "e", amount: 4 } })
      const reset = yield* post("usage/reset", { feature_code: "export", add_credits: 5, reset_consumed: true })
      assert.deepInclude(assertAnswered(reset, 200), {
        license_id: id,
        feature_id: feature.id,
        feature_code: "export",
        total_consumptions: 0,
        max_consumptions: 15,
        remaining: 15
      })
      assert.strictEqual((yield* client.licenses.get({ params: { id } })).total_consumptions, 4)
      const feature_id = feature.id
      const faults: ReadonlyArray<readonly [unknown, number, string, string?]> = [
        [{ add_credits: 1 }, 422, "VALIDATION_ERROR", "feature_id"],
        [{ feature_id, feature_code: "export", add_credits: 1 }, 422, "VALIDATION_ERROR", "feature_code"],
        [{ feature_id }, 422, "VALIDATION_ERROR"],
        [{ feature_id, reset_consumed: false }, 422, "VALIDATION_ERROR"],
        [{ feature_id, reset_consumed: true, total_consumptions: 1 }, 422, "VALIDATION_ERROR", "reset_consumed"],
        [{ feature_id, add_credits: 0 }, 422, "VALIDATION_ERROR", "add_credits"],
        [{ feature_id, max_consumptions: null }, 400, "INVALID_JSON", "max_consumptions"],
        [{ feature_id, add_credits: 2 ** 53 - 1 }, 422, "VALIDATION_ERROR", "add_credits"],
        [{ feature_id: "feat_none", add_credits: 1 }, 404, "NOT_FOUND", "feature_id"],
        [{ feature_code: "none", add_credits: 1 }, 404, "NOT_FOUND", "feature_code"]
      ]
      for (const [body, status, code, detail] of faults) {
        assertRefused(yield* post("usage/reset", body), status, code, detail)
      }
    })
  )

  it.effect("a key is rotated: the new one is shown once and works, the old one ends immediately", () =>
    Effect.gen(function* () {
      const { client, connect, send } = yield* TestServer
      const { id, license_key: old, path, post, runtime } = yield* issue()
      const payload = { fingerprint: "a" }
      yield* runtime.activate({ payload })
      const { license, license_key } = assertAnswered(yield* post("rotate-key"), 200) as {
        readonly license: LicenseJson
        readonly license_key: string
      }
      assert.notStrictEqual(license_key, old)
      assert.deepInclude(license, {
        id,
        license_key_prefix: license_key.slice(0, 8),
        license_key_last4: license_key.slice(-4),
        entitlement_version: 1
      })
      const check = { method: "POST", path: "/api/v1/license/check", body: payload }
      const ended = yield* send({ ...check, headers: { authorization: `License ${old}` } })
      assertRefused(ended, 401, "LICENSE_KEY_INVALID")
      const { runtime: renewed } = yield* connect({ licenseKey: license_key })
      assert.strictEqual((yield* renewed.check({ payload })).data.license_id, id)
      const feed = yield* send({ path: `/api/v1/events?resource_id=${id}&event_type=license.key_rotated` })
      assert.include(feed.text, license_key.slice(0, 8))
      for (const text of [feed.text, (yield* send({ path })).text]) assert.notInclude(text, license_key)
      assert.deepStrictEqual((yield* client.licenses.get({ params: { id } })).license_key_last4, license_key.slice(-4))
    })
  )

  it.effect("unknown and revoked licenses refuse them all, and malformed bodies are reported after unknown ids", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { id, path, post } = yield* issue()
      yield* client.licenses.revoke({ params: { id } })
      const bodies = {
        renew: { extend_by_days: 1 },
        transfer: { customer_name: "Ada" },
        "usage/reset": { feature_code: "none", reset_consumed: true },
        "rotate-key": undefined
      }
      for (const [action, body] of Object.entries(bodies)) {
        assertRefused(yield* post(action, body, freshKey()), 409, "LICENSE_STATE_CONFLICT", "revoked")
        const unknown = { method: "POST", path: `${path}x/${action}`, headers: freshKey() }
        const answer = yield* send({ ...unknown, ...(body === undefined ? undefined : { body: {} }) })
        assertRefused(answer, 404, "NOT_FOUND", "id")
      }
      assertRefused(yield* send({ path: "/api/v1/licenses/none/leases" }), 404, "NOT_FOUND", "id")
    })
  )
})
