/**
 * Verifies signed responses as any client can: with the raw bytes of the response and the published public keys alone. The rules and
 * their order are those of docs/VERIFYING.md. It shares no code with the service, so that it can detect the service's errors.
 */
import { createDecipheriv, createHash, createPublicKey, hkdfSync, type KeyObject, verify } from "node:crypto"

/** An entry of GET /api/v1/system/public-keys. */
export interface PublishedKey {
  readonly kid: string
  readonly algorithm: string
  /** Base64 of the 32 public key bytes. */
  readonly public_key: string
}

/** The rules in their order; an offline envelope must open before them. */
export type Rule = "envelope" | "signature" | "kid" | "kind" | "license" | "product" | "binding" | "nonce" | "times"

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
  readonly signature?: { readonly alg?: unknown; readonly kid?: unknown; readonly value?: unknown }
  readonly meta?: { readonly request_id?: unknown; readonly timestamp: string }
}

/** How far a clock may be behind the highest issued_at. */
const clockSkewMillisMax = 300_000
const bodyBytesMax = 1_048_576
const depthMax = 64

export const judgeOf = (keys: ReadonlyArray<PublishedKey>): Judge => {
  const published = new Map(keys.map((key) => [key.kid, keyObject(key)]))
  return (body, expected = {}) => {
    const { content, member, signature, signed } = trusting("signature", () => partsOf(body))
    checkSignature(signed, signature, published)
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

/** The parts of a response that say something; throws if it has not the form of a signed response. */
const partsOf = (body: Buffer) => {
  const raw = membersOf(body)
  const { data, error, signature } = parse(body) as Envelope
  const member = raw.has("data") ? "data" : "error"
  const content = member === "data" ? data : error
  if (raw.has("data") === raw.has("error")) throw new Error("the response has no data and no error, or both")
  if (!isObject(content) || !isObject(signature)) throw new Error("the response lacks an object")
  membersOf(raw.get("signature") as Buffer)
  return { member, content, signed: raw.get(member) as Buffer, signature } as const
}

const parse = (bytes: Buffer): unknown =>
  JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes))

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Any error counts as a breach of the rule. */
const trusting = <A>(rule: Rule, read: () => A): A => {
  try {
    return read()
  } catch (problem) {
    throw new Distrusted(rule, String(problem))
  }
}

const checkSignature = (
  bytes: Buffer,
  signature: NonNullable<Envelope["signature"]>,
  published: ReadonlyMap<unknown, KeyObject>
): void => {
  if (signature.alg !== "Ed25519")
    throw new Distrusted("signature", `the signature's algorithm is ${signature.alg}, or there is none`)
  const key = published.get(signature.kid)
  if (key === undefined) throw new Distrusted("kid", `the signing key ${signature.kid} is not published`)
  const value = trusting("signature", () => fromBase64(signature.value))
  if (!verify(null, bytes, key, value)) throw new Distrusted("signature", "the signature is not valid")
}

/** Standard base64 with padding, in its one right form: Buffer takes much more. */
const fromBase64 = (text: unknown): Buffer => {
  const bytes = Buffer.from(String(text), "base64")
  if (bytes.toString("base64") !== text) throw new Error("not written as standard base64")
  return bytes
}

const checkTimes = (
  content: Record<string, unknown>,
  { highestIssuedAt, now }: NonNullable<Expected["clock"]>
): void => {
  if (now < Math.max(highestIssuedAt, instantOf(content, "issued_at")) - clockSkewMillisMax)
    throw new Distrusted("times", "the clock is more than five minutes behind an instant that the service has signed")
  const end = ends.get(content["kind"])
  if (end !== undefined && now >= instantOf(content, end)) throw new Distrusted("times", `${end} has passed`)
}

/** The kinds whose answers end by themselves. The answer to a checkin has an end that has passed. */
const ends: ReadonlyMap<unknown, string> = new Map([
  ["offline", "offline_expires_at"],
  ["floating_checkout", "lease_expires_at"]
])

const instantOf = (content: Record<string, unknown>, name: string): number => {
  const instant = typeof content[name] === "string" ? Date.parse(content[name]) : Number.NaN
  if (Number.isNaN(instant)) throw new Distrusted("times", `${name} is no instant`)
  return instant
}

/** Opens an offline envelope, the JSON of its four fields, with the license key as issued, and judges what is in it. */
export const openOffline =
  (judge: Judge) =>
  (licenseKey: string, envelope: Buffer, expected?: Expected): Trusted => {
    const plaintext = trusting("envelope", () => {
      membersOf(envelope)
      const { ciphertext, kid, nonce, salt } = parse(envelope) as Record<string, unknown>
      const sealed = fromBase64(ciphertext)
      if (typeof kid !== "string" || salt === "" || sealed.length < 16)
        throw new Error("a part is missing or too short")
      const iv = fromBase64(nonce)
      if (iv.length !== 12) throw new Error("the nonce has not 12 bytes")
      const key = new Uint8Array(hkdfSync("sha256", licenseKey, fromBase64(salt), "licensing-service/offline/v1", 32))
      const decipher = createDecipheriv("aes-256-gcm", key, iv, { authTagLength: 16 })
      decipher.setAAD(Buffer.from(kid)).setAuthTag(sealed.subarray(-16))
      return Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()])
    })
    return judge(plaintext, expected)
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

/**
 * The bytes of each member of a JSON object, exactly as received. The bytes are those of JSON only if a parser accepts them, too. A
 * name that is there twice is refused: parsers take the last one, so a forged member could stand for the signed one.
 */
const membersOf = (body: Buffer): ReadonlyMap<string, Buffer> => {
  if (body.length > bodyBytesMax) throw new Error("the body is too large")
  const members = new Map<string, Buffer>()
  let depth = 0
  let name = ""
  let value = 0
  for (let at = 0; at < body.length; at++) {
    const byte = body[at]
    if (byte === quote) {
      const end = stringEnd(body, at)
      if (depth === 1 && value === 0) name = JSON.parse(body.toString("utf8", at, end + 1))
      at = end
    } else if (byte === open || byte === openArray) {
      if (++depth > depthMax) throw new Error("the body is nested too deep")
    } else if (depth === 1 && byte === colon) value = at + 1
    else if (depth === 1 && value !== 0 && (byte === comma || byte === close)) {
      if (members.has(name)) throw new Error(`${name} is there twice`)
      members.set(name, body.subarray(value, at))
      value = 0
    }
    if (byte === close || byte === closeArray) depth--
  }
  return members
}

/** The bytes of a member of a JSON object, exactly as received. */
export const memberBytes = (body: Buffer, member: "data" | "error"): Buffer => {
  const bytes = membersOf(body).get(member)
  if (bytes === undefined) throw new Error(`the response has no ${member}`)
  return bytes
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
