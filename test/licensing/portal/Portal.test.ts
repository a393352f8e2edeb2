/** What the customer's page asks the service, over HTTP. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { IpNetwork } from "effect/net"
import { codeOf } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { browse, issue } from "./Visitor.ts"

/** Guesses of one address in a minute that are answered. */
const ratePortal = 8
const trustedProxies = [IpNetwork.fromStringUnsafe("127.0.0.0/8")]

layer(TestServer.layerWith({ portal: true, ratePortal, trustedProxies }))("The customer's page", (it) => {
  it.effect("signs in with a license key, and shows this license only", () =>
    Effect.gen(function* () {
      const { license, license_key } = yield* issue()
      const other = yield* issue()
      const { ask } = yield* browse()
      const signedIn = yield* ask("/sign-in/key", { license_key: ` ${license_key.toLowerCase()} ` })
      assert.strictEqual(signedIn.status, 200, signedIn.text)
      assert.strictEqual(signedIn.json.data.license_id, license.id)
      assert.match(
        signedIn.set!,
        /^licensing_portal=[\w-]{43}; Max-Age=28800; Path=\/portal\/api; HttpOnly; Secure; SameSite=Strict$/
      )
      const listed = yield* ask("/licenses")
      assert.deepStrictEqual(
        listed.json.data.map(({ id }: { id: string }) => id),
        [license.id]
      )
      const shown = yield* ask(`/licenses/${license.id}`)
      assert.strictEqual(shown.json.data.product_name, "Editor")
      assert.notInclude(shown.text, "metadata")
      assert.strictEqual((yield* ask(`/licenses/${other.license.id}`)).status, 404)
      const exchange = { license_key: other.license_key, request: { fingerprint: "press" } }
      assert.strictEqual((yield* ask(`/licenses/${other.license.id}/offline`, exchange)).status, 404)
      assert.strictEqual(
        (yield* ask(`/licenses/${license.id}/offline`, exchange)).json.error.code,
        "LICENSE_KEY_INVALID"
      )
      assert.strictEqual((yield* ask("/sign-out", {})).status, 204)
      assert.strictEqual((yield* ask("/licenses")).status, 401)
    })
  )

  it.effect("ends a session with the license's key, and after eight hours", () =>
    Effect.gen(function* () {
      const { advance, client } = yield* TestServer
      const { license, license_key } = yield* issue()
      const [rotated, expired] = [yield* browse("203.0.113.2"), yield* browse("203.0.113.2")]
      yield* rotated.ask("/sign-in/key", { license_key })
      const next = yield* client.licenses.rotateKey({ params: { id: license.id }, payload: {} })
      assert.strictEqual((yield* rotated.ask("/licenses")).json.error.code, "TOKEN_INVALID")
      yield* expired.ask("/sign-in/key", { license_key: next.license_key })
      assert.strictEqual((yield* expired.ask("/licenses")).status, 200)
      yield* advance(8 * 3_600)
      assert.strictEqual((yield* expired.ask("/licenses")).json.error.code, "TOKEN_INVALID")
    })
  )

  it.effect("gives the slot of a device back, at most as often as the policy says", () =>
    Effect.gen(function* () {
      const { client, connect } = yield* TestServer
      const { license, license_key } = yield* issue()
      const other = yield* issue()
      const application = yield* connect({ licenseKey: license_key })
      yield* client.licenses.update({ params: { id: license.id }, payload: { self_deactivations_per_month: 1 } })
      for (const fingerprint of ["laptop", "desk"])
        yield* application.runtime.activate({ payload: { fingerprint, hostname: fingerprint } })
      yield* application.runtime.checkout({ payload: { fingerprint: "seat", hostname: "seat" } })
      const { ask } = yield* browse("203.0.113.9")
      yield* ask("/sign-in/key", { license_key })
      const read = Effect.map(ask(`/licenses/${license.id}`), ({ json }) => json.data)
      const { devices, seats } = yield* read
      assert.deepStrictEqual(
        devices.map(({ name }: { name: string }) => name),
        ["desk", "laptop"]
      )
      assert.deepStrictEqual(
        seats.map(({ device_name }: { device_name: string }) => device_name),
        ["seat"]
      )
      const deactivate = (licenseId: string, index: number) =>
        ask(`/licenses/${licenseId}/devices/${devices[index].id}/deactivate`, {})
      assert.strictEqual((yield* deactivate(other.license.id, 0)).status, 404)
      assert.strictEqual((yield* deactivate(license.id, 0)).status, 204)
      assert.strictEqual((yield* deactivate(license.id, 0)).json.error.code, "DEVICE_STATE_CONFLICT")
      assert.strictEqual((yield* deactivate(license.id, 1)).json.error.code, "SELF_DEACTIVATION_LIMIT_REACHED")
      const after = yield* read
      assert.deepStrictEqual([after.devices.length, after.active_device_count], [1, 1])
      const { items } = yield* client.events.list({ query: { event_type: "license.deactivated", limit: 1 } })
      assert.deepStrictEqual([items[0]?.actor_type, items[0]?.actor_id], ["license", license.id])
    })
  )

  it.effect("counts all devices and seats, and lists the newest", () =>
    Effect.gen(function* () {
      const { client, connect } = yield* TestServer
      const { license, license_key } = yield* issue()
      const many = 201
      const limits = { max_activations: 0, max_floating_users: 300 }
      yield* client.licenses.update({ params: { id: license.id }, payload: limits })
      const application = yield* connect({ licenseKey: license_key })
      const machines = Array.from({ length: many }, (_, index) => ({ payload: { fingerprint: `machine-${index}` } }))
      yield* Effect.forEach(machines, application.runtime.checkout, { concurrency: 20 })
      yield* application.runtime.activate(machines[0]!)
      const { ask } = yield* browse("203.0.113.11")
      yield* ask("/sign-in/key", { license_key })
      const { data } = (yield* ask(`/licenses/${license.id}`)).json
      assert.deepStrictEqual(
        [data.seat_count, data.seats.length, data.device_count, data.devices.length],
        [many, 200, 1, 1]
      )
    })
  )

  it.effect("counts slots as activations do: with those that are held, and containers apart", () =>
    Effect.gen(function* () {
      const { client, connect } = yield* TestServer
      const { license, license_key } = yield* issue()
      const { runtime } = yield* connect({ licenseKey: license_key })
      const { ask } = yield* browse("203.0.113.12")
      yield* ask("/sign-in/key", { license_key })
      const read = Effect.map(ask(`/licenses/${license.id}`), ({ json }) => json.data)
      yield* runtime.activate({ payload: { is_container: true, pod_name: "pod" } })
      yield* runtime.offline({ payload: { fingerprint: "press", activate: true } })
      const { devices, taken_slots } = yield* read
      assert.strictEqual(taken_slots, 2)
      const press = devices.find(({ binding_kind }: { binding_kind: string }) => binding_kind === "hardware")
      yield* ask(`/licenses/${license.id}/devices/${press.id}/deactivate`, {})
      const activate = runtime.activate({ payload: { fingerprint: "desk" } })
      assert.strictEqual(yield* codeOf(activate), "ACTIVATION_LIMIT_REACHED")
      const held = yield* read
      assert.deepStrictEqual([held.active_device_count, held.taken_slots], [1, 2])
      yield* client.licenses.update({ params: { id: license.id }, payload: { max_container_instances: 5 } })
      const apart = yield* read
      assert.deepStrictEqual([apart.taken_slots, apart.taken_container_slots, apart.device_count], [1, 1, 2])
      yield* activate
    })
  )

  it.effect("shows the usage of a period: when it ends, extra credits, and what was used above the limit", () =>
    Effect.gen(function* () {
      const { client, connect } = yield* TestServer
      const { license, license_key } = yield* issue()
      const params = { id: license.product_id }
      const { id: feature_id } = yield* client.features.create({
        params,
        payload: { name: "Credits", code: "credits" }
      })
      yield* client.licenses.assignFeature({
        params: { id: license.id },
        payload: { feature_id, max_consumptions: 10, reset_period: "month", overage_max: 5 }
      })
      const usage = { feature_code: "credits", add_credits: 3 }
      yield* client.licenses.resetUsage({ params: { id: license.id }, payload: usage })
      const application = yield* connect({ licenseKey: license_key })
      yield* application.runtime.activate({ payload: { fingerprint: "desk" } })
      const { ask } = yield* browse("203.0.113.10")
      yield* ask("/sign-in/key", { license_key })
      const consume = (amount: number) =>
        application.runtime.consume({
          payload: { fingerprint: "desk", feature_code: "credits", event_id: String(amount), amount }
        })
      const shown = Effect.map(ask(`/licenses/${license.id}`), ({ json }) => json.data.features[0])
      yield* consume(11)
      const { resets_at, ...before } = yield* shown
      assert.isAbove(Date.parse(resets_at), license.created_at)
      assert.deepInclude(before, { total_consumptions: 11, max_consumptions: 10, remaining: 0, extra_credits: 2 })
      yield* consume(4)
      assert.deepInclude(yield* shown, { total_consumptions: 15, extra_credits: 0, overage: 2 })
    })
  )

  it.effect("changes nothing for the page of another site", () =>
    Effect.gen(function* () {
      const { license_key } = yield* issue()
      const { ask } = yield* browse("203.0.113.3")
      for (const headers of [
        { "sec-fetch-site": "cross-site" },
        { "sec-fetch-site": "same-site" },
        { "sec-fetch-site": "none" },
        { origin: "https://evil.example" },
        { origin: "null" }
      ])
        assert.strictEqual((yield* ask("/sign-in/key", { license_key }, headers)).status, 400, JSON.stringify(headers))
      assert.strictEqual((yield* ask("/sign-in/key", { license_key }, { origin: "https://127.0.0.1" })).status, 200)
      assert.strictEqual((yield* ask("/sign-out", {}, { "sec-fetch-site": "same-site" })).status, 400)
      assert.strictEqual((yield* ask("/licenses")).status, 200)
    })
  )

  it.effect("answers a flood of guesses with 429, and nobody else notices", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const { license_key } = yield* issue()
      const [guesser, other] = [yield* browse("203.0.113.4"), yield* browse("203.0.113.5")]
      const guesses = yield* Effect.forEach(
        Array.from({ length: 60 }, (_, index) => `guess-${index}`),
        (guess) => guesser.ask("/sign-in/key", { license_key: guess }),
        { concurrency: 20 }
      )
      const counts = Map.groupBy(guesses, ({ status }) => status)
      assert.deepStrictEqual([counts.get(401)?.length, counts.get(429)?.length], [ratePortal, 60 - ratePortal])
      assert.isAbove(Number(counts.get(429)![0]!.headers["retry-after"]), 0)
      assert.strictEqual((yield* guesser.ask("/sign-in/key", { license_key })).status, 429)
      assert.strictEqual((yield* other.ask("/sign-in/key", { license_key })).status, 200)
      // The application at the guesser's address, with a key and with a wrong one.
      const activate = (authorization: string) =>
        send({
          method: "POST",
          path: "/api/v1/license/activate",
          headers: { authorization, "content-type": "application/json", "x-forwarded-for": "203.0.113.4" },
          body: JSON.stringify({ fingerprint: "laptop" })
        })
      assert.strictEqual((yield* activate(`License ${license_key}`)).status, 200)
      assert.strictEqual((yield* activate("License LK-WRONG")).status, 401)
    })
  )

  it.effect("refuses guessed sessions, unknown members, and bodies that are too large", () =>
    Effect.gen(function* () {
      const { ask } = yield* browse("203.0.113.6")
      assert.strictEqual((yield* ask("/licenses")).json.error.code, "TOKEN_MISSING")
      const cookie = `licensing_portal=${"A".repeat(43)}`
      for (let guess = 0; guess < ratePortal; guess++)
        assert.strictEqual((yield* ask("/licenses", undefined, { cookie })).json.error.code, "TOKEN_INVALID")
      assert.strictEqual((yield* ask("/licenses", undefined, { cookie })).status, 429)
      const { ask: fresh } = yield* browse("203.0.113.7")
      assert.strictEqual((yield* fresh("/sign-in/key", { license_key: "x", more: 1 })).json.error.code, "INVALID_JSON")
      assert.strictEqual((yield* fresh("/sign-in/key", { license_key: "x".repeat(20_000) })).status, 413)
      assert.strictEqual((yield* fresh("/sign-in/key", { license_key: "" })).status, 422)
    })
  )

  it.effect("records a sign-in as an event of the license, without key and token", () =>
    Effect.gen(function* () {
      const { client, connect } = yield* TestServer
      const customer = yield* client.customers.create({ payload: { name: "C", code: "signs-in" } })
      const { license, license_key } = yield* issue({ customer_id: customer.id })
      const { ask } = yield* browse("203.0.113.8")
      yield* ask("/sign-in/key", { license_key })
      const { items } = yield* client.events.list({ query: { event_type: "portal.signed_in", limit: 1 } })
      const [event] = items
      assert.strictEqual(event?.actor_type, "license")
      assert.strictEqual(event?.ip_address, "203.0.113.8")
      const { request_id: _, session_id, ...metadata } = event!.metadata
      assert.deepStrictEqual([event?.resource_type, event?.resource_id], ["license", license.id])
      assert.deepStrictEqual(metadata, { by: "key" })
      assert.match(String(session_id), /^ses_/)
      const { token } = yield* client["api-keys"].create({
        payload: { name: "Own", scopes: ["report:read"], product_ids: [license.product_id] }
      })
      const own = yield* connect({ token })
      const action = "portal.sign_in"
      for (const activities of [
        client.activities.list({ query: { license_id: license.id, action } }),
        client.activities.list({ query: { customer_id: customer.id, action } }),
        own.activities.list({ query: { action } })
      ]) {
        const sequences = (yield* activities).items.map(({ event_sequence }) => event_sequence)
        assert.deepStrictEqual(sequences, [event!.sequence])
      }
    })
  )
})

layer(TestServer.layer)("Without LICENSING_PORTAL", (it) => {
  it.effect("there is no page", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      for (const path of ["/portal", "/portal/", "/portal/api/page", "/portal/logo", "/portal/colors.css"])
        assert.strictEqual((yield* send({ path, anonymous: true })).status, 404, path)
    })
  )
})
