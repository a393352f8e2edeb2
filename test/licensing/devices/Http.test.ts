import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

/** A license with one active device. */
const activated = Effect.gen(function* () {
  const license = yield* issue()
  const { data } = yield* license.runtime.activate({ payload: { fingerprint: "machine", hostname: "host" } })
  const act = (action: string, deviceId = data.device_id) => license.post(`devices/${deviceId}/${action}`)
  return { ...license, act, device_id: data.device_id }
})

layer(TestServer.layer)("Actions on devices over HTTP", (it) => {
  it.effect("return the device's current state, also when repeated", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { id, act, device_id } = yield* activated
      for (const [action, status] of [
        ["reset", "reset"],
        ["blacklist", "blacklisted"],
        ["unblacklist", "reset"]
      ] as const) {
        const device = assertAnswered(yield* act(action), 200)
        const read = yield* client.devices.get({ params: { id, device_id } })
        assert.deepInclude(device, { id: device_id, license_id: id, status, hostname: "host", binding_key: "machine" })
        assert.strictEqual(read.status, status)
        assert.sameMembers(Object.keys(device as object), Object.keys(read))
        if (action !== "unblacklist") assert.deepStrictEqual(assertAnswered(yield* act(action), 200), device)
      }
      assert.strictEqual((yield* client.licenses.get({ params: { id } })).active_device_count, 0)
      const { items } = yield* client.events.list({ query: { resource_id: device_id } })
      assert.deepStrictEqual(
        items.map(({ event_type }) => event_type),
        ["device.unblacklisted", "device.blacklisted", "device.reset"]
      )
    })
  )

  it.effect("block a blacklisted device until the block is removed and it is activated again", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const { act, license_key, runtime } = yield* activated
      const body = { fingerprint: "machine" }
      const call = (operation: string) =>
        send({
          method: "POST",
          path: `/api/v1/license/${operation}`,
          headers: { authorization: `License ${license_key}` },
          body
        })
      yield* act("blacklist")
      for (const operation of ["activate", "validate", "check", "deactivate"]) {
        assertRefused(yield* call(operation), 403, "DEVICE_BLACKLISTED")
      }
      yield* act("unblacklist")
      assertRefused(yield* call("validate"), 403, "DEVICE_NOT_ACTIVE")
      assert.strictEqual((yield* runtime.activate({ payload: body })).data.status, "active")
      assertAnswered(yield* call("validate"), 200)
    })
  )

  it.effect("refuse what a device's state does not allow, unknown devices, and revoked licenses", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { id, act, device_id } = yield* activated
      const other = yield* activated
      assertRefused(yield* act("unblacklist"), 409, "DEVICE_STATE_CONFLICT", "active")
      yield* act("blacklist")
      assertRefused(yield* act("reset"), 409, "DEVICE_STATE_CONFLICT", "blacklisted")
      for (const action of ["reset", "blacklist", "unblacklist"]) {
        assertRefused(yield* act(action, "dev_none"), 404, "NOT_FOUND", "device_id")
        assertRefused(yield* act(action, other.device_id), 404, "NOT_FOUND", "device_id")
        const path = `/api/v1/licenses/none/devices/${device_id}/${action}`
        assertRefused(yield* send({ method: "POST", path }), 404, "NOT_FOUND", "id")
      }
      const read = (license: string, device: string) => send({ path: `/api/v1/licenses/${license}/devices/${device}` })
      assertRefused(yield* read("none", device_id), 404, "NOT_FOUND", "id")
      assertRefused(yield* read(id, other.device_id), 404, "NOT_FOUND", "device_id")
      yield* client.licenses.revoke({ params: { id } })
      for (const action of ["reset", "blacklist", "unblacklist"]) {
        assertRefused(yield* act(action), 409, "LICENSE_STATE_CONFLICT", "revoked")
      }
    })
  )

  it.effect("require device:write, and no other scope", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { device_id, path } = yield* activated
      const attempt = Effect.fnUntraced(function* (scope: "device:write" | "license:write") {
        const { token } = yield* client["api-keys"].create({ payload: { name: scope, scopes: [scope] } })
        const headers = { authorization: `Bearer ${token}` }
        return yield* send({ method: "POST", path: `${path}/devices/${device_id}/reset`, headers })
      })
      assertRefused(yield* attempt("license:write"), 403, "TOKEN_SCOPE_DENIED", "device:write")
      assertAnswered(yield* attempt("device:write"), 200)
    })
  )
})
