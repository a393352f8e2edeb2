/**
 * A client written when responses had only the fields below: before payloads named their kind and product, and before refusals were
 * signed. It checks every field that it knows, ignores all others, and shares no code with the service.
 */
import { createDecipheriv, createPublicKey, hkdfSync, verify } from "node:crypto"

type Check = (value: unknown) => boolean

const text: Check = (value) => typeof value === "string"
const flag: Check = (value) => typeof value === "boolean"
const int64: Check = (value) => Number.isSafeInteger(value) && Number(value) >= 0
const instant: Check = (value) => typeof value === "string" && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)
const oneOf =
  (...values: ReadonlyArray<string>): Check =>
  (value) =>
    values.includes(value as string)
const listOf =
  (item: Shape): Check =>
  (value) =>
    Array.isArray(value) && value.every((member) => faultOf(item, member) === undefined)
const objectOf =
  (shape: Shape): Check =>
  (value) =>
    faultOf(shape, value) === undefined

/** The fields that must be there, and those that may be. */
interface Shape {
  readonly required: { readonly [name: string]: Check }
  readonly optional?: { readonly [name: string]: Check }
}

/** The first known field that is missing or of another form, or undefined. */
const faultOf = ({ required, optional = {} }: Shape, value: unknown): string | undefined => {
  if (typeof value !== "object" || value === null) return "no object"
  const fields = value as { readonly [name: string]: unknown }
  const missing = Object.entries(required).find(([name, check]) => !check(fields[name]))
  return (missing ?? Object.entries(optional).find(([name, check]) => name in fields && !check(fields[name])))?.[0]
}

const common = {
  license_id: text,
  status: oneOf("active", "suspended", "expired", "revoked", "grace_period"),
  license_type: oneOf("perpetual", "time_limited", "subscription", "trial", "consumption"),
  entitlement_version: int64,
  issued_at: instant,
  device_id: text
}
const features = listOf({
  required: { code: text, enabled: flag },
  optional: { quota: int64, consumed: int64, remaining: int64 }
})
const version_eligibility = objectOf({
  required: { app_version: text, is_entitled: flag, enforced: flag },
  optional: { released_at: instant, eligible_through: instant }
})

const payloads = {
  entitlement: {
    required: { ...common, next_check_at: instant, features },
    optional: { expires_at: instant, version_eligibility }
  },
  deactivation: { required: common, optional: { expires_at: instant } },
  checkout: {
    required: { ...common, lease_token: text, lease_expires_at: instant, features },
    optional: { expires_at: instant, version_eligibility }
  },
  lease: {
    required: { ...common, lease_expires_at: instant },
    optional: { expires_at: instant, features, version_eligibility }
  },
  envelope: { required: { kid: text, salt: text, nonce: text, ciphertext: text } },
  offline: {
    required: {
      ...common,
      next_check_at: instant,
      features,
      offline_expires_at: instant,
      binding_kind: oneOf("hardware", "container"),
      binding_hash: text
    },
    optional: { expires_at: instant, version_eligibility }
  }
} as const satisfies { readonly [name: string]: Shape }

export type EarlierPayload = keyof typeof payloads

const signed: Shape = {
  required: {
    data: objectOf({ required: {} }),
    signature: objectOf({ required: { alg: oneOf("Ed25519"), kid: text, value: text } })
  }
}
const refused: Shape = {
  required: {
    error: objectOf({ required: { code: text, message: text }, optional: { detail: text } }),
    meta: objectOf({ required: { request_id: text, timestamp: instant } })
  }
}

interface Signed {
  readonly data: { readonly [name: string]: unknown }
  readonly signature: { readonly kid: string; readonly value: string }
}

const demand = (shape: Shape, value: unknown): void => {
  const fault = faultOf(shape, value)
  if (fault !== undefined) throw new Error(`The field ${fault} is not as it was: ${JSON.stringify(value)}`)
}

interface Key {
  readonly kid: string
  readonly public_key: string
}

/** The data of a signed response of this form; throws if a field that the client knows is not as it was. */
export const readPayload = (form: EarlierPayload, keys: ReadonlyArray<Key>, body: string): Signed["data"] => {
  const response = JSON.parse(body) as Signed
  demand(signed, response)
  demand(payloads[form], response.data)
  const x = Buffer.from(keys.find(({ kid }) => kid === response.signature.kid)!.public_key, "base64").toString(
    "base64url"
  )
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" })
  const bytes = Buffer.from(JSON.stringify(response.data))
  if (!verify(null, bytes, key, Buffer.from(response.signature.value, "base64")))
    throw new Error("The signature is wrong")
  return response.data
}

export const readRefusal = (body: string): string => {
  const response = JSON.parse(body) as { readonly error: { readonly code: string } }
  demand(refused, response)
  return response.error.code
}

/** The text sealed in an offline envelope. */
export const openEnvelope = (licenseKey: string, envelope: { readonly [name: string]: unknown }): string => {
  const field = (name: string) => Buffer.from(String(envelope[name]), "base64")
  const key = Buffer.from(hkdfSync("sha256", licenseKey, field("salt"), "licensing-service/offline/v1", 32))
  const sealed = field("ciphertext")
  const decipher = createDecipheriv("aes-256-gcm", key, field("nonce"))
  decipher.setAAD(Buffer.from(String(envelope["kid"]))).setAuthTag(sealed.subarray(-16))
  return Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()]).toString()
}
