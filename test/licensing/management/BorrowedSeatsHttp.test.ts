/** Borrowed seats over HTTP: what applications, vendors and customers ask and see. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const day = 86_400_000

interface Borrowed {
  readonly lease_token: string
  readonly issued_at: string
  readonly borrowed_until?: string
  readonly lease_expires_at: string
}

/** A license that lends its seats for 14 days, and ends in 30. */
const make = Effect.gen(function* () {
  const { send } = yield* TestServer
  const license = yield* issue({ max_floating_users: 2, borrow_days_max: 14 })
  const call = (operation: string, body: object) =>
    send({
      method: "POST",
      path: `/api/v1/license/${operation}`,
      headers: { authorization: `License ${license.license_key}` },
      body
    })
  const start = license.expires_at - 30 * day
  const at = (millis: number) => new Date(start + millis).toISOString()
  const borrow = (fingerprint: string, until = at(3 * day)) =>
    Effect.map(
      call("floating/checkout", { fingerprint, hostname: fingerprint, until }),
      (answer) => assertAnswered(answer, 200) as Borrowed & { readonly device_id: string }
    )
  return { ...license, at, borrow, call }
})

layer(TestServer.layerWith({ portal: true }))("Borrowed seats over HTTP", (it) => {
  it.effect("are told in the signed responses, while they are borrowed", () =>
    Effect.gen(function* () {
      const { advance } = yield* TestServer
      const { at, borrow, call } = yield* make
      const until = at(3 * day)
      const { lease_token, ...taken } = yield* borrow("m")
      assert.deepInclude(taken, { borrowed_until: until, lease_expires_at: until })
      const beat = assertAnswered(yield* call("floating/heartbeat", { lease_token }), 200)
      assert.deepInclude(beat, { borrowed_until: until, lease_expires_at: until })
      yield* advance(3 * 86_400 - 600)
      const later = assertAnswered(yield* call("floating/heartbeat", { lease_token }), 200) as Borrowed
      assert.strictEqual(later.borrowed_until, until)
      assert.isAbove(Date.parse(later.lease_expires_at), Date.parse(until))
      yield* advance(900)
      assert.notProperty(assertAnswered(yield* call("floating/heartbeat", { lease_token }), 200), "borrowed_until")
      assert.notProperty(assertAnswered(yield* call("floating/checkin", { lease_token }), 200), "borrowed_until")
    })
  )

  it.effect("are refused beyond the policy's days and the license's access, with the latest time allowed", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { at, call, id } = yield* make
      const ask = (until: unknown) => call("floating/checkout", { fingerprint: "m", until })
      const long = yield* ask(at(20 * day))
      assertRefused(long, 403, "BORROW_TOO_LONG", "until")
      const { error, signature } = long.json as { error: { until_max: string }; signature: object }
      assert.isDefined(signature)
      assertRefused(yield* ask(at(-day)), 422, "VALIDATION_ERROR", "until")
      assertRefused(yield* ask("tomorrow"), 422, "VALIDATION_ERROR", "until")
      const { policy_id } = yield* client.licenses.get({ params: { id } })
      yield* client.policies.update({ params: { id: policy_id }, payload: { borrow_days_max: null } })
      assertRefused(yield* ask(at(day)), 403, "BORROWING_NOT_ALLOWED", "until")
      assert.deepStrictEqual((yield* client.licenses.listLeases({ params: { id }, query: {} })).items, [])
      yield* client.policies.update({ params: { id: policy_id }, payload: { borrow_days_max: 14 } })
      assertAnswered(yield* ask(error.until_max), 200)
    })
  )

  it.effect("are diagnosed as a checkout decides", () =>
    Effect.gen(function* () {
      const { at, borrow, post } = yield* make
      const diagnosed = (until: string, more: object = {}) =>
        Effect.map(
          post("diagnose", { operation: "checkout", fingerprint: "m", until, ...more }),
          (answer) =>
            assertAnswered(answer, 200) as { code?: string; checks: ReadonlyArray<{ name: string; passed: boolean }> }
        )
      const { checks, ...admitted } = yield* diagnosed(at(3 * day))
      assert.isUndefined(admitted.code)
      assert.includeMembers(
        checks.map(({ name }) => name),
        ["floating_enabled", "borrowing_allowed", "borrowed_time", "floating_limit"]
      )
      const refused = yield* diagnosed(at(20 * day))
      assert.strictEqual(refused.code, "BORROW_TOO_LONG")
      assert.strictEqual((yield* diagnosed(at(-day))).code, "VALIDATION_ERROR")
      yield* Effect.all([borrow("a"), borrow("b")])
      assert.strictEqual((yield* diagnosed(at(day))).code, "FLOATING_LIMIT_REACHED")
    })
  )

  it.effect("are listed for the vendor, the holder of the key and the customer, also after the end of access", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { at, borrow, call, id, license_key, runtime } = yield* make
      yield* borrow("lent")
      yield* runtime.checkout({ payload: { fingerprint: "plain" } })
      const borrowed_until = Date.parse(at(3 * day))
      const leases = Effect.map(client.licenses.listLeases({ params: { id }, query: {} }), ({ items }) =>
        items.map((lease) => lease.borrowed_until)
      )
      assert.sameMembers(yield* leases, [undefined, borrowed_until])
      const own = yield* send({
        path: "/api/v1/license/devices",
        headers: { authorization: `License ${license_key}` }
      })
      const { devices } = assertAnswered(own, 200) as { devices: ReadonlyArray<{ borrowed_until?: string }> }
      assert.sameMembers(
        devices.map((device) => device.borrowed_until),
        [undefined, at(3 * day)]
      )
      const signedIn = yield* send({
        method: "POST",
        path: "/portal/api/sign-in/key",
        anonymous: true,
        headers: { "content-type": "application/json" },
        body: { license_key }
      })
      const cookie = String([signedIn.headers["set-cookie"]].flat()[0]).split(";")[0]!
      const shown = yield* send({ path: `/portal/api/licenses/${id}`, anonymous: true, headers: { cookie } })
      const { seats } = (shown.json as { data: { seats: ReadonlyArray<{ borrowed_until?: string }> } }).data
      assert.sameMembers(
        seats.map((seat) => seat.borrowed_until),
        [undefined, at(3 * day)]
      )
      yield* client.licenses.update({ params: { id }, payload: { expires_at: Date.parse(at(0)) - 1000 } })
      assert.deepStrictEqual(yield* leases, [borrowed_until])
      assertRefused(yield* call("check", { fingerprint: "lent" }), 403, "LICENSE_EXPIRED")
    })
  )

  it.effect("are freed by a reset with release_borrowed, whose body may be left out", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { borrow, id, post } = yield* make
      const { device_id } = yield* borrow("m")
      const seats = Effect.map(client.licenses.listLeases({ params: { id }, query: {} }), ({ items }) => items.length)
      assertAnswered(yield* post(`devices/${device_id}/reset`), 200)
      assertAnswered(yield* post(`devices/${device_id}/reset`, { release_borrowed: false }), 200)
      assert.strictEqual(yield* seats, 1)
      assertRefused(yield* post(`devices/${device_id}/reset`, { release: true }), 400, "INVALID_JSON", "release")
      assertAnswered(yield* post(`devices/${device_id}/reset`, { release_borrowed: true }), 200)
      assert.strictEqual(yield* seats, 0)
      const again = yield* borrow("m")
      assert.strictEqual(again.device_id, device_id)
      assertRefused(yield* post("transfer", { release_borrowed: true }), 422, "VALIDATION_ERROR")
      assertAnswered(yield* post("transfer", { reset_devices: true }), 200)
      assert.strictEqual(yield* seats, 1)
      assertAnswered(yield* post("transfer", { reset_devices: true, release_borrowed: true }), 200)
      assert.strictEqual(yield* seats, 0)
    })
  )
})
