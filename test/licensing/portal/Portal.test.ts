/** What the customer's page asks the service, over HTTP. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { IpNetwork } from "effect/net"
import { SqlClient } from "effect/sql"
import { databaseAt } from "../../../src/platform/Foundation.ts"
import { MasterKey } from "../../../src/platform/signing/MasterKey.ts"
import { Database } from "../../support/database/Database.ts"
import { masterKey, TestServer } from "../../support/http/TestServer.ts"

let products = 0

/** A license of a product of its own. */
const issue = Effect.fnUntraced(function* (license: { readonly customer_email?: string } = {}) {
  const { client } = yield* TestServer
  const product = yield* client.products.create({ payload: { name: "Editor", code: `portal-${++products}` } })
  const policy = yield* client.policies.create({
    params: { id: product.id },
    payload: { name: "Team", code: "team", license_type: "perpetual", max_activations: 2, max_floating_users: 2 }
  })
  return yield* client.licenses.create({ payload: { product_id: product.id, policy_id: policy.id, ...license } })
})

/** A browser at an address: it keeps the cookie. */
const browse = Effect.fnUntraced(function* (address = "203.0.113.1") {
  const { send } = yield* TestServer
  let cookie = ""
  const ask = Effect.fnUntraced(function* (path: string, body?: unknown, headers: Record<string, string> = {}) {
    const answer = yield* send({
      path: `/portal/api${path}`,
      anonymous: true,
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
      headers: {
        ...(cookie === "" ? {} : { cookie }),
        "content-type": "application/json",
        "x-forwarded-for": address,
        ...headers
      }
    })
    const set = [answer.headers["set-cookie"] ?? []].flat()[0]
    if (set !== undefined) cookie = set.split(";")[0]!
    return { ...answer, set, json: answer.text === "" ? undefined : JSON.parse(answer.text) }
  })
  return { ask }
})

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

  it.effect("records a sign-in, without key and token", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { license, license_key } = yield* issue()
      const { ask } = yield* browse("203.0.113.8")
      yield* ask("/sign-in/key", { license_key })
      const { items } = yield* client.events.list({ query: { event_type: "portal.signed_in", limit: 1 } })
      const [event] = items
      assert.strictEqual(event?.actor_type, "license")
      assert.strictEqual(event?.ip_address, "203.0.113.8")
      const { request_id: _, ...metadata } = event!.metadata
      assert.deepStrictEqual(metadata, { by: "key", license_id: license.id })
    })
  )
})

const byMail = {
  portal: true,
  ratePortal: 0,
  baseUrl: "https://licenses.example.com",
  smtpUrl: Redacted.make("smtp://127.0.0.1:1"),
  mailFrom: { address: "licenses@example.com", name: undefined }
}

/** The links in the queued mails to an address, the latest last. */
const linksTo = (address: string) =>
  Effect.gen(function* () {
    const { url } = yield* Database
    const rows = yield* Effect.provide(
      Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql<{ readonly id: string; readonly content_sealed: Uint8Array }>`
          SELECT id, content_sealed FROM mails WHERE kind = 'sign_in_link' ORDER BY created_at, id`
      ),
      Layer.fresh(databaseAt(url))
    )
    const key = yield* Effect.provide(MasterKey, MasterKey.layerFromKey(masterKey))
    const mails = yield* Effect.forEach(rows, ({ content_sealed, id }) =>
      Effect.map(key.open(content_sealed, `mails/${id}`), (bytes) => JSON.parse(Buffer.from(bytes).toString()))
    )
    return mails.filter(({ to }) => to.address === address).map(({ values }) => String(values.link).split("#link=")[1]!)
  })

layer(TestServer.layerWith(byMail))("A link by mail", (it) => {
  it.effect("shows all licenses of its address, once, and tells nothing of addresses", () =>
    Effect.gen(function* () {
      const { advance } = yield* TestServer
      const mine = [
        yield* issue({ customer_email: "Anna@Customer.example" }),
        yield* issue({ customer_email: "anna@customer.example" })
      ]
      const other = yield* issue({ customer_email: "ben@customer.example" })
      const { ask } = yield* browse()
      const [known, unknown] = [
        yield* ask("/links", { address: "anna@customer.example", language: "de" }),
        yield* ask("/links", { address: "nobody@customer.example", language: "de" })
      ]
      assert.deepStrictEqual([known.status, known.text], [unknown.status, unknown.text])
      assert.strictEqual(known.status, 204)
      const sent = Effect.repeat(linksTo("anna@customer.example"), { until: ({ length }) => length > 0 })
      const [token] = yield* sent
      assert.lengthOf(yield* linksTo("nobody@customer.example"), 0)
      assert.strictEqual((yield* ask("/sign-in/link", { token: "A".repeat(43) })).json.error.code, "TOKEN_INVALID")
      const signedIn = yield* ask("/sign-in/link", { token })
      assert.strictEqual(signedIn.json.data.kind, "address", signedIn.text)
      assert.strictEqual((yield* ask("/sign-in/link", { token })).json.error.code, "TOKEN_INVALID")
      const listed = yield* ask("/licenses")
      assert.sameMembers(
        listed.json.data.map(({ id }: { id: string }) => id),
        mine.map(({ license }) => license.id)
      )
      assert.strictEqual((yield* ask(`/licenses/${other.license.id}`)).status, 404)
      // Three links of an address at most.
      for (let request = 0; request < 5; request++) yield* ask("/links", { address: "ben@customer.example" })
      const bens = yield* Effect.repeat(linksTo("ben@customer.example"), { until: ({ length }) => length === 3 })
      yield* advance(15 * 60)
      assert.strictEqual((yield* ask("/sign-in/link", { token: bens[0] })).json.error.code, "TOKEN_INVALID")
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
