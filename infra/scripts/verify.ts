/**
 * Verifies signed responses as any client can: with the raw bytes of the response and the published public keys alone. The rules and
 * their order are those of docs/VERIFYING.md. It shares no code with the service, so that it can detect the service's errors.
 */
import { createHash, createPublicKey, type KeyObject, verify } from "node:crypto"

/** An entry of GET /api/v1/system/public-keys. */
export interface PublishedKey {
  readonly kid: string
  readonly algorithm: string
  /** Base64 of the 32 public key bytes. */
  readonly public_key: string
}

/** The rules in their order. */
export type Rule = "signature" | "kid" | "kind" | "license" | "product" | "binding" | "nonce" | "times"

/** A response that a client must not believe, by the first rule that it breaks. */
export class Distrusted extends Error {
  readonly rule: Rule
  constructor(rule: Rule, message: string) {
    super(message)
    this.rule = rule
  }
}

/** What the application knows of its request. A rule without its expectation is not checked. */
export interface Expected {
  /** The payload's kind that answers the operation: entitlement, deactivation, floating_checkout, floating_lease, offline. */
  readonly kind?: string
  /** The license of the first response, which the application stores. */
  readonly license_id?: string
  readonly product_code?: string
  /** The product's id, by which a refusal names it. */
  readonly product_id?: string
  /** The binding of this machine or container. */
  readonly binding?: { readonly kind: "hardware" | "container"; readonly key: string }
  /** The nonce that the application has just sent. */
  readonly nonce?: string
  /** The application's clock and the highest issued_at that it has seen, in milliseconds. */
  readonly clock?: { readonly now: number; readonly highestIssuedAt: number }
}

/** The signed part of a response: the `data` of a success, or the `error` of a refusal. */
export interface Trusted {
  readonly member: "data" | "error"
  readonly content: Record<string, unknown>
}

/** Returns the signed part of a response that keeps all rules; throws `Distrusted` for any other. */
export type Judge = (body: Buffer, expected?: Expected) => Trusted

/** Returns the `data` of a signed response; throws if anything about the response is wrong. */
export type Verifier = (body: Buffer) => Record<string, unknown>

interface Envelope {
  readonly data?: Record<string, unknown>
  readonly error?: Record<string, unknown>
  readonly signature?: { readonly alg?: string; readonly kid: string; readonly value: string }
  readonly meta?: { readonly request_id?: unknown; readonly timestamp: string }
}

/** How far a clock may be behind the highest issued_at. */
const clockSkewMillisMax = 300_000

export const judgeOf = (keys: ReadonlyArray<PublishedKey>): Judge => {
  const published = new Map(keys.map((key) => [key.kid, keyObject(key)]))
  return (body, expected = {}) => {
    const { data, error, signature } = JSON.parse(body.toString()) as Envelope
    const member = data === undefined ? "error" : "data"
    const content = data ?? error
    if (content === undefined || (data !== undefined && error !== undefined))
      throw new Distrusted("signature", "the response has no data and no error, or both")
    checkSignature(memberBytes(body, member), signature, published)
    const check = (rule: Rule, name: string, wanted: unknown) => {
      if (wanted !== undefined && content[name] !== wanted)
        throw new Distrusted(rule, `${name} is ${content[name]} in place of ${wanted}`)
    }
    // A refusal has no kind, no product_code and no binding: it grants nothing.
    const grants = member === "data"
    if (grants) check("kind", "kind", expected.kind)
    check("license", "license_id", expected.license_id)
    check("product", "product_id", expected.product_id)
    if (grants) check("product", "product_code", expected.product_code)
    if (grants) check("binding", "binding_kind", expected.binding?.kind)
    if (grants) check("binding", "binding_hash", expected.binding && sha256Hex(expected.binding.key))
    check("nonce", "nonce", expected.nonce)
    if (expected.clock !== undefined) checkTimes(content, expected.clock)
    return { member, content }
  }
}

const checkSignature = (
  bytes: Buffer,
  signature: Envelope["signature"],
  published: ReadonlyMap<string, KeyObject>
): void => {
  if (signature?.alg !== "Ed25519")
    throw new Distrusted("signature", `the signature's algorithm is ${signature?.alg}, or there is none`)
  const key = published.get(signature.kid)
  if (key === undefined) throw new Distrusted("kid", `the signing key ${signature.kid} is not published`)
  if (!verify(null, bytes, key, Buffer.from(signature.value, "base64")))
    throw new Distrusted("signature", "the signature is not valid")
}

const checkTimes = (
  content: Record<string, unknown>,
  { highestIssuedAt, now }: NonNullable<Expected["clock"]>
): void => {
  const issuedAt = Date.parse(String(content["issued_at"]))
  if (Number.isNaN(issuedAt)) throw new Distrusted("times", "issued_at is no instant")
  if (now < Math.max(highestIssuedAt, issuedAt) - clockSkewMillisMax)
    throw new Distrusted("times", "the clock is more than five minutes behind an instant that the service has signed")
  for (const end of ["offline_expires_at", "lease_expires_at"]) {
    if (content["kind"] !== "floating_lease" && end in content && now >= Date.parse(String(content[end])))
      throw new Distrusted("times", `${end} has passed`)
  }
}

const sha256Hex = (text: string): string => createHash("sha256").update(text).digest("hex")

/** Also checks the envelope's form, which the rules leave open. */
export const verifierOf = (keys: ReadonlyArray<PublishedKey>): Verifier => {
  const judge = judgeOf(keys)
  return (body) => {
    const { data: _, error: __, signature: ___, meta, ...rest } = JSON.parse(body.toString()) as Envelope
    if (Object.keys(rest).length > 0) throw new Error(`the envelope has more than it should: ${Object.keys(rest)}`)
    if (typeof meta?.request_id !== "string" || Number.isNaN(Date.parse(meta.timestamp))) {
      throw new Error("meta lacks request_id or timestamp")
    }
    const { content, member } = judge(body)
    if (memberBytes(body, member).toString() !== canonical(content))
      throw new Error(`${member} is not written as canonical JSON`)
    return content
  }
}

const keyObject = ({ algorithm, public_key }: PublishedKey): KeyObject => {
  if (algorithm !== "Ed25519") throw new Error(`a published key has the algorithm ${algorithm}`)
  const x = Buffer.from(public_key, "base64").toString("base64url")
  return createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" })
}

const [quote, backslash, colon, comma, open, close, openArray, closeArray] = Buffer.from('"\\:,{}[]')

/** The bytes of a member of a JSON object, exactly as received. */
export const memberBytes = (body: Buffer, member: "data" | "error"): Buffer => {
  let depth = 0
  let name = ""
  let value = 0
  for (let at = 0; at < body.length; at++) {
    const byte = body[at]
    if (byte === quote) {
      const end = stringEnd(body, at)
      if (depth === 1 && value === 0) name = body.toString("utf8", at + 1, end)
      at = end
    } else if (byte === open || byte === openArray) depth++
    else if (depth === 1 && byte === colon) value = at + 1
    else if (depth === 1 && (byte === comma || byte === close)) {
      if (name === member) return body.subarray(value, at)
      value = 0
    } else if (byte === close || byte === closeArray) depth--
  }
  throw new Error(`the response has no ${member}`)
}

const stringEnd = (body: Buffer, start: number): number => {
  let at = start + 1
  while (body[at] !== quote && at < body.length) at += body[at] === backslash ? 2 : 1
  return at
}

/** RFC 8785: members sorted, no whitespace. */
const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(",")}}`
}
