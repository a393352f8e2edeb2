/** Floating seats over HTTP: signed answers, tokens that are shown once, and the codes that clients go by. */
import { createPublicKey, verify } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { canonicalize, type Json } from "../../../src/contract/api/CanonicalJson.ts"
import type { Answer } from "../../support/http/Http.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const minutes = (count: number) => count * 60_000

/** What posts runtime requests about a license, as raw HTTP. */
const posting = (license_key: string) =>
  Effect.map(
    TestServer,
    ({ send }) =>
      (path: string, body: unknown, headers: { readonly [name: string]: string } = {}) =>
        send({
          method: "POST",
          path: `/api/v1/license/${path}`,
          headers: { authorization: `License ${license_key}`, ...headers },
          body
        })
  )

interface SignedAnswer {
  readonly data: { readonly [member: string]: Json }
  readonly signature: { readonly kid: string; readonly value: string }
}

/** The data of a signed answer, whose signature covers the very bytes that stand in it. */
const verified = Effect.fnUntraced(function* (answer: Answer) {
  assertAnswered(answer, 200)
  const { client } = yield* TestServer
  const { data, signature } = answer.json as SignedAnswer
  const { items } = yield* client.system.listPublicKeys()
  const { public_key = "" } = items.find(({ kid }) => kid === signature.kid) ?? {}
  const x = Buffer.from(public_key, "base64").toString("base64url")
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" })
  const raw = answer.text.slice('{"data":'.length, answer.text.indexOf(',"signature":'))
  assert.strictEqual(raw, canonicalize(data))
  assert.isTrue(verify(null, Buffer.from(raw), key, Buffer.from(signature.value, "base64")))
  return data
})

layer(TestServer.layer)("Floating seats over HTTP", (it) => {
  it.effect("are taken, kept and given back with signed answers of the contract's members", () =>
    Effect.gen(function* () {
      const { id, license_key } = yield* issue({ max_floating_users: 1, floating_timeout_minutes: 5 })
      const post = yield* posting(license_key)
      const taken = yield* verified(yield* post("floating/checkout", { fingerprint: "m" }))
      const common = [
        "kind",
        "license_id",
        "product_id",
        "product_code",
        "policy_id",
        "binding_kind",
        "binding_hash",
        "status",
        "license_type",
        "entitlement_version",
        "issued_at",
        "device_id",
        "expires_at",
        "access_ends_at",
        "lease_expires_at"
      ]
      assert.sameMembers(Object.keys(taken), [...common, "lease_token", "features"])
      assert.match(String(taken["lease_token"]), /^lease_[A-Za-z0-9_-]{43}$/)
      const term = (data: SignedAnswer["data"]) =>
        Date.parse(`${data["lease_expires_at"]}`) - Date.parse(`${data["issued_at"]}`)
      assert.strictEqual(term(taken), minutes(5))
      const lease_token = taken["lease_token"]
      const kept = yield* verified(yield* post("floating/heartbeat", { lease_token }))
      assert.sameMembers(Object.keys(kept), [...common, "features"])
      assert.strictEqual(term(kept), minutes(5))
      assert.strictEqual(kept["license_id"], id)
      const back = yield* verified(yield* post("floating/checkin", { lease_token }))
      assert.sameMembers(Object.keys(back), common)
      assert.strictEqual(term(back), 0)
      assertRefused(yield* post("floating/checkin", { lease_token }), 409, "LEASE_NOT_ACTIVE", "checked_in")
      const sql = yield* SqlClient.SqlClient
      const rows = yield* sql<{ text: string }>`
        SELECT e::text AS text FROM leases e WHERE license_id = ${id}
        UNION ALL SELECT d::text FROM devices d WHERE license_id = ${id} UNION ALL SELECT v::text FROM events v`
      for (const { text } of rows) assert.notInclude(text, String(lease_token))
    })
  )

  it.effect("are refused with the codes of their cases", () =>
    Effect.gen(function* () {
      const { advance } = yield* TestServer
      const { license_key } = yield* issue({ max_floating_users: 1, floating_timeout_minutes: 5 })
      const post = yield* posting(license_key)
      const first = yield* verified(yield* post("floating/checkout", { fingerprint: "m" }))
      assertRefused(yield* post("floating/checkout", { fingerprint: "n" }), 403, "FLOATING_LIMIT_REACHED", "1")
      const second = yield* verified(yield* post("floating/checkout", { fingerprint: "m" }))
      assert.strictEqual(second["device_id"], first["device_id"])
      assertRefused(yield* post("floating/heartbeat", { lease_token: first["lease_token"] }), 409, "LEASE_NOT_ACTIVE")
      yield* advance(5 * 60)
      const { lease_token } = second
      assert.strictEqual((yield* verified(yield* post("floating/heartbeat", { lease_token })))["renewed"], true)
      yield* advance(5 * 60)
      yield* verified(yield* post("floating/checkout", { fingerprint: "n" }))
      assertRefused(yield* post("floating/heartbeat", { lease_token }), 403, "LEASE_EXPIRED")
      assertRefused(yield* post("floating/checkin", { lease_token }), 409, "LEASE_NOT_ACTIVE", "expired")
      assertRefused(yield* post("floating/heartbeat", { lease_token: "lease_unheard-of" }), 404, "LEASE_NOT_FOUND")
      assertRefused(yield* post("floating/heartbeat", {}), 422, "VALIDATION_ERROR", "lease_token")
      assertRefused(yield* post("floating/heartbeat", { lease_token: "x", more: 1 }), 400, "INVALID_JSON", "more")
      assertRefused(yield* post("floating/checkout", {}), 422, "VALIDATION_ERROR", "fingerprint")
      const other = yield* issue({ max_floating_users: 1 })
      const elsewhere = yield* posting(other.license_key)
      const foreign = yield* verified(yield* elsewhere("floating/checkout", { fingerprint: "m" }))
      assertRefused(yield* post("floating/checkin", { lease_token: foreign["lease_token"] }), 404, "LEASE_NOT_FOUND")
      const none = yield* posting((yield* issue()).license_key)
      assertRefused(yield* none("floating/checkout", { fingerprint: "m" }), 403, "FLOATING_NOT_ENABLED")
    })
  )
})
