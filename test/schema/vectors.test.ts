import { createHash, createPublicKey, verify } from "node:crypto"
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Option, Schema } from "effect"
import { vectorFiles } from "../../infra/scripts/vectors.ts"
import * as Tokens from "../../src/access/Tokens.ts"
import { canonicalize } from "../../src/contract/api/CanonicalJson.ts"
import * as LicenseKey from "../../src/licensing/model/LicenseKey.ts"
import { OfflineEntitlementPayload } from "../../src/licensing/model/Payloads.ts"

const root = new URL("../../", import.meta.url)
const read = (path: string) => readFileSync(new URL(path, root), "utf8")
const published = (name: string) => JSON.parse(read(`schema/vectors/${name}.json`))
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex")

describe("the published test vectors", () => {
  it.each(Object.entries(vectorFiles()))("%s matches the code's output", (path, content) => {
    assert.strictEqual(read(path), content)
  })

  it("are generated identically each time", () => {
    assert.deepStrictEqual(vectorFiles(), vectorFiles())
  })

  it("canonical-json.json: the canonical text parses to the input and has the digest", () => {
    const { vectors, refused } = published("canonical-json")
    assert.isNotEmpty(vectors)
    for (const { input, canonical, sha256: digest } of vectors) {
      assert.deepStrictEqual(JSON.parse(canonical), JSON.parse(JSON.stringify(JSON.parse(input))))
      assert.strictEqual(sha256(canonical), digest)
    }
    for (const { input } of refused) assert.throws(() => canonicalize(JSON.parse(input)), TypeError)
  })

  // Without the service's code: as a client verifies that has only the published key.
  it("signatures.json: every valid signature verifies, every invalid one does not", () => {
    const { keys, valid, invalid } = published("signatures")
    const publicKeys = new Map<string, string>()
    for (const { kid, public_key } of keys) {
      assert.strictEqual(kid, createHash("sha256").update(Buffer.from(public_key, "base64")).digest("hex").slice(0, 16))
      publicKeys.set(kid, Buffer.from(public_key, "base64").toString("base64url"))
    }
    const isValidSignature = ({
      canonical,
      signature
    }: {
      canonical: string
      signature: { kid: string; value: string }
    }) =>
      verify(
        null,
        Buffer.from(canonical),
        createPublicKey({
          key: { kty: "OKP", crv: "Ed25519", x: publicKeys.get(signature.kid) as string },
          format: "jwk"
        }),
        Buffer.from(signature.value, "base64")
      )
    assert.lengthOf(valid, 5)
    for (const vector of valid) {
      assert.isTrue(isValidSignature(vector), vector.name)
      assert.strictEqual(canonicalize(vector.data), vector.canonical)
    }
    assert.lengthOf(invalid, 4)
    for (const vector of invalid) assert.isFalse(isValidSignature(vector), vector.name)
  })

  it("license-keys.json: every valid input parses to its key, every invalid one is refused", () => {
    const { valid, invalid } = published("license-keys")
    assert.isAtLeast(valid.length, 8)
    for (const { input, canonical, license_key_prefix, license_key_last4, sha256: digest } of valid) {
      assert.deepStrictEqual(LicenseKey.parse(input), Option.some(canonical))
      assert.strictEqual(sha256(canonical), digest)
      assert.isTrue(canonical.startsWith(license_key_prefix) && canonical.endsWith(license_key_last4))
    }
    assert.isNotEmpty(invalid)
    for (const { input, reason } of invalid) assert.deepStrictEqual(LicenseKey.parse(input), Option.none(), reason)
  })

  // With Web Crypto only, which shares no code with the service.
  it("offline-envelopes.json: every valid envelope opens and verifies, every invalid one does not", async () => {
    const { keys, valid, invalid } = published("offline-envelopes")
    const { subtle } = globalThis.crypto
    const bytes = (text: string) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
    const utf8 = (text: string) => new TextEncoder().encode(text)
    const open = async ({ license_key, envelope: { kid, salt, nonce, ciphertext } }: (typeof valid)[0]) => {
      const secret = await subtle.importKey("raw", utf8(license_key), "HKDF", false, ["deriveKey"])
      const info = utf8("licensing-service/offline/v1")
      const derivation = { name: "HKDF", hash: "SHA-256", salt: bytes(salt), info }
      const key = await subtle.deriveKey(derivation, secret, { name: "AES-GCM", length: 256 }, false, ["decrypt"])
      const parameters = { name: "AES-GCM", iv: bytes(nonce), additionalData: utf8(kid) }
      return new TextDecoder().decode(await subtle.decrypt(parameters, key, bytes(ciphertext)))
    }
    assert.lengthOf(valid, 2)
    for (const vector of valid) {
      const plaintext = await open(vector)
      assert.strictEqual(plaintext, vector.plaintext)
      assert.lengthOf(bytes(vector.envelope.salt), 32)
      assert.lengthOf(bytes(vector.envelope.nonce), 12)
      const { data, signature } = JSON.parse(plaintext)
      assert.strictEqual(signature.kid, vector.envelope.kid)
      const [publicKey] = keys.filter((key: { kid: string }) => key.kid === signature.kid)
      const verifier = await subtle.importKey("raw", bytes(publicKey.public_key), "Ed25519", false, ["verify"])
      assert.isTrue(await subtle.verify("Ed25519", verifier, bytes(signature.value), utf8(canonicalize(data))))
      assert.include(plaintext, canonicalize(data))
      // These payloads have the members of before: what was added since is on top of them.
      const added = {
        kind: "offline",
        product_id: "prod_1",
        product_code: "p",
        policy_id: "pol_1"
      }
      Schema.decodeUnknownSync(OfflineEntitlementPayload, { onExcessProperty: "error" })({ ...added, ...data })
    }
    assert.isAtLeast(invalid.length, 6)
    for (const vector of invalid) {
      const opened = await open(vector).catch(() => undefined)
      assert.isUndefined(opened, vector.name)
    }
  })

  it("tokens.json: every valid token parses to itself, every malformed one is refused", () => {
    const { api_tokens, lease_tokens } = published("tokens")
    assert.isNotEmpty(api_tokens.valid)
    for (const { token, key_prefix, sha256: digest } of api_tokens.valid) {
      assert.isTrue(Tokens.isApiToken(token))
      assert.strictEqual(token.slice(0, 12), key_prefix)
      assert.strictEqual(sha256(token), digest)
    }
    assert.isNotEmpty(api_tokens.malformed)
    for (const { token, reason } of api_tokens.malformed) assert.isFalse(Tokens.isApiToken(token), reason)
    for (const { token, sha256: digest } of lease_tokens) {
      assert.match(token, /^lease_[A-Za-z0-9_-]{43}$/)
      assert.strictEqual(sha256(token), digest)
    }
  })
})
