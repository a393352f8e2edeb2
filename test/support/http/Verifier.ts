/**
 * Checks what the service has signed: the form of a response, its signature and its canonical bytes. It shares no code with the
 * service, so that it can detect the service's errors. The rules of an application (docs/VERIFYING.md) are the kit's.
 */
import { createPublicKey, type KeyObject, verify } from "node:crypto"

/** An entry of GET /api/v1/system/public-keys. */
export interface PublishedKey {
  readonly kid: string
  readonly algorithm: string
  /** Base64 of the 32 public key bytes. */
  readonly public_key: string
}

/** Returns the signed part of a response; throws if anything about the response is wrong. */
export type Verifier = (body: Buffer) => Record<string, unknown>

interface Envelope {
  readonly data?: Record<string, unknown>
  readonly error?: Record<string, unknown>
  readonly signature?: { readonly alg?: unknown; readonly kid?: unknown; readonly value?: unknown }
  readonly meta?: { readonly request_id?: unknown; readonly timestamp: string }
}

export const verifierOf = (keys: ReadonlyArray<PublishedKey>): Verifier => {
  const published = new Map<unknown, KeyObject>(keys.map((key) => [key.kid, keyObject(key)]))
  return (body) => {
    const { data, error, signature, meta, ...rest } = JSON.parse(body.toString()) as Envelope
    if (Object.keys(rest).length > 0) throw new Error(`the envelope has more than it should: ${Object.keys(rest)}`)
    if (typeof meta?.request_id !== "string" || Number.isNaN(Date.parse(meta.timestamp))) {
      throw new Error("meta lacks request_id or timestamp")
    }
    if (signature?.alg !== "Ed25519") throw new Error(`the signature's algorithm is ${signature?.alg}`)
    const key = published.get(signature.kid)
    if (key === undefined) throw new Error(`the signing key ${signature.kid} is not published`)
    const content = data ?? error
    const bytes = memberBytes(body, data === undefined ? "error" : "data")
    const value = Buffer.from(String(signature.value), "base64")
    if (value.toString("base64") !== signature.value) throw new Error("the signature is not written as standard base64")
    if (content === undefined || !verify(null, bytes, key, value)) throw new Error("the signature is not valid")
    if (bytes.toString() !== canonical(content)) throw new Error("the content is not written as canonical JSON")
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
    } else if (byte === open || byte === openArray) depth++
    else if (depth === 1 && byte === colon) value = at + 1
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
