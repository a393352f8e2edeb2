/** The vectors of `schema/vectors/air-gap.json`: what a machine without a network asks for, and the envelopes that answer it. */
import { Schema } from "effect"
import { canonicalize, type Json } from "../../src/contract/api/CanonicalJson.ts"
import * as LicenseKey from "../../src/licensing/model/LicenseKey.ts"
import { sealEnvelope } from "../../src/licensing/runtime/OfflineEnvelope.ts"
import { OfflineRequest } from "../../src/licensing/runtime/RuntimeRequests.ts"
import { sha256, sha256Hex } from "../../src/platform/signing/Digest.ts"
import { algorithm, type SigningKey } from "../../src/platform/signing/SigningKey.ts"
import { licenseKey } from "./hostileEnvelopes.ts"
import { type Hostile, signatureOf } from "./hostileResponses.ts"
import { vectorsOf } from "./hostileVectors.ts"
import { active, base64, expected, foreign, type Members, offline, without } from "./responseVectors.ts"

const product_code = expected.product_code
const machines: Readonly<Record<string, Members>> = {
  "a machine": { fingerprint: expected.binding.key, product_code },
  "a machine with names in another script": { fingerprint: "Žofie 🗝 \u{e9}", product_code },
  "a pod": { is_container: true, cluster_id: "c1", namespace: "prod", pod_name: "web-0", product_code }
}

/** Only what the service accepts. */
const requestOf = (machine: Members): string => {
  const request = { ...machine, activate: true }
  return canonicalize({ ...Schema.decodeUnknownSync(OfflineRequest, { onExcessProperty: "error" })(request) })
}

const otherKey = LicenseKey.fromBytes(sha256("license key 2").subarray(0, 28))
const payload = without(offline, "nonce")
const sealed = (content: Json, key: SigningKey = active, license = licenseKey): string => {
  const bytes = canonicalize(content)
  const [salt, nonce] = [sha256("air gap salt"), sha256("air gap nonce").subarray(0, 12)]
  const signature = signatureOf(bytes, key)
  return JSON.stringify(sealEnvelope({ licenseKey: license, salt, nonce, bytes, signature }))
}

const clock = (now: string) => ({ clock: { now, highest_issued_at: null } })
const genuine = sealed(payload)
const forged = JSON.parse(genuine) as { readonly ciphertext: string }
const bytes = Buffer.from(forged.ciphertext, "base64")
bytes.writeUInt8(bytes.readUInt8(20) ^ 1, 20)

const answers: ReadonlyArray<Hostile> = [
  { name: "the answer", input: genuine },
  { name: "the answer on its last day", input: genuine, expected: clock("2030-02-07T11:59:59.999Z") },
  { name: "the answer with the nonce of a request", input: sealed(offline), expected: { nonce: expected.nonce } },
  { name: "the answer with spaces and line breaks", input: `${JSON.stringify(JSON.parse(genuine), null, 2)}\r\n` },
  {
    name: "the answer for another license key",
    input: sealed(payload, active, otherKey),
    rule: "envelope"
  },
  {
    name: "the answer with another byte",
    input: JSON.stringify({ ...forged, ciphertext: base64(bytes) }),
    rule: "envelope"
  },
  { name: "the answer of another service", input: sealed(payload, foreign), rule: "kid" },
  {
    name: "the answer of another license",
    input: sealed({ ...payload, license_id: "lic_01J0000000000000000000000B" }),
    rule: "license"
  },
  {
    name: "the answer for another product",
    input: sealed({ ...payload, product_code: "editor-lite" }),
    rule: "product"
  },
  {
    name: "the answer for another machine",
    input: sealed({ ...payload, binding_hash: sha256Hex("fingerprint of another machine") }),
    rule: "binding"
  },
  { name: "the answer after its end", input: genuine, expected: clock("2030-02-07T12:00:00.000Z"), rule: "times" },
  {
    name: "the answer before it was issued",
    input: genuine,
    expected: clock("2030-01-31T11:54:59.999Z"),
    rule: "times"
  }
]

export const airGap = (): Json => ({
  description:
    "A machine without a network. `requests`: what it asks for, in canonical JSON (RFC 8785): the binding, the product's code and activate, the body of POST /api/v1/license/offline, which anyone with the license key sends. `envelopes`: what comes back; members as in hostile.json.",
  requests: Object.entries(machines).map(([name, machine]) => {
    const { product_code: code, ...binding } = machine
    return { name, binding, product_code: code as string, request: requestOf(machine) }
  }),
  keys: [{ kid: active.kid, algorithm, public_key: base64(active.publicKey) }],
  expected,
  license_key: licenseKey,
  envelopes: vectorsOf(answers, "envelope", { kind: "offline", nonce: null })
})
