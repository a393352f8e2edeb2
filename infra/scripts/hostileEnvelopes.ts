/** Offline envelopes that no service sends, or that are another's, and the rule by which a client refuses each. */
import { canonicalize, type Json } from "../../src/contract/api/CanonicalJson.ts"
import * as LicenseKey from "../../src/licensing/model/LicenseKey.ts"
import { sealEnvelope } from "../../src/licensing/runtime/OfflineEnvelope.ts"
import { sha256, sha256Hex } from "../../src/platform/signing/Digest.ts"
import * as SecretBox from "../../src/platform/signing/SecretBox.ts"
import { type Hostile, type Input, signatureOf, signatureText, unsigned } from "./hostileResponses.ts"
import { active, base64, entitlement, foreign, type Members, offline, without } from "./responseVectors.ts"

export const licenseKey = LicenseKey.fromBytes(sha256("license key 1").subarray(0, 28))
const salt = sha256("offline salt 1")
const nonce = sha256("offline nonce 1").subarray(0, 12)
const payload = without(offline, "nonce")

const seal = (content: Json, key = active): Members => {
  const bytes = canonicalize(content)
  return { ...sealEnvelope({ licenseKey, salt, nonce, bytes, signature: signatureOf(bytes, key) }) }
}
/** A genuine encryption of any bytes. */
const sealText = (plaintext: string | Uint8Array): Members => {
  const key = SecretBox.deriveKey(licenseKey, salt, "licensing-service/offline/v1")
  const ciphertext = base64(SecretBox.encrypt(key, nonce, Buffer.from(plaintext), Buffer.from(active.kid)))
  return { kid: active.kid, salt: base64(salt), nonce: base64(nonce), ciphertext }
}

const sealed = seal(payload)
const sealedText = JSON.stringify(sealed)

const closed = (...inputs: ReadonlyArray<readonly [name: string, input: Input]>): ReadonlyArray<Hostile> =>
  inputs.map(([name, input]) => ({ name, input, rule: "envelope" }))

const unopened = closed(
  ["nothing", ""],
  ["null", "null"],
  ["an array", "[]"],
  ["an empty object", "{}"],
  ["an envelope that was cut off", sealedText.slice(0, 200)],
  ["bytes that are not UTF-8", [[new Uint8Array([0xff, 0xfe, 0x00]), 5]]],
  ["a hundred thousand open objects", [['{"kid":', 100_000]]],
  ["ciphertext twice", `${sealedText.slice(0, -1)},"ciphertext":"AAAA"}`],
  ...["kid", "salt", "nonce", "ciphertext"].flatMap(
    (name): ReadonlyArray<readonly [string, string]> => [
      [`no ${name}`, JSON.stringify(without(sealed, name))],
      [`${name} is null`, JSON.stringify({ ...sealed, [name]: null })],
      [`${name} is a number`, JSON.stringify({ ...sealed, [name]: 12 })],
      [`${name} is empty`, JSON.stringify({ ...sealed, [name]: "" })]
    ]
  ),
  ["the ciphertext is no base64", JSON.stringify({ ...sealed, ciphertext: "*" })],
  ["the ciphertext has 15 bytes", JSON.stringify({ ...sealed, ciphertext: base64(new Uint8Array(15)) })],
  ["the ciphertext is a tag alone", JSON.stringify({ ...sealed, ciphertext: base64(new Uint8Array(16)) })],
  [
    "the ciphertext without its last byte",
    JSON.stringify({
      ...sealed,
      ciphertext: base64(Buffer.from(String(sealed["ciphertext"]), "base64").subarray(0, -1))
    })
  ],
  ["the nonce has 11 bytes", JSON.stringify({ ...sealed, nonce: base64(nonce.subarray(1)) })],
  ["the nonce has 16 bytes", JSON.stringify({ ...sealed, nonce: base64(Buffer.concat([nonce, new Uint8Array(4)])) })],
  ["the salt has a line break", JSON.stringify({ ...sealed, salt: `${base64(salt)}\n` })],
  ["the kid in capitals", JSON.stringify({ ...sealed, kid: active.kid.toUpperCase() })]
)

const opened: ReadonlyArray<Hostile> = [
  { name: "the envelope of this machine", input: sealedText },
  { name: "an envelope with unknown members", input: JSON.stringify({ ...sealed, alg: "none", data: payload }) },
  ...unsigned(
    ["sealed: nothing", JSON.stringify(sealText(""))],
    ["sealed: no JSON", JSON.stringify(sealText("data"))],
    ["sealed: an array", JSON.stringify(sealText("[]"))],
    ["sealed: bytes that are not UTF-8", JSON.stringify(sealText(new Uint8Array([0xc3, 0x28])))],
    ["sealed: no signature", JSON.stringify(sealText(`{"data":${canonicalize(payload)}}`))],
    [
      "sealed: the signature of other bytes",
      JSON.stringify(sealText(`{"data":${canonicalize(payload)},"signature":${signatureText}}`))
    ]
  ),
  { name: "sealed and signed by another service", input: JSON.stringify(seal(payload, foreign)), rule: "kid" },
  { name: "sealed: an entitlement for one answer", input: JSON.stringify(seal(entitlement)), rule: "kind" },
  {
    name: "sealed: another license",
    input: JSON.stringify(seal({ ...payload, license_id: "lic_01J0000000000000000000000B" })),
    rule: "license"
  },
  {
    name: "sealed: another product",
    input: JSON.stringify(seal({ ...payload, product_code: "editor-lite" })),
    rule: "product"
  },
  {
    name: "sealed: another machine",
    input: JSON.stringify(seal({ ...payload, binding_hash: sha256Hex("another") })),
    rule: "binding"
  },
  {
    name: "sealed: its end has passed",
    input: sealedText,
    expected: { clock: { now: "2030-02-07T12:00:00.000Z", highest_issued_at: null } },
    rule: "times"
  }
]

export const hostileEnvelopes: ReadonlyArray<Hostile> = [...unopened, ...opened]
