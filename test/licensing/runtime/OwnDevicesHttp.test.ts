/** The devices of a license for the holder of its key, and the activation of a machine without a network, over HTTP. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

interface Listed {
  readonly data: {
    readonly kind: string
    readonly nonce?: string
    readonly limits: object
    readonly self_deactivations_remaining: number
    readonly next_cursor: string | null
    readonly devices: ReadonlyArray<{ readonly [member: string]: unknown }>
  }
  readonly signature: object
}

const holder = Effect.fnUntraced(function* (policy: Parameters<typeof issue>[0]) {
  const { send } = yield* TestServer
  const { id, license_key } = yield* issue(policy)
  const headers = { authorization: `License ${license_key}` }
  const post = (path: string, body?: object) => send({ method: "POST", path: `/api/v1/license/${path}`, headers, body })
  const list = (query = "", key = headers) =>
    send({ method: "GET", path: `/api/v1/license/devices${query}`, headers: key })
  const listed = (query = "") => Effect.map(list(query), ({ json }) => (json as unknown as Listed).data)
  return { id, post, list, listed }
})

/** The management shows until when a device's slot is held, and a diagnosis knows that it is the device's own. */
const assertHeld = Effect.fnUntraced(function* (licenseId: string, device: Listed["data"]["devices"][number]) {
  const { client } = yield* TestServer
  const params = { id: licenseId, device_id: String(device.id) }
  const { slot_held_until } = yield* client.devices.get({ params })
  assert.strictEqual(new Date(slot_held_until!).toISOString(), device.offline_expires_at)
  const { items } = yield* client.devices.list({ params: { id: licenseId }, query: { status: "deactivated" } })
  assert.deepStrictEqual(
    items.map((each) => each.slot_held_until),
    [slot_held_until]
  )
  const offlineFor = (fingerprint: string, activate: boolean) =>
    Effect.map(
      client.licenses.diagnose({ params: { id: licenseId }, payload: { operation: "offline", fingerprint, activate } }),
      ({ code }) => code
    )
  assert.deepStrictEqual(
    [yield* offlineFor("lost", true), yield* offlineFor("lost", false), yield* offlineFor("third", true)],
    [undefined, "DEVICE_NOT_ACTIVE", "ACTIVATION_LIMIT_REACHED"]
  )
})

layer(TestServer.layer)("The holder of a license key", (it) => {
  it.effect("lists the devices of the license in signed pages, without what identifies them elsewhere", () =>
    Effect.gen(function* () {
      const { list, listed, post } = yield* holder({ max_activations: 2, max_floating_users: 1 })
      const names = { hostname: "ada-laptop", os: "linux" }
      yield* post("activate", { fingerprint: "secret-fingerprint", ...names })
      yield* post("offline", { fingerprint: "second", activate: true })
      yield* post("floating/checkout", { fingerprint: "seated" })
      const first = yield* list("?limit=2&nonce=asked")
      assertAnswered(first, 200)
      const { data, signature } = first.json as unknown as Listed
      assert.isObject(signature)
      assert.deepInclude(data, { kind: "devices", nonce: "asked", self_deactivations_remaining: 3 })
      assert.deepInclude(data.limits, { max_activations: 2, max_floating_users: 1 })
      const all = [...data.devices, ...(yield* listed(`?limit=2&cursor=${data.next_cursor}`)).devices]
      assert.lengthOf(all, 3)
      const one = (member: string) => all.find((device) => device[member] !== undefined)
      const [seated, offline, named] = [one("seat_expires_at"), one("offline_expires_at"), one("hostname")]
      assert.deepInclude(seated, { status: "active", is_activated: false })
      assert.deepInclude(offline, { status: "active", is_activated: true })
      const rest = yield* listed(`?limit=2&cursor=${data.next_cursor}`)
      assert.isNull(rest.next_cursor)
      assert.deepInclude(named, { ...names, status: "active", is_activated: true })
      assert.notMatch(JSON.stringify([data, rest]), /secret-fingerprint|127\.0\.0\.1|binding_hash|binding_key/)
    })
  )

  it.effect(
    "deactivates a lost device as often as the license allows, and its slot is held while it may work offline",
    () =>
      Effect.gen(function* () {
        const { id, listed, post } = yield* holder({
          max_activations: 2,
          offline_grace_days: 2,
          self_deactivations_per_month: 1
        })
        yield* post("activate", { fingerprint: "other" })
        yield* post("offline", { fingerprint: "lost", activate: true })
        const device = (yield* listed()).devices.find(({ offline_expires_at }) => offline_expires_at !== undefined)
        const path = `devices/${device!.id}/deactivate`
        assertRefused(yield* post("devices/dev_none/deactivate"), 404, "DEVICE_NOT_FOUND")
        assertRefused(yield* post(path, { product_code: "other" }), 403, "PRODUCT_MISMATCH")
        const answer = yield* post(path, { nonce: "asked" })
        assertAnswered(answer, 200)
        assert.deepInclude((answer.json as { data: object }).data, {
          kind: "deactivation",
          nonce: "asked",
          device_id: device!.id
        })
        const after = yield* listed()
        assert.strictEqual(after.self_deactivations_remaining, 0)
        assert.deepInclude(
          after.devices.find(({ id }) => id === device!.id),
          { status: "deactivated", is_activated: false, slot_held_until: device!.offline_expires_at }
        )
        yield* assertHeld(id, device!)
        assertRefused(yield* post("activate", { fingerprint: "third" }), 403, "ACTIVATION_LIMIT_REACHED")
        const other = after.devices.find(({ is_activated }) => is_activated === true)
        const often = yield* post(`devices/${other!.id}/deactivate`)
        assertRefused(often, 403, "SELF_DEACTIVATION_LIMIT_REACHED")
        assert.deepInclude((often.json as { error: object }).error, { max: 1, used: 1 })
      })
  )

  it.effect("is refused with a wrong key, an unknown parameter, a revoked license", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { id, list, post } = yield* holder({})
      assertRefused(yield* list("", { authorization: "License LK-wrong" }), 401, "LICENSE_KEY_INVALID")
      assertRefused(yield* list("?status=active"), 400, "INVALID_QUERY")
      yield* client.licenses.revoke({ params: { id } })
      const refused = yield* list("?nonce=asked&limit=2")
      assertRefused(refused, 403, "LICENSE_REVOKED")
      assert.deepInclude((refused.json as { error: object }).error, { license_id: id, nonce: "asked" })
      const unclear = yield* list("?nonce=one&nonce=two")
      assert.notProperty((unclear.json as { error: object }).error, "nonce")
      assertRefused(yield* post("devices/dev_none/deactivate", {}), 403, "LICENSE_REVOKED")
    })
  )
})
