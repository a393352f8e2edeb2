/** Licenses with keys that the vendor chose. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import * as LicenseKey from "../../../src/licensing/model/LicenseKey.ts"
import { Database } from "../../support/database/Database.ts"
import { type Answer, assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { startServer, TestServer } from "../../support/http/TestServer.ts"

let made = 0
/** A vendor key that no other test uses. */
const freshKey = () => `Legacy~Key/2019_${++made}!`

const body = { fingerprint: "machine" }

const runtime = Effect.fnUntraced(function* (operation: string, key: string) {
  const { send } = yield* TestServer
  const headers = { authorization: `License ${key}` }
  return yield* send({ method: "POST", path: `/api/v1/license/${operation}`, headers, body })
})

/** Sends a create request for the product and policy of a new license. */
const creator = Effect.gen(function* () {
  const { send } = yield* TestServer
  const { product_id, id } = yield* issue()
  const { policy_id } = yield* (yield* TestServer).client.licenses.get({ params: { id } })
  const expires_at = "2999-01-01T00:00:00Z"
  return (license_key: unknown, headers: { readonly [name: string]: string } = {}) =>
    send({
      method: "POST",
      path: "/api/v1/licenses",
      headers,
      body: { product_id, policy_id, expires_at, license_key }
    })
})

const issuedBy = ({ json }: Answer) =>
  (
    json as {
      data: { license: { id: string; license_key_prefix: string; license_key_last4: string }; license_key: string }
    }
  ).data

layer(TestServer.layer, { timeout: 60_000 })("A vendor key", (it) => {
  it.effect("works on every path exactly as given", () =>
    Effect.gen(function* () {
      const key = freshKey()
      const { id, license_key, runtime: application } = yield* issue({}, { license_key: key })
      assert.strictEqual(license_key, key)
      const { client } = yield* TestServer
      const license = yield* client.licenses.get({ params: { id } })
      assert.deepInclude(license, {
        license_key_prefix: "",
        license_key_last4: key.slice(-4)
      })
      for (const operation of ["activate", "validate", "check", "validate", "offline"])
        assertAnswered(yield* runtime(operation, key), 200)
      assert.strictEqual((yield* application.check({ payload: body })).data.license_id, id)
      for (const other of [key.toUpperCase(), `${key}x`, key.slice(1), `"${key}"`])
        assertRefused(yield* runtime("validate", other), 401, "LICENSE_KEY_INVALID")
    })
  )

  it.effect("is stored and recorded only as its digest, and found by the search", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { send } = yield* TestServer
      const key = freshKey()
      const { id } = yield* issue({}, { license_key: key })
      const dumped = yield* sql<{ row: string }>`
        SELECT to_jsonb(l)::text AS row FROM licenses l UNION ALL SELECT to_jsonb(e)::text FROM events e`
      assert.notInclude(dumped.map(({ row }) => row).join("\n"), key)
      for (const q of [key, key.slice(-4)]) {
        const found = (yield* send({ path: `/api/v1/search?${new URLSearchParams({ q })}` })).json as {
          data: { licenses: ReadonlyArray<{ id: string }> }
        }
        assert.include(
          found.data.licenses.map((license) => license.id),
          id
        )
      }
    })
  )

  it.effect("shows at most a quarter of its characters, and is found by them", () =>
    Effect.gen(function* () {
      const create = yield* creator
      const { send } = yield* TestServer
      for (const [length, prefix, last] of [
        [8, 0, 2],
        [11, 0, 2],
        [12, 0, 3],
        [16, 0, 4],
        [20, 1, 4],
        [48, 8, 4],
        [255, 8, 4]
      ] as const) {
        const key = `${"x".repeat(255)}${++made}-${length}`.slice(-length)
        const answer = yield* create(key)
        assertAnswered(answer, 201)
        const { id, license_key_last4, license_key_prefix } = issuedBy(answer).license
        assert.deepStrictEqual([license_key_prefix, license_key_last4], [key.slice(0, prefix), key.slice(-last)])
        assert.include((yield* send({ path: `/api/v1/search?q=${license_key_last4}` })).text, id)
      }
    })
  )

  it.effect("has 8 to 255 printable ASCII characters without spaces", () =>
    Effect.gen(function* () {
      const create = yield* creator
      for (const wrong of [
        "",
        "1234567",
        "x".repeat(256),
        "with a space",
        "tab\tinside",
        "schlüssel-1",
        "nul\u0000nul0"
      ])
        assertRefused(yield* create(wrong), 422, "VALIDATION_ERROR", "license_key")
      for (const wrong of [null, 12345678, ["12345678"]])
        assertRefused(yield* create(wrong), 400, "INVALID_JSON", "license_key")
    })
  )

  it.effect("of the form of a generated key is that key if its check is right, else refused", () =>
    Effect.gen(function* () {
      const create = yield* creator
      const key = LicenseKey.fromBytes(Uint8Array.from({ length: 28 }, (_, index) => index * 7))
      const answer = yield* create(key.toLowerCase().replaceAll("-", ""))
      assertAnswered(answer, 201)
      assert.strictEqual(issuedBy(answer).license_key, key)
      assertAnswered(yield* runtime("activate", key), 200)
      assertRefused(yield* create(key), 409, "DUPLICATE_LICENSE_KEY", "license_key")
      const mistyped = key.slice(0, -1) + (key.endsWith("0") ? "1" : "0")
      assertRefused(yield* create(mistyped), 422, "VALIDATION_ERROR", "license_key")
    })
  )

  it.effect("belongs to one license; after a rotation it ends and may be given again", () =>
    Effect.gen(function* () {
      const create = yield* creator
      const key = freshKey()
      const license = yield* issue({}, { license_key: key })
      assertAnswered(yield* runtime("activate", key), 200)
      assertRefused(yield* create(key), 409, "DUPLICATE_LICENSE_KEY", "license_key")
      const rotated = issuedBy(yield* license.post("rotate-key"))
      assert.match(rotated.license_key, /^LK-/)
      assertRefused(yield* runtime("validate", key), 401, "LICENSE_KEY_INVALID")
      assertAnswered(yield* runtime("validate", rotated.license_key), 200)
      const again = yield* create(key)
      assertAnswered(again, 201)
      assertAnswered(yield* runtime("activate", key), 200)
    })
  )

  it.effect("given to two licenses at the same time goes to one of them", () =>
    Effect.gen(function* () {
      const create = yield* creator
      const key = freshKey()
      const answers = yield* Effect.all([create(key), create(key), create(key)], { concurrency: 3 })
      const sorted = answers.toSorted((a, b) => a.status - b.status)
      assertAnswered(sorted[0]!, 201)
      for (const answer of sorted.slice(1)) assertRefused(answer, 409, "DUPLICATE_LICENSE_KEY", "license_key")
    })
  )

  it.effect("is shown again to a repeated request with the same Idempotency-Key", () =>
    Effect.gen(function* () {
      const create = yield* creator
      const [key, headers] = [freshKey(), { "idempotency-key": freshKey() }]
      const first = yield* create(key, headers)
      assertAnswered(first, 201)
      const again = yield* create(key, headers)
      assert.deepStrictEqual([again.status, again.text], [201, first.text])
    })
  )
})

layer(Database.layer, { timeout: 60_000 })("Before there are vendor keys", (it) => {
  it.effect("text that is no key is refused; the first vendor key works on every node as soon as it is issued", () =>
    Effect.gen(function* () {
      const [first, second] = [yield* startServer(), yield* startServer()]
      const on = <A, E>(server: typeof first, effect: Effect.Effect<A, E, TestServer>) =>
        Effect.provideService(effect, TestServer, server)
      const [one, two] = [freshKey(), freshKey()]
      for (const server of [first, second])
        assertRefused(yield* on(server, runtime("validate", one)), 401, "LICENSE_KEY_INVALID")
      // Both nodes announce the first keys at the same time.
      yield* Effect.all([on(first, issue({}, { license_key: one })), on(second, issue({}, { license_key: two }))], {
        concurrency: 2
      })
      for (const server of [first, second]) {
        for (const key of [one, two]) assertAnswered(yield* on(server, runtime("activate", key)), 200)
      }
    }).pipe(Effect.scoped)
  )
})
