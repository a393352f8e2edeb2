/** Which responses to believe: the rules of docs/VERIFYING.md in their order, with Web Crypto alone. */
import { fromBase64, instantOf, type JsonObject, membersOf, objectOf } from "../texts/ResponseText.ts"

/** A signing key that the application trusts: an entry of GET /api/v1/system/public-keys. */
export interface TrustedKey {
  readonly kid: string
  /** Base64 of the 32 public key bytes. */
  readonly public_key: string
  // The other members of an entry, so that it can be copied as it is.
  readonly algorithm?: unknown
  readonly status?: unknown
  readonly created_at?: unknown
}

/** The rules in their order; an offline envelope must open before them. */
export type Rule = "envelope" | "signature" | "kid" | "kind" | "license" | "product" | "binding" | "nonce" | "times"

/** A response that must not be believed, by the first rule that it breaks. */
export class Distrusted extends Error {
  readonly rule: Rule
  constructor(rule: Rule) {
    super(`The response breaks the rule ${rule}.`)
    this.rule = rule
  }
}

/** What the application knows. An expectation that is absent is not checked. */
export interface Expected {
  readonly kind?: string | undefined
  readonly license_id?: string | undefined
  readonly product_id?: string | undefined
  readonly product_code?: string | undefined
  readonly binding?: { readonly kind: string; readonly hash: string } | undefined
  /** In place of the binding, where the answer is about another device. */
  readonly device_id?: string | undefined
  readonly nonce?: string | undefined
  /** The application's clock and the highest issued_at that it has seen, in milliseconds. */
  readonly clock?: { readonly now: number; readonly highestIssuedAt: number } | undefined
}

/** The signed part of a response: the `data` of a success, or the `error` of a refusal. */
export interface Trusted {
  readonly member: "data" | "error"
  readonly content: JsonObject
}

/** The signed part of a response that keeps all rules; rejects with `Distrusted` for any other. */
export type Judge = (text: string, expected?: Expected) => Promise<Trusted>

/** How far the clock may be behind the highest issued_at. */
export const clockSkewMillisMax = 300_000

export const judgeOf = (keys: ReadonlyArray<TrustedKey>): Judge => {
  const trusted = new Map<unknown, TrustedKey>(keys.map((key) => [key.kid, key]))
  const imported = new Map<TrustedKey, Promise<PublicKey>>()
  const keyOf = (kid: unknown): Promise<PublicKey> => {
    const key = trusted.get(kid)
    if (key === undefined) throw new Distrusted("kid")
    const importing = imported.get(key) ?? importKey(key)
    imported.set(key, importing)
    return importing
  }
  return async (text, expected = {}) => {
    const { content, member, signature, signed } = partsOf(text)
    if (signature["alg"] !== "Ed25519") throw new Distrusted("signature")
    const key = await keyOf(signature["kid"])
    if (!(await isSignature(key, signature["value"], signed))) throw new Distrusted("signature")
    checkContent(member, content, expected)
    if (expected.clock !== undefined) checkTimes(content, expected.clock)
    return { member, content }
  }
}

/** A CryptoKey, by a name that every platform's types have. */
type PublicKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>

const importKey = async ({ public_key }: TrustedKey): Promise<PublicKey> => {
  try {
    return await crypto.subtle.importKey("raw", fromBase64(public_key), "Ed25519", false, ["verify"])
  } catch {
    throw new Distrusted("kid")
  }
}

interface Parts extends Trusted {
  /** The text whose bytes are signed. */
  readonly signed: string
  readonly signature: JsonObject
}

/** The parts of a response in the form of a signed one. */
export const partsOf = (text: string): Parts => {
  try {
    const members = membersOf(text)
    const member = members.has("data") ? "data" : "error"
    const signed = members.get(member)
    const signature = members.get("signature")
    if (signed === undefined || signature === undefined || (member === "data" && members.has("error"))) {
      throw new Error("a member is missing, or there is one too many")
    }
    membersOf(signature)
    return { member, content: objectOf(signed), signed, signature: objectOf(signature) }
  } catch {
    throw new Distrusted("signature")
  }
}

const isSignature = async (key: PublicKey, value: unknown, signed: string): Promise<boolean> => {
  try {
    return await crypto.subtle.verify("Ed25519", key, fromBase64(value), new TextEncoder().encode(signed))
  } catch {
    return false
  }
}

const checkContent = (member: string, content: JsonObject, expected: Expected): void => {
  const check = (rule: Rule, name: string, wanted: string | undefined) => {
    if (wanted !== undefined && content[name] !== wanted) throw new Distrusted(rule)
  }
  // A refusal has no kind, no product_code and no binding: it grants nothing.
  const grants = member === "data"
  if (grants) check("kind", "kind", expected.kind)
  check("license", "license_id", expected.license_id)
  check("product", "product_id", expected.product_id)
  if (grants) {
    check("product", "product_code", expected.product_code)
    check("binding", "binding_kind", expected.binding?.kind)
    check("binding", "binding_hash", expected.binding?.hash)
    check("binding", "device_id", expected.device_id)
  }
  check("nonce", "nonce", expected.nonce)
}

const checkTimes = (content: JsonObject, { highestIssuedAt, now }: NonNullable<Expected["clock"]>): void => {
  const end = ends.get(content["kind"])
  // A comparison with NaN, which a missing instant gives, is false.
  const isRightClock = now >= Math.max(highestIssuedAt, instantOf(content["issued_at"])) - clockSkewMillisMax
  if (!isRightClock || (end !== undefined && !(now < instantOf(content[end])))) throw new Distrusted("times")
}

/** The kinds whose answers end by themselves. The answer to a checkin has an end that has passed. */
const ends: ReadonlyMap<unknown, string> = new Map([
  ["offline", "offline_expires_at"],
  ["floating_checkout", "lease_expires_at"]
])
