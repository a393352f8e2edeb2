/** Offline envelopes over HTTP, opened as a client opens them: by Web Crypto, with the license key and the published keys. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { canonicalize, type Json } from "../../../src/contract/api/CanonicalJson.ts"
import { sha256Hex } from "../../../src/platform/signing/Digest.ts"
import { assertRefused } from "../../support/http/Http.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const { subtle } = globalThis.crypto
const bytes = (text: string) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
const utf8 = (text: string) => new TextEncoder().encode(text)

interface Envelope {
  readonly kid: string
  readonly salt: string
  readonly nonce: string
  readonly ciphertext: string
}

interface SignedText {
  readonly data: { readonly [member: string]: Json }
  readonly signature: { readonly kid: string; readonly value: string; readonly alg: string }
}

/** The text in an envelope; a defect where it does not open. */
const opened = (license_key: string, { kid, salt, nonce, ciphertext }: Envelope) =>
  Effect.promise(async () => {
    const secret = await subtle.importKey("raw", utf8(license_key), "HKDF", false, ["deriveKey"])
    const info = utf8("licensing-service/offline/v1")
    const derivation = { name: "HKDF", hash: "SHA-256", salt: bytes(salt), info }
    const key = await subtle.deriveKey(derivation, secret, { name: "AES-GCM", length: 256 }, false, ["decrypt"])
    const parameters = { name: "AES-GCM", iv: bytes(nonce), additionalData: utf8(kid) }
    return new TextDecoder().decode(await subtle.decrypt(parameters, key, bytes(ciphertext)))
  })

/** Whether a signature is that of the published key which it names. */
const holds = Effect.fnUntraced(function* ({ data, signature }: SignedText) {
  const { client } = yield* TestServer
  const { items } = yield* client.system.listPublicKeys()
  const { public_key = "" } = items.find(({ kid }) => kid === signature.kid) ?? {}
  return yield* Effect.promise(async () => {
    const key = await subtle.importKey("raw", bytes(public_key), "Ed25519", false, ["verify"])
    return await subtle.verify("Ed25519", key, bytes(signature.value), utf8(canonicalize(data)))
  })
})

const issued = Effect.fnUntraced(function* (policy: Parameters<typeof issue>[0] = {}) {
  const { send } = yield* TestServer
  const license = yield* issue(policy)
  const post = (path: string, body: unknown, key = license.license_key) =>
    send({
      method: "POST",
      path: `/api/v1/license/${path}`,
      headers: { authorization: `License ${key}` },
      body
    })
  return { ...license, send: post }
})

layer(TestServer.layer)("Offline envelopes over HTTP", (it) => {
  it.effect("are decrypted with the key as issued, however the client writes it, and both signatures are valid", () =>
    Effect.gen(function* () {
      const { id, license_key, send } = yield* issued({ offline_grace_days: 3 })
      const body = { fingerprint: "machine" }
      yield* send("activate", body)
      for (const written of [license_key, license_key.toLowerCase().replaceAll("-", "")]) {
        const answer = (yield* send("offline", { ...body, nonce: "asked" }, written)).json as SignedText
        assert.isTrue(yield* holds(answer))
        assert.sameMembers(Object.keys(answer.data), ["kid", "salt", "nonce", "ciphertext"])
        const envelope = answer.data as unknown as Envelope
        assert.deepStrictEqual([bytes(envelope.salt).length, bytes(envelope.nonce).length], [32, 12])
        const inner = JSON.parse(yield* opened(license_key, envelope)) as SignedText
        assert.deepStrictEqual(Object.keys(inner), ["data", "signature"])
        assert.strictEqual(inner.signature.kid, envelope.kid)
        assert.isTrue(yield* holds(inner))
        const { kind, nonce } = inner.data
        assert.deepStrictEqual([kind, nonce], ["offline", "asked"])
        const { license_id, issued_at, offline_expires_at, binding_kind, binding_hash } = inner.data
        assert.strictEqual(license_id, id)
        assert.strictEqual(Date.parse(`${offline_expires_at}`) - Date.parse(`${issued_at}`), 3 * 86_400_000)
        assert.deepStrictEqual([binding_kind, binding_hash], ["hardware", sha256Hex("machine")])
      }
    })
  )

  it.effect("never have the same salt, nonce or ciphertext, and no other key decrypts them", () =>
    Effect.gen(function* () {
      const { license_key, send } = yield* issued()
      const other = yield* issued()
      yield* send("activate", { fingerprint: "machine" })
      const envelopes = yield* Effect.forEach(Array.from({ length: 20 }), () =>
        Effect.map(
          send("offline", { fingerprint: "machine" }),
          ({ json }) => (json as SignedText).data as unknown as Envelope
        )
      )
      for (const part of ["salt", "nonce", "ciphertext"] as const) {
        assert.strictEqual(new Set(envelopes.map((envelope) => envelope[part])).size, envelopes.length)
      }
      const [envelope] = envelopes as [Envelope]
      const shut = yield* Effect.exit(opened(other.license_key, envelope))
      assert.strictEqual(shut._tag, "Failure")
      assert.strictEqual(
        (yield* Effect.exit(opened(license_key, { ...envelope, kid: "0".repeat(16) })))._tag,
        "Failure"
      )
      assert.strictEqual((yield* Effect.exit(opened(license_key, envelope)))._tag, "Success")
    })
  )

  it.effect("are recorded without their content, and refused without an activation or by the policy", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { id, send } = yield* issued({ max_floating_users: 1 })
      const body = { fingerprint: "machine" }
      assertRefused(yield* send("offline", body), 404, "DEVICE_NOT_FOUND")
      yield* send("floating/checkout", body)
      assertRefused(yield* send("offline", body), 403, "DEVICE_NOT_ACTIVE")
      yield* send("activate", body)
      const answer = (yield* send("offline", body)).json as SignedText
      const { items } = yield* client.events.list({ query: { resource_id: id, event_type: "license.offline_issued" } })
      assert.lengthOf(items, 1)
      assert.deepInclude(items[0], { actor_type: "license", actor_id: id })
      const told = JSON.stringify(items[0])
      for (const secret of ["machine", String(answer.data["ciphertext"])]) assert.notInclude(told, `"${secret}"`)
      const strict = yield* issued({ allow_offline_activation: false })
      yield* strict.send("activate", body)
      assertRefused(yield* strict.send("offline", body), 403, "OFFLINE_NOT_ALLOWED")
    })
  )
})
