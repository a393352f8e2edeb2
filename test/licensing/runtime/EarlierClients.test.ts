/** Clients and published vectors of before still work: a response only ever gets further fields. */
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { judgeOf } from "../../../src/clients/kit/judging/Judge.ts"
import { operations } from "../../contract/cases/Surface.ts"
import { type EarlierPayload, openEnvelope, readPayload, readRefusal } from "../../support/http/EarlierClient.ts"
import { contentTypes, RuntimePaths, runtimePaths } from "../../support/http/FastPath.ts"
import { assertAnswered } from "../../support/http/Http.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { type PublishedKey, verifierOf } from "../../support/http/Verifier.ts"

const read = (name: string) => readFileSync(new URL(`../../../schema/vectors/${name}.json`, import.meta.url))
const meta = { request_id: "req_1", timestamp: "2030-01-31T12:00:00.000Z" }

/** The digests of the vectors that were published before responses named their kind. */
const digests: { readonly [name: string]: string } = {
  "canonical-json": "0a0044483fdb211e6f9e1e1916a2ccb246b38e4a1c3c0c48a93e19aa5cd09d20",
  "license-keys": "d65627650b19aed81d1016e61d8c51c39ca15178b973fa2de1ae3d06ce2c8699",
  "offline-envelopes": "8dcacdc6647fb3708566675c6c787dbe7542e0107be03bd7b90c3f2b9484dd65",
  signatures: "b8d3b30864cd75aa49653b1364e9d2b8797129784eefbd4e736142af5fe57100",
  tokens: "f7576f2a9c76d6771c05dc96d79f3af148d277c76162b89c9eb5b629b239ae98"
}

describe("the vectors of before", () => {
  it.each(Object.entries(digests))("%s are unchanged", (name, digest) => {
    assert.strictEqual(createHash("sha256").update(read(name)).digest("hex"), digest)
  })

  it("are believed, signed or sealed, by the verifier of now and by the client of before", async () => {
    const signatures = JSON.parse(read("signatures").toString())
    for (const { canonical, data, name, signature } of signatures.valid) {
      const body = `{"data":${canonical},"signature":${JSON.stringify(signature)},"meta":${JSON.stringify(meta)}}`
      assert.deepStrictEqual(verifierOf(signatures.keys)(Buffer.from(body)), data, name)
    }
    const sealed = JSON.parse(read("offline-envelopes").toString())
    assert.isNotEmpty(sealed.valid)
    for (const { envelope, license_key } of sealed.valid) {
      const body = openEnvelope(license_key, envelope)
      const data = readPayload("offline", sealed.keys, body)
      assert.deepStrictEqual((await judgeOf(sealed.keys)(body)).content, data)
    }
  })
})

/** Each operation with the payload that answers it, in an order in which all succeed. */
const calls = [
  ["activate", "entitlement"],
  ["validate", "entitlement"],
  ["check", "entitlement"],
  ["consume", "entitlement"],
  ["offline", "envelope"],
  ["floating/checkout", "checkout"],
  ["floating/heartbeat", "lease"],
  ["floating/checkin", "lease"],
  ["deactivate", "deactivation"]
] as const satisfies ReadonlyArray<readonly [operation: string, form: EarlierPayload]>

layer(RuntimePaths.layerWith({ rateActivation: 1000 }), { timeout: 60_000 })("A client of before", (it) => {
  const prepared = Effect.gen(function* () {
    const { client } = yield* TestServer
    const license = yield* issue({ max_floating_users: 1, grace_period_days: 3 })
    const params = { id: license.product_id }
    const payload = { name: "Export", code: "export" }
    const feature = yield* client.features.create({ params, payload })
    yield* client.licenses.assignFeature({
      params: { id: license.id },
      payload: { feature_id: feature.id, max_consumptions: 5, expires_at: license.expires_at - 1 }
    })
    yield* client.versions.create({ params, payload: { version: "1.0" } })
    yield* (yield* RuntimePaths).remember(license)
    return { license, keys: (yield* client.system.listPublicKeys()).items as ReadonlyArray<PublishedKey> }
  })

  for (const path of runtimePaths) {
    const post = (license_key: string, operation: string, body: object) =>
      Effect.flatMap(TestServer, ({ send }) =>
        send({
          method: "POST",
          path: `/api/v1/license/${operation}`,
          headers: { authorization: `License ${license_key}`, "content-type": contentTypes[path] },
          body
        })
      )

    it.effect(`reads the response of every operation: ${path}`, () =>
      Effect.gen(function* () {
        const { keys, license } = yield* prepared
        let lease_token: unknown
        for (const [operation, form] of calls) {
          const isLease = form === "lease"
          const body = {
            ...(isLease ? { lease_token } : { fingerprint: "m" }),
            ...(form === "entitlement" || form === "checkout" ? { app_version: "1.0" } : undefined),
            ...(operation === "consume" ? { feature_code: "export", event_id: "e" } : undefined)
          }
          const answer = yield* post(license.license_key, operation, body)
          assertAnswered(answer, 200)
          const data = readPayload(form, keys, answer.text)
          if (form === "checkout") lease_token = data["lease_token"]
          if (form === "envelope") {
            assert.hasAllKeys(data, ["kid", "salt", "nonce", "ciphertext"])
            readPayload("offline", keys, openEnvelope(license.license_key, data))
          } else assert.strictEqual(data["license_id"], license.id)
        }
      })
    )

    it.effect(`reads the refusal of every operation: ${path}`, () =>
      Effect.gen(function* () {
        const { license } = yield* prepared
        yield* license.post("revoke")
        for (const [operation, form] of calls) {
          const body = {
            ...(form === "lease" ? { lease_token: "none" } : { fingerprint: "m" }),
            ...(operation === "consume" ? { feature_code: "export", event_id: "e" } : undefined)
          }
          const answer = yield* post(license.license_key, operation, body)
          assert.strictEqual(readRefusal(answer.text), "LICENSE_REVOKED")
          assert.strictEqual(readRefusal((yield* post("none", operation, body)).text), "LICENSE_KEY_INVALID")
          assert.strictEqual(
            readRefusal((yield* post(license.license_key, operation, { colour: 1 })).text),
            "INVALID_JSON"
          )
        }
      })
    )
  }

  it("knows every operation of applications", () => {
    const paths = operations.flatMap(({ path }) => /^\/api\/v1\/license\/(.+)/.exec(path)?.[1] ?? [])
    // A trial comes before there is a license. Earlier clients do not list devices.
    const others = ["trial", "devices", "devices/{device_id}/deactivate"]
    assert.sameMembers(paths, [...calls.map(([operation]) => operation), ...others])
  })
})
