/**
 * Test vectors for clients in other languages: `schema/vectors/*.json`, made by the service's own code.
 *
 * Nothing in them is random or secret: keys and tokens are derived from the SHA-256 of a label, so the files change only
 * when a format changes.
 */

import * as Tokens from "../../src/access/Tokens.ts"
import { canonicalize, type Json } from "../../src/contract/api/CanonicalJson.ts"
import * as LicenseKey from "../../src/licensing/model/LicenseKey.ts"
import { sealEnvelope } from "../../src/licensing/runtime/OfflineEnvelope.ts"
import { sha256, sha256Hex } from "../../src/platform/signing/Digest.ts"
import { algorithm, fromSeed, type SigningKey, signSync } from "../../src/platform/signing/SigningKey.ts"
import { airGap } from "./airGapVectors.ts"
import { bindings, webhooks } from "./clientVectors.ts"
import { hostile } from "./hostileVectors.ts"
import { memberCases } from "./memberVectors.ts"
import { responses } from "./responseVectors.ts"

/** Path from the project's folder → content. */
export const vectorFiles = (): Readonly<Record<string, string>> => ({
  "schema/vectors/canonical-json.json": file(canonicalJson()),
  "schema/vectors/signatures.json": file(signatures()),
  "schema/vectors/license-keys.json": file(licenseKeys()),
  "schema/vectors/tokens.json": file(tokens()),
  "schema/vectors/offline-envelopes.json": file(offlineEnvelopes()),
  "schema/vectors/responses.json": file(responses(memberCases)),
  "schema/vectors/air-gap.json": file(airGap()),
  "schema/vectors/hostile.json": file(hostile()),
  "schema/vectors/bindings.json": file(bindings()),
  "schema/vectors/webhooks.json": file(webhooks())
})

const file = (content: Json): string => `${JSON.stringify(content, null, 2)}\n`

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex")
const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64")

const canonicalJson = (): Json => ({
  description:
    "RFC 8785. `input` is JSON text; parsed and canonicalized it gives `canonical`, whose UTF-8 has this SHA-256. `numbers` are IEEE 754 doubles, big-endian. What is `refused` has no canonical form.",
  vectors: Object.entries(canonicalInputs).map(([name, input]) => {
    const canonical = canonicalize(JSON.parse(input))
    return { name, input, canonical, sha256: sha256Hex(canonical) }
  }),
  numbers: doubles.map((ieee754) => ({
    ieee754,
    canonical: canonicalize(Buffer.from(ieee754, "hex").readDoubleBE(0))
  })),
  refused: [
    { name: "lone surrogate in a text", input: '"\\ud800"' },
    { name: "lone surrogate in a member's name", input: '{"\\udfff":1}' },
    { name: "number that no double holds", input: "1e400" }
  ]
})

const canonicalInputs = {
  "RFC 8785, section 3.2.2": String.raw`{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`,
  "RFC 8785, section 3.2.3": String.raw`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
  "members sort as text, not as numbers": '{"10":1,"9":2,"1":3,"":4}',
  "capitals before small letters": '{"a":1,"B":2,"A":3,"b":4,"_":5}',
  "arrays keep their order": '[3,1,2,{"b":[],"a":{}}]',
  "nested objects sort at every level": '{"b":{"d":1,"c":[{"f":1,"e":2}]},"a":null}',
  "whitespace goes": ' { "a" : [ 1 , 2 ] ,\n\t"b" : "c d" } ',
  "no Unicode normalization": '{"combining":"A\\u030a","composed":"\\u00c5"}',
  "control characters": '"\\u0000\\u0008\\u0009\\u000a\\u000b\\u000c\\u000d\\u001f\\u007f\\u2028"',
  "minus zero": "-0",
  "integers up to 2^53 - 1": "[9007199254740991,-9007199254740991,1.0,1e3]"
}

const doubles = [
  "0000000000000000",
  "8000000000000000",
  "0000000000000001",
  "8000000000000001",
  "7fefffffffffffff",
  "ffefffffffffffff",
  "4340000000000000",
  "c340000000000000",
  "4430000000000000",
  "44b52d02c7e14af5",
  "44b52d02c7e14af6",
  "44b52d02c7e14af7",
  "444b1ae4d6e2ef4e",
  "444b1ae4d6e2ef4f",
  "444b1ae4d6e2ef50",
  "3eb0c6f7a0b5ed8c",
  "3eb0c6f7a0b5ed8d",
  "41b3de4355555553",
  "41b3de4355555554",
  "41b3de4355555555",
  "41b3de4355555556",
  "41b3de4355555557",
  "becbf647612f3696",
  "43143ff3c1cb0959"
]

const signatures = (): Json => {
  const [active, retired] = ["signing key, active", "signing key, retired"].map((label) => {
    const seed = sha256(label)
    return { seed, key: fromSeed(seed) }
  }) as [Pair, Pair]
  const signed = Object.entries(payloads).map(([name, data]) => signature(name, data, active.key))
  const [first] = signed as [Signed]
  return {
    description:
      "The signature covers the UTF-8 of `canonical`, the RFC 8785 form of `data`. The kid is the first 16 hex digits of SHA-256 over the 32 public key bytes. The seeds are for tests only.",
    keys: [active, retired].map(({ seed, key }, index) => ({
      kid: key.kid,
      algorithm,
      public_key: base64(key.publicKey),
      status: index === 0 ? "active" : "retired",
      seed_hex: hex(seed)
    })),
    valid: [...signed, signature("signed before the rotation", payloads.deactivation, retired.key)],
    invalid: [
      {
        ...first,
        name: "another byte in the signature",
        signature: { ...first.signature, value: altered(first.signature.value) }
      },
      { ...first, name: "another value in the data", canonical: first.canonical.replace('"active"', '"revoked"') },
      { ...first, name: "the kid of another key", signature: { ...first.signature, kid: retired.key.kid } },
      { ...first, name: "not canonical: members in another order", canonical: JSON.stringify(payloads.entitlement) }
    ].map(({ name, canonical, signature }) => ({ name, canonical, signature }))
  }
}

interface Pair {
  readonly seed: Uint8Array
  readonly key: SigningKey
}

type Signed = ReturnType<typeof signature>

const signature = (name: string, data: Json, key: SigningKey) => {
  const canonical = canonicalize(data)
  const value = base64(signSync(key, Buffer.from(canonical)))
  return { name, data, canonical, signature: { alg: algorithm, kid: key.kid, value } as const }
}

const subject = {
  license_id: "lic_01K0000000000000000000000A",
  status: "active",
  license_type: "subscription",
  entitlement_version: 7,
  issued_at: "2030-01-31T12:00:00.000Z",
  device_id: "dev_01K0000000000000000000000B"
}

const payloads = {
  entitlement: {
    ...subject,
    next_check_at: "2030-02-01T12:00:00.000Z",
    expires_at: "2031-01-31T12:00:00.000Z",
    features: [
      { code: "export", enabled: true, quota: 1000, consumed: 12, remaining: 988 },
      { code: "import", enabled: true }
    ],
    version_eligibility: { app_version: "2.4.1-β", is_entitled: true, enforced: false }
  },
  deactivation: subject,
  "floating checkout": {
    ...subject,
    lease_token: `lease_${"A".repeat(43)}`,
    lease_expires_at: "2030-01-31T12:30:00.000Z",
    features: []
  },
  "floating lease": { ...subject, lease_expires_at: "2030-01-31T12:30:00.000Z" }
} satisfies Record<string, Json>

const licenseKeys = (): Json => {
  const keys = ["license key 1", "license key 2", "license key 3"].map((label) =>
    LicenseKey.fromBytes(sha256(label).subarray(0, 28))
  )
  // The third has both a 0 and a 1, which may be typed as letters.
  const key = keys[2] as LicenseKey.LicenseKey
  const body = key.slice(2).replaceAll("-", "")
  const swapped = body.replace(/(.)(?!\1)(.)/, "$2$1")
  const changed = (body.startsWith("A") ? "B" : "A") + body.slice(1)
  const written = [
    ...keys,
    key.toLowerCase(),
    `LK${body}`,
    key.replaceAll("-", " "),
    ` ${key} `,
    key.replaceAll("0", "O").replaceAll("1", "I"),
    key.toLowerCase().replaceAll("0", "o").replaceAll("1", "l")
  ]
  return {
    description:
      "`input` is what a person may type; `canonical` is the key as issued, the ikm of offline envelopes. Stored is its SHA-256. An invalid input is refused before any look-up.",
    valid: Array.from(new Set(written), (input) => validKey(input)),
    invalid: [
      { input: `LK${changed}`, reason: "one character is wrong" },
      { input: `LK${swapped}`, reason: "two neighbours are swapped" },
      { input: key.slice(0, -1), reason: "one character is missing" },
      { input: `${key}0`, reason: "one character too many" },
      { input: body, reason: "the prefix is missing" },
      { input: `LK-U${body.slice(1)}`, reason: "U is not in the alphabet" },
      { input: `LK-${"0".repeat(30)}`, reason: "the check is wrong" },
      { input: key.replaceAll("-", "_"), reason: "only dashes and spaces separate" },
      { input: "", reason: "nothing" }
    ]
  }
}

const validKey = (input: string) => {
  const parsed = LicenseKey.parse(input)
  if (parsed._tag === "None") throw new Error(`The vector ${input} is no license key`)
  const canonical = parsed.value
  return {
    input,
    canonical,
    license_key_prefix: LicenseKey.prefix(canonical),
    license_key_last4: LicenseKey.last4(canonical),
    sha256: LicenseKey.hashHex(canonical)
  }
}

const tokens = (): Json => {
  const issued = ["API token 1", "API token 2"].map((label) => Tokens.fromBytes(sha256(label)))
  const token = issued[0] ?? ""
  const lease = Tokens.leaseFromBytes(sha256("lease token 1"))
  return {
    description:
      "API tokens end in CRC-32 over the 47 characters before, as six base62 digits (0-9, A-Z, a-z), the most significant first; a malformed one is refused before any look-up. Stored is SHA-256 of the text.",
    api_tokens: {
      valid: issued.map((text) => ({ token: text, key_prefix: Tokens.prefix(text), sha256: hex(Tokens.hash(text)) })),
      malformed: [
        { token: `${token.slice(0, -1)}${token.endsWith("0") ? "1" : "0"}`, reason: "the check is wrong" },
        { token: `lsm_${token[4] === "A" ? "B" : "A"}${token.slice(5)}`, reason: "one character is wrong" },
        { token: token.slice(0, -1), reason: "one character is missing" },
        { token: token.slice(4), reason: "the prefix is missing" },
        { token: token.replace("lsm_", "LSM_"), reason: "case matters" }
      ]
    },
    lease_tokens: [{ token: lease, sha256: hex(Tokens.hash(lease)) }]
  }
}

const offlineEnvelopes = (): Json => {
  const seed = sha256("signing key, active")
  const signer = fromSeed(seed)
  const envelopes = Object.entries(offlinePayloads).map(([name, data], index) => {
    const license_key = LicenseKey.fromBytes(sha256(`license key ${index + 1}`).subarray(0, 28))
    const { canonical, signature: signed } = signature(name, data, signer)
    const salt = sha256(`offline salt ${index + 1}`)
    const nonce = sha256(`offline nonce ${index + 1}`).subarray(0, 12)
    const envelope = sealEnvelope({ licenseKey: license_key, salt, nonce, bytes: canonical, signature: signed })
    return { name, license_key, envelope, plaintext: `{"data":${canonical},"signature":${JSON.stringify(signed)}}` }
  })
  const [first, second] = envelopes as [(typeof envelopes)[0], (typeof envelopes)[0]]
  const { license_key, envelope } = first
  return {
    description:
      "key = HKDF-SHA256(ikm: UTF-8 of license_key, salt, info: UTF-8 of `licensing-service/offline/v1`, 32 bytes). The ciphertext is AES-256-GCM under key and nonce with the UTF-8 of kid as additional data, its 16-byte tag at the end. It opens to `plaintext`: the data, in canonical form, and the signature over it, which must be verified with the key that kid names.",
    keys: [{ kid: signer.kid, algorithm, public_key: base64(signer.publicKey), seed_hex: hex(seed) }],
    valid: envelopes,
    invalid: [
      { name: "another license key", license_key: second.license_key, envelope },
      { name: "another kid", license_key, envelope: { ...envelope, kid: "0".repeat(16) } },
      { name: "another salt", license_key, envelope: { ...envelope, salt: second.envelope.salt } },
      { name: "another nonce", license_key, envelope: { ...envelope, nonce: second.envelope.nonce } },
      {
        name: "another byte in the ciphertext",
        license_key,
        envelope: { ...envelope, ciphertext: altered(envelope.ciphertext) }
      },
      { name: "the license key in small letters", license_key: license_key.toLowerCase(), envelope }
    ]
  }
}

/** Another first byte. */
const altered = (text: string): string => {
  const bytes = Buffer.from(text, "base64")
  bytes[0] = (bytes[0] as number) ^ 1
  return base64(bytes)
}

const offlinePayloads = {
  "a machine": {
    ...payloads.entitlement,
    offline_expires_at: "2030-02-07T12:00:00.000Z",
    binding_kind: "hardware",
    binding_hash: sha256Hex("fingerprint of a machine")
  },
  "a container without an end": {
    ...subject,
    license_type: "perpetual",
    next_check_at: "2030-02-01T12:00:00.000Z",
    features: [],
    offline_expires_at: "2030-02-07T12:00:00.000Z",
    binding_kind: "container",
    binding_hash: sha256Hex(sha256Hex('{"cluster_id":"c","pod_name":"p"}'))
  }
} satisfies Record<string, Json>
