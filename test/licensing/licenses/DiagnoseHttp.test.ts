/** Diagnosing a license, over HTTP: as validate and consume decide, without any change. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"

interface Diagnosed {
  readonly admitted: boolean
  readonly code?: string
  readonly message?: string
  readonly status: string
  readonly activation?: object
  readonly checks: ReadonlyArray<{
    readonly name: string
    readonly passed: boolean
    readonly code?: string
    readonly detail?: string
  }>
}

const day = 86_400_000

const make = Effect.fnUntraced(function* (code: string) {
  const { client, send } = yield* TestServer
  const product = yield* client.products.create({ payload: { name: "P", code } })
  const params = { id: product.id }
  const policy = yield* client.policies.create({
    params,
    payload: { name: "P", code: "p", license_type: "time_limited", max_activations: 0, allow_vm: false }
  })
  const feature = yield* client.features.create({ params, payload: { name: "Export", code: "export" } })
  yield* client.versions.create({ params, payload: { version: "1.0", released_at: product.created_at } })
  const expires_at = product.created_at + 10 * day
  const { license, license_key } = yield* client.licenses.create({
    payload: { product_id: product.id, policy_id: policy.id, expires_at }
  })
  const id = license.id
  yield* client.licenses.assignFeature({ params: { id }, payload: { feature_id: feature.id, max_consumptions: 5 } })
  const headers = { authorization: `License ${license_key}` }
  const call = (operation: string, body: object) =>
    send({ method: "POST", path: `/api/v1/license/${operation}`, headers, body })
  const ask = (body: object) => send({ method: "POST", path: `/api/v1/licenses/${id}/diagnose`, body })
  const diagnosed = (body: object) => Effect.map(ask(body), (answer) => assertAnswered(answer, 200) as Diagnosed)
  return { ask, call, diagnosed, id }
})

const allChecks = [
  "license_status",
  "license_start",
  "device_blacklist",
  "virtual_machine",
  "container",
  "app_version",
  "device_active",
  "feature_entitled",
  "feature_enabled",
  "feature_expiry",
  "feature_quota"
]

const failed = ({ checks }: Diagnosed) => checks.flatMap(({ code, passed }) => (passed ? [] : [code]))

layer(TestServer.layer)("A diagnosis", (it) => {
  it.effect("decides as validate does, names every failed check, and changes nothing", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { advance } = yield* TestServer
      const { ask, call, diagnosed, id } = yield* make("unchanged")
      const stored = sql`
        SELECT l.*, d.*, (SELECT count(*) FROM events) AS events, (SELECT count(*) FROM refusals) AS refusals
        FROM licenses l LEFT JOIN devices d ON d.license_id = l.id WHERE l.id = ${id}`

      const none = yield* diagnosed({})
      assert.deepStrictEqual(none, {
        admitted: true,
        status: "active",
        checks: [
          { name: "license_status", passed: true },
          { name: "license_start", passed: true }
        ]
      })
      const unknown = yield* diagnosed({ fingerprint: "f" })
      const refused = yield* call("validate", { fingerprint: "f" })
      assert.deepStrictEqual(
        [unknown.admitted, unknown.code, unknown.message],
        [false, "DEVICE_NOT_FOUND", refused.error.message]
      )
      assertRefused(refused, 404, "DEVICE_NOT_FOUND")

      assert.deepStrictEqual(unknown.activation, { admitted: true })

      assertAnswered(yield* call("activate", { fingerprint: "f" }), 200)
      yield* advance(3_600)
      const before = yield* stored
      const machine = { fingerprint: "f", app_version: "1.0" }
      assert.deepInclude(yield* diagnosed(machine), { admitted: true, status: "active" })
      const enough = yield* diagnosed({ ...machine, feature_code: "export", amount: 5 })
      assert.deepStrictEqual(
        enough.checks.map(({ name }) => name),
        allChecks
      )
      assert.isTrue(enough.admitted)
      const many = yield* diagnosed({
        fingerprint: "other",
        is_vm: true,
        app_version: "2.0",
        feature_code: "export",
        amount: 6
      })
      assert.strictEqual(many.code, "VM_NOT_ALLOWED")
      const all = ["VM_NOT_ALLOWED", "VERSION_UNKNOWN", "DEVICE_NOT_FOUND", "USAGE_LIMIT_EXCEEDED"]
      assert.deepStrictEqual(failed(many), all)
      // The sentence is the application's; the details tell the vendor what the vendor can do.
      assert.match(many.message!, /use another machine, or ask the vendor to allow it\.$/)
      assert.deepStrictEqual(
        many.checks.flatMap(({ detail = [] }) => detail).filter((detail) => /vendor/.test(detail)),
        []
      )
      assert.match(many.checks.find(({ code }) => code === "VM_NOT_ALLOWED")!.detail!, /machine, or allow it\.$/)
      assert.deepStrictEqual(failed(yield* diagnosed({ feature_code: "none" })), ["FEATURE_NOT_ENTITLED"])
      assertRefused(yield* ask({ is_container: true }), 422, "VALIDATION_ERROR", "container_id")
      assertRefused(yield* ask({ nonce: "n" }), 400, "INVALID_JSON", "nonce")
      assert.deepStrictEqual(yield* stored, before)
    })
  )

  it.effect("is of the operation that is named, and takes what that needs", () =>
    Effect.gen(function* () {
      const { ask, diagnosed } = yield* make("operations")
      const foreign = yield* diagnosed({ fingerprint: "f", operation: "checkout", product_code: "other" })
      assert.deepStrictEqual(failed(foreign), ["PRODUCT_MISMATCH", "FLOATING_NOT_ENABLED", "FLOATING_LIMIT_REACHED"])
      assert.strictEqual((foreign.activation as Diagnosed).code, "PRODUCT_MISMATCH")
      assertRefused(yield* ask({ operation: "consume" }), 422, "VALIDATION_ERROR", "feature_code")
    })
  )

  it.effect("continues after the check of the license's state has failed", () =>
    Effect.gen(function* () {
      const { advance, client } = yield* TestServer
      const { call, diagnosed, id } = yield* make("states")
      const machine = { fingerprint: "f", app_version: "1.0" }
      assertAnswered(yield* call("activate", machine), 200)
      yield* client.licenses.suspend({ params: { id } })
      const suspended = yield* diagnosed({ ...machine, is_vm: true })
      assert.deepInclude(suspended, { admitted: false, code: "LICENSE_SUSPENDED", status: "suspended" })
      assert.deepStrictEqual(failed(suspended), ["LICENSE_SUSPENDED", "VM_NOT_ALLOWED"])
      yield* client.licenses.reinstate({ params: { id } })
      yield* advance(11 * 86_400)
      const expired = yield* diagnosed({ fingerprint: "f" })
      assert.deepInclude(expired, { code: "LICENSE_EXPIRED", status: "expired" })
    })
  )

  it.effect("of an unknown license is refused", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const answer = yield* send({ method: "POST", path: "/api/v1/licenses/lic_none/diagnose", body: {} })
      assertRefused(answer, 404, "NOT_FOUND")
    })
  )
})
