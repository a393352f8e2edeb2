import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { assertRefused } from "../../support/http/Http.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const seats = ["a", "b", "c", "d", "e"] as const

/** A license with all seats taken, and a function that returns the presented ones. */
const licenseWithSeats = Effect.gen(function* () {
  const { advance, client } = yield* TestServer
  const license = yield* issue({ max_floating_users: 5 })
  const holders = new Map<string, { readonly name: string; readonly token: string }>()
  for (const name of seats) {
    const { data } = yield* license.runtime.checkout({ payload: { fingerprint: name } })
    holders.set(data.device_id, { name, token: data.lease_token })
    yield* advance(1)
  }
  const presented = Effect.map(client.licenses.listLeases({ params: { id: license.id }, query: {} }), ({ items }) =>
    items.map(({ device_id }) => holders.get(device_id)?.name)
  )
  const deviceOf = (name: string) => Array.from(holders).find(([, holder]) => holder.name === name)?.[0] ?? ""
  return { ...license, holders, shown: presented, deviceOf }
})

layer(TestServer.layer)("Leases over HTTP", (it) => {
  it.effect("are listed with the latest checkout first, page by page, and never with their tokens", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { id, holders, path, shown: presented } = yield* licenseWithSeats
      assert.deepStrictEqual(yield* presented, seats.toReversed())
      const first = yield* client.licenses.listLeases({ params: { id }, query: { limit: 2 } })
      const second = yield* client.licenses.listLeases({ params: { id }, query: { limit: 2, cursor: first.next! } })
      const third = yield* client.licenses.listLeases({ params: { id }, query: { limit: 2, cursor: second.next! } })
      const walked = [first, second, third].flatMap(({ items }) => items)
      assert.deepStrictEqual(
        walked.map(({ device_id }) => holders.get(device_id)?.name),
        seats.toReversed()
      )
      assert.isUndefined(third.next)
      for (const lease of walked) {
        assert.deepInclude(lease, { license_id: id, status: "live", heartbeat_at: lease.checked_out_at })
        assert.strictEqual(lease.expires_at, lease.checked_out_at + 30 * 60_000)
      }
      const { json, text } = yield* send({ path: `${path}/leases` })
      const [member] = (json as { readonly data: ReadonlyArray<object> }).data
      const members = ["id", "license_id", "device_id", "status", "checked_out_at", "heartbeat_at", "expires_at"]
      assert.sameMembers(Object.keys(member ?? {}), members)
      for (const { token } of holders.values()) assert.notInclude(text, token)
      assert.notInclude(text, "token")
    })
  )

  it.effect("disappear immediately when they are released, or end with their device or license", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { id, deviceOf, holders, post, runtime, shown: presented } = yield* licenseWithSeats
      const lease_token = holders.get(deviceOf("a"))?.token ?? ""
      yield* runtime.checkin({ payload: { lease_token } })
      yield* post(`devices/${deviceOf("b")}/reset`)
      yield* post(`devices/${deviceOf("c")}/blacklist`)
      assert.deepStrictEqual(yield* presented, ["e", "d"])
      yield* runtime.checkout({ payload: { fingerprint: "d" } })
      assert.deepStrictEqual(yield* presented, ["d", "e"])
      yield* post("transfer", { reset_devices: true })
      assert.deepStrictEqual(yield* presented, [])
      yield* runtime.checkout({ payload: { fingerprint: "e" } })
      assert.deepStrictEqual(yield* presented, ["e"])
      yield* client.licenses.suspend({ params: { id } })
      assert.deepStrictEqual(yield* presented, [])
    })
  )

  it.effect("disappear with the end of access, whether or not a sweep has written it", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { id, shown: presented } = yield* licenseWithSeats
      yield* client.licenses.update({ params: { id }, payload: { expires_at: 1_000 } })
      assert.deepStrictEqual(yield* presented, [])
    })
  )

  it.effect("disappear when their term ends, before any sweep", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { advance } = yield* TestServer
      const { id, deviceOf, holders, runtime, shown: presented } = yield* licenseWithSeats
      yield* advance(20 * 60)
      yield* runtime.heartbeat({ payload: { lease_token: holders.get(deviceOf("b"))?.token ?? "" } })
      yield* advance(15 * 60)
      const [{ live } = { live: 0 }] = yield* sql<{ readonly live: number }>`
        SELECT count(*) AS live FROM leases WHERE license_id = ${id} AND status = 'live'`
      assert.strictEqual(live, seats.length)
      assert.deepStrictEqual(yield* presented, ["b"])
      yield* advance(20 * 60)
      assert.deepStrictEqual(yield* presented, [])
    })
  )

  it.effect("of an unknown license are not found; they require license:read", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      assertRefused(yield* send({ path: "/api/v1/licenses/none/leases" }), 404, "NOT_FOUND", "id")
      const { token } = yield* client["api-keys"].create({ payload: { name: "k", scopes: ["license:write"] } })
      const headers = { authorization: `Bearer ${token}` }
      assertRefused(yield* send({ path: "/api/v1/licenses/none/leases", headers }), 403, "TOKEN_SCOPE_DENIED")
    })
  )
})
