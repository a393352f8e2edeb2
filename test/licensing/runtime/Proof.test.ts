/** What proves a runtime answer: its kind, product, binding and nonce under the signature, also of refusals. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type Expected, judgeOf } from "../../../src/clients/kit/judging/Judge.ts"
import { canonicalize, type Json } from "../../../src/contract/api/CanonicalJson.ts"
import { sha256Hex } from "../../../src/platform/signing/Digest.ts"
import { contentTypes, type RuntimePath, RuntimePaths, runtimePaths } from "../../support/http/FastPath.ts"
import { type Answer, assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { memberBytes } from "../../support/http/Verifier.ts"

const machine = { fingerprint: "m" }

/** A runtime client of a license, and the judge that a client would be. */
const calling = Effect.fnUntraced(function* (license: { readonly license_key: string }, path: RuntimePath) {
  const { client, send } = yield* TestServer
  const believed = judgeOf((yield* client.system.listPublicKeys()).items)
  const call = (operation: string, body: unknown) =>
    send({
      method: "POST",
      path: `/api/v1/license/${operation}`,
      headers: { authorization: `License ${license.license_key}`, "content-type": contentTypes[path] },
      body
    })
  const judge = (answer: Answer, expected?: Expected) =>
    Effect.map(
      Effect.promise(() => believed(answer.text, expected)),
      ({ content }) => content
    )
  return { call, judge }
})

const refusal = (answer: Answer) => answer.error as unknown as Record<string, unknown>

layer(RuntimePaths.layerWith({ rateActivation: 1000 }), { timeout: 60_000 })("A runtime answer", (it) => {
  for (const path of runtimePaths) {
    it.effect(`names its kind, product, policy, device and nonce under the signature: ${path}`, () =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const license = yield* issue({ max_floating_users: 1 })
        yield* (yield* RuntimePaths).remember(license)
        const { code } = yield* client.products.get({ params: { id: license.product_id } })
        const { policy_id } = yield* client.licenses.get({ params: { id: license.id } })
        const { call, judge } = yield* calling(license, path)
        let asked = 0
        const proven = Effect.fnUntraced(function* (operation: string, kind: string, body: object) {
          const nonce = `nonce ~${++asked}`
          const answer = yield* call(operation, { ...body, nonce, product_code: code })
          assertAnswered(answer, 200)
          const binding = { kind: "hardware", hash: sha256Hex("m") }
          const expected = { kind, license_id: license.id, product_id: license.product_id, product_code: code, binding }
          const content = yield* judge(answer, { ...expected, nonce })
          assert.strictEqual(content["policy_id"], policy_id)
          assert.strictEqual(content["binding_hash"], sha256Hex("m"))
          return content
        })
        yield* proven("activate", "entitlement", machine)
        for (const operation of ["activate", "validate", "check"]) yield* proven(operation, "entitlement", machine)
        const { lease_token } = yield* proven("floating/checkout", "floating_checkout", machine)
        yield* proven("floating/heartbeat", "floating_lease", { lease_token })
        yield* proven("floating/checkin", "floating_lease", { lease_token })
        yield* proven("deactivate", "deactivation", machine)
        const silent = assertAnswered(yield* call("activate", machine), 200) as object
        assert.notProperty(silent, "nonce")
      })
    )

    it.effect(`of another license's product is 403, before the license's state: ${path}`, () =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const license = yield* issue({ max_floating_users: 1 })
        yield* (yield* RuntimePaths).remember(license)
        const { call, judge } = yield* calling(license, path)
        const { code } = yield* client.products.get({ params: { id: license.product_id } })
        assertAnswered(yield* call("activate", { ...machine, product_code: code }), 200)
        const wrong = { product_code: `${code}-pro` }
        const operations = [
          ...["activate", "validate", "check", "deactivate", "offline", "floating/checkout"].map(
            (operation) => [operation, { ...machine, ...wrong }] as const
          ),
          ["consume", { ...machine, ...wrong, feature_code: "none", event_id: "e" }],
          ["floating/heartbeat", { lease_token: "none", ...wrong }],
          ["floating/checkin", { lease_token: "none", ...wrong }]
        ] as const
        const refuseAll = Effect.forEach(operations, ([operation, body]) =>
          Effect.flatMap(call(operation, { ...body, nonce: operation }), (answer) => {
            assertRefused(answer, 403, "PRODUCT_MISMATCH", "product_code")
            return judge(answer, { license_id: license.id, product_id: license.product_id, nonce: operation })
          })
        )
        yield* refuseAll
        assertAnswered(yield* license.post("revoke"), 200)
        yield* refuseAll
        assertRefused(yield* call("validate", { ...machine, product_code: code }), 403, "LICENSE_REVOKED")
      })
    )

    it.effect(`follows a new code of the product at once: ${path}`, () =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const license = yield* issue()
        yield* (yield* RuntimePaths).remember(license)
        const { call } = yield* calling(license, path)
        const params = { id: license.product_id }
        const { code } = yield* client.products.get({ params })
        assertAnswered(yield* call("activate", { ...machine, product_code: code }), 200)
        yield* client.products.update({ params, payload: { code: `${code}-new` } })
        assertRefused(yield* call("validate", { ...machine, product_code: code }), 403, "PRODUCT_MISMATCH")
        const data = assertAnswered(yield* call("validate", { ...machine, product_code: `${code}-new` }), 200)
        assert.strictEqual((data as { product_code: string }).product_code, `${code}-new`)
      })
    )

    it.effect(`that refuses is signed, and says since when and why: ${path}`, () =>
      Effect.gen(function* () {
        const { advance, client } = yield* TestServer
        const license = yield* issue({ max_floating_users: 1, max_activations: 1, grace_period_days: 1 })
        yield* (yield* RuntimePaths).remember(license)
        const { call, judge } = yield* calling(license, path)
        const refused = Effect.fnUntraced(function* (operation: string, body: object, status: number, code: string) {
          const answer = yield* call(operation, { ...body, nonce: "n" })
          assertRefused(answer, status, code)
          const { license_id, product_id } = { license_id: license.id, product_id: license.product_id }
          const error = yield* judge(answer, { license_id, product_id, nonce: "n" })
          assert.strictEqual(memberBytes(Buffer.from(answer.bytes), "error").toString(), canonicalize(error as Json))
          return error
        })
        const feature = yield* client.features.create({
          params: { id: license.product_id },
          payload: { name: "E", code: "export" }
        })
        const params = { id: license.id }
        yield* client.licenses.assignFeature({ params, payload: { feature_id: feature.id, max_consumptions: 5 } })
        const version = { version: "9", released_at: license.expires_at + 1 }
        yield* client.versions.create({ params: { id: license.product_id }, payload: version })
        assertAnswered(yield* call("activate", machine), 200)
        const expires_at = new Date(license.expires_at).toISOString()
        const dates = {
          status: "active",
          expires_at,
          access_ends_at: new Date(license.expires_at + 86_400_000).toISOString()
        }
        const full = yield* refused("activate", { fingerprint: "other" }, 403, "ACTIVATION_LIMIT_REACHED")
        assert.deepInclude(full, { ...dates, max: 1, used: 1, detail: "1" })
        const consumption = { ...machine, feature_code: "export", event_id: "e", amount: 6 }
        const spent = yield* refused("consume", consumption, 403, "USAGE_LIMIT_EXCEEDED")
        assert.deepInclude(spent, { ...dates, quota: 5, consumed: 0, remaining: 5 })
        const newer = yield* refused("check", { ...machine, app_version: "9" }, 403, "VERSION_NOT_ENTITLED")
        assert.deepInclude(newer, { ...dates, eligible_through: expires_at })
        assertAnswered(yield* call("floating/checkout", machine), 200)
        const taken = yield* refused("floating/checkout", { fingerprint: "other" }, 403, "FLOATING_LIMIT_REACHED")
        assert.deepInclude(taken, { max: 1, used: 1 })
        assert.deepInclude(yield* refused("validate", { fingerprint: "other" }, 404, "DEVICE_NOT_FOUND"), dates)
        assert.notProperty(refusal(yield* call("validate", { fingerprint: "other" })), "nonce")
        yield* advance(32 * 86_400)
        const ended = yield* refused("validate", machine, 403, "LICENSE_EXPIRED")
        assert.deepInclude(ended, { ...dates, status: "expired" })
      })
    )

    it.effect(`that refuses a license before its start says when to ask again: ${path}`, () =>
      Effect.gen(function* () {
        const { send } = yield* TestServer
        const meta = (yield* send({ path: "/health" })).json as { readonly meta: { readonly timestamp: string } }
        const starts_at = Date.parse(meta.meta.timestamp) + 60_000
        const license = yield* issue({}, { starts_at, expires_at: starts_at + 86_400_000 })
        const { call, judge } = yield* calling(license, path)
        const answer = yield* call("activate", machine)
        assertRefused(answer, 403, "LICENSE_NOT_STARTED")
        const { retry_after_seconds, starts_at: start } = yield* judge(answer)
        assert.strictEqual(start, new Date(starts_at).toISOString())
        assert.isAtMost(Number(retry_after_seconds), 60)
        assert.isAtLeast(Number(retry_after_seconds), 1)
      })
    )

    it.effect(`that refuses a body is signed with its nonce where that is right: ${path}`, () =>
      Effect.gen(function* () {
        const license = yield* issue()
        yield* (yield* RuntimePaths).remember(license)
        const { call, judge } = yield* calling(license, path)
        const cases = [
          ['{"nonce":"n"', 400, "INVALID_JSON", undefined],
          ['{"nonce":"n","fingerprint":1}', 400, "INVALID_JSON", "n"],
          ['{"nonce":"n","unknown":1}', 400, "INVALID_JSON", "n"],
          ['{"nonce":"n"}', 422, "VALIDATION_ERROR", "n"],
          ['{"nonce":"","fingerprint":"m"}', 422, "VALIDATION_ERROR", undefined],
          [`{"nonce":"${"n".repeat(129)}","fingerprint":"m"}`, 422, "VALIDATION_ERROR", undefined],
          ['{"nonce":"\\u007f","fingerprint":"m"}', 422, "VALIDATION_ERROR", undefined],
          ['{"nonce":"\u00e9","fingerprint":"m"}', 422, "VALIDATION_ERROR", undefined],
          ['{"nonce":1,"fingerprint":"m"}', 400, "INVALID_JSON", undefined],
          ['{"product_code":"","fingerprint":"m"}', 422, "VALIDATION_ERROR", undefined]
        ] as const
        for (const [body, status, code, nonce] of cases) {
          const answer = yield* call("check", body)
          assertRefused(answer, status, code)
          const error = yield* judge(answer, { license_id: license.id, product_id: license.product_id })
          assert.strictEqual(error["nonce"], nonce, body)
        }
        const longest = ` ${"~".repeat(127)}`
        assert.strictEqual(refusal(yield* call("check", { ...machine, nonce: longest }))["nonce"], longest)
      })
    )

    it.effect(`is not signed if the key is not right: ${path}`, () =>
      Effect.gen(function* () {
        const license = yield* issue()
        yield* (yield* RuntimePaths).remember(license)
        const { call } = yield* calling(license, path)
        assertAnswered(yield* license.post("rotate-key"), 200)
        for (const body of [machine, "{", { unknown: 1 }, { ...machine, product_code: "none" }]) {
          const answer = yield* call("check", body)
          assertRefused(answer, 401, "LICENSE_KEY_INVALID")
          assert.deepStrictEqual(Object.keys(answer.json as object), ["error", "meta"])
        }
      })
    )
  }

  it.effect("that refuses reaches a typed client with its facts and signature", () =>
    Effect.gen(function* () {
      const license = yield* issue()
      yield* license.runtime.activate({ payload: machine })
      assertAnswered(yield* license.post("suspend"), 200)
      const refused = yield* Effect.flip(license.runtime.validate({ payload: { ...machine, nonce: "n" } }))
      assert.deepInclude(refused, { code: "LICENSE_SUSPENDED" })
      const { facts, signature } = refused as unknown as {
        readonly facts: Record<string, unknown>
        readonly signature: { readonly alg: string }
      }
      assert.deepInclude(facts, { license_id: license.id, status: "suspended", nonce: "n" })
      assert.strictEqual(signature.alg, "Ed25519")
    })
  )
})
