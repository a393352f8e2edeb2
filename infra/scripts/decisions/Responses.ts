/** The responses of the scenarios of decisions: each has a name, and is signed once. */
import type { TrustedKey } from "../../../src/clients/kit/judging/Judge.ts"
import { canonicalize, type Json } from "../../../src/contract/api/CanonicalJson.ts"
import * as LicenseKey from "../../../src/licensing/model/LicenseKey.ts"
import { sealEnvelope } from "../../../src/licensing/runtime/OfflineEnvelope.ts"
import { sha256, sha256Hex } from "../../../src/platform/signing/Digest.ts"
import { algorithm, fromSeed, type SigningKey, signSync } from "../../../src/platform/signing/SigningKey.ts"

type Members = { readonly [member: string]: Json | undefined }

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64")
const keyOf = (label: string): SigningKey => fromSeed(sha256(label))
const active = keyOf("signing key, active")
const next = keyOf("signing key, next")
export const foreign = keyOf("signing key of another service")

const published = ({ kid, publicKey }: SigningKey): TrustedKey => ({ kid, public_key: base64(publicKey) })
export const keys = [published(active), published(next)]

export const licenseKey = LicenseKey.fromBytes(sha256("license key 1").subarray(0, 28))
export const otherLicenseKey = LicenseKey.fromBytes(sha256("license key 2").subarray(0, 28))
export const fingerprint = "fingerprint of this machine"
export const productCode = "editor-pro"
/** Every request has this one: 16 bytes of zero. */
const nonce = base64(new Uint8Array(16))

const start = Date.UTC(2030, 0, 31, 12)
/** The instant so many hours after the start. */
export const at = (hours: number, millis = 0): string => new Date(start + hours * 3_600_000 + millis).toISOString()

const subject = {
  license_id: "lic_01J0000000000000000000000A",
  product_id: "prod_01J0000000000000000000000A",
  product_code: productCode,
  policy_id: "pol_01J0000000000000000000000A",
  status: "active",
  license_type: "subscription",
  entitlement_version: 3
}
const held = {
  ...subject,
  device_id: "dev_01J0000000000000000000000A",
  binding_kind: "hardware",
  binding_hash: sha256Hex(fingerprint),
  expires_at: at(365 * 24)
}
const features = [
  { code: "export", enabled: true, quota: 1000, consumed: 12, remaining: 988 },
  { code: "import", enabled: true }
]

export const responses: Record<string, string> = {}
const add = (name: string, text: string): string => {
  if (name in responses) throw new Error(`Two responses are called ${name}`)
  responses[name] = text
  return name
}

const meta = JSON.stringify({ request_id: "req_01J0000000000000000000000A", timestamp: at(0) })
const signed = (member: "data" | "error", content: Members, key: SigningKey, kid = key.kid): string => {
  const bytes = canonicalize(content)
  const value = base64(signSync(key, Buffer.from(bytes)))
  return `{"${member}":${bytes},"signature":${JSON.stringify({ alg: algorithm, kid, value })}`
}

export interface Signing {
  readonly key?: SigningKey
  readonly kid?: string
}

const data = (name: string, content: Members, { key = active, kid }: Signing = {}): string =>
  add(name, `${signed("data", { nonce, ...content }, key, kid)},"meta":${meta}}`)

/** An entitlement of an hour, to be renewed a day later. */
export const entitlement = (name: string, hour: number, more: Members = {}, signing?: Signing): string =>
  data(
    name,
    { kind: "entitlement", ...held, issued_at: at(hour), next_check_at: at(hour + 24), features, ...more },
    signing
  )

export const refusal = (name: string, code: string, hour: number, more: Members = {}, key = active): string => {
  const { license_id, product_id } = subject
  const facts = { license_id, product_id, issued_at: at(hour), status: "active", nonce }
  const content = { code, message: `Refused: ${code}.`, ...facts, ...more }
  return add(name, `${signed("error", content, key, active.kid)},"meta":${meta}}`)
}

/** A seat of half an hour. */
export const seat = (name: string, kind: "floating_checkout" | "floating_lease", hour: number, more: Members = {}) =>
  data(name, {
    ...{ kind, ...held, issued_at: at(hour), lease_expires_at: at(hour + 0.5), features },
    ...(kind === "floating_checkout" && { lease_token: `lease_${"A".repeat(43)}` }),
    ...more
  })

export const deactivation = (name: string, hour: number, more: Members = {}): string =>
  data(name, { kind: "deactivation", ...held, issued_at: at(hour), ...more })

/** A page of the license's devices, which is bound to none. */
export const devices = (name: string, hour: number, signing?: Signing): string => {
  const { device_id, binding_kind, binding_hash: _, ...rest } = held
  const own = { id: device_id, binding_kind, is_activated: true }
  return data(name, { kind: "devices", ...rest, issued_at: at(hour), devices: [own], next_cursor: null }, signing)
}

/** An envelope of a week, as a file; what is in it has the same name with `, opened` behind it. */
export const envelope = (name: string, hour: number, more: Members = {}, key = licenseKey): string => {
  const content = { kind: "offline", ...held, issued_at: at(hour), next_check_at: at(hour + 24), features, ...more }
  const ends = { ...content, offline_expires_at: at(hour + 7 * 24), ...more }
  const inner = `${signed("data", ends, active)}}`
  add(`${name}, opened`, inner)
  const [salt, iv] = [sha256("salt of decisions"), sha256("nonce of decisions").subarray(0, 12)]
  const value = base64(signSync(active, Buffer.from(canonicalize(ends))))
  const signature = { alg: algorithm, kid: active.kid, value } as const
  return add(
    name,
    JSON.stringify(sealEnvelope({ licenseKey: key, salt, nonce: iv, bytes: canonicalize(ends), signature }))
  )
}

/** The response of POST /license/offline with an envelope in it. */
export const issued = (name: string, file: string): string => {
  const content = JSON.parse(responses[file] ?? "") as Members
  return add(name, `${signed("data", content, active)},"meta":${meta}}`)
}

export const publicKeys = (name: string): string =>
  add(name, JSON.stringify({ data: keys.map((key) => ({ ...key, algorithm, status: "active" })) }))

export const plain = add

export const forgedBy: Signing = { key: foreign, kid: active.kid }
export const unknownKey: Signing = { key: foreign }
export const nextKey: Signing = { key: next }
