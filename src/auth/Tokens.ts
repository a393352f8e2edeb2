/**
 * API tokens and lease tokens: how they are made, recognised, shown and stored.
 *
 * An API token carries a checksum, so that a truncated or mistyped one is refused without touching storage and a scanner
 * can tell a leaked one from chance. Only SHA-256 is ever stored: 256 random bits need no slow hash.
 */
import { Effect, Option, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { Base64Url } from "effect/encoding"
import { sha256 } from "../signing/Digest.ts"

/** `lsm_`, 32 random bytes in base64url (43 characters), and CRC-32 over those 47 in base62 (6 characters). */
export const ApiToken = Schema.String.pipe(Schema.brand("ApiToken"))
export type ApiToken = typeof ApiToken.Type

/** `lease_` and 32 random bytes in base64url. No checksum: a lease token is held by programs and lives for minutes. */
export const LeaseToken = Schema.String.pipe(Schema.brand("LeaseToken"))
export type LeaseToken = typeof LeaseToken.Type

const randomLength = 32

/** The API token that 32 bytes spell. Pure, for `generate` and for published test vectors. */
export const fromBytes = (bytes: Uint8Array): ApiToken => {
  const body = `lsm_${spelled(bytes)}`
  return `${body}${checksum(body)}` as ApiToken
}

/** The lease token that 32 bytes spell. */
export const leaseFromBytes = (bytes: Uint8Array): LeaseToken => `lease_${spelled(bytes)}` as LeaseToken

const spelled = (bytes: Uint8Array): string => {
  if (bytes.length !== randomLength) throw new RangeError(`A token is made of ${randomLength} bytes`)
  return Base64Url.encode(bytes)
}

/** A new API token. */
export const generate: Effect.Effect<ApiToken, never, SecureRandom.SecureRandom> = Effect.flatMap(
  SecureRandom.SecureRandom,
  (random) => Effect.map(random.randomBytes(randomLength), fromBytes)
)

/** A new lease token. */
export const generateLease: Effect.Effect<LeaseToken, never, SecureRandom.SecureRandom> = Effect.flatMap(
  SecureRandom.SecureRandom,
  (random) => Effect.map(random.randomBytes(randomLength), leaseFromBytes)
)

/** The text as an API token, or None where its shape or checksum is wrong: a malformed token, known without storage. */
export const parse = (text: string): Option.Option<ApiToken> =>
  shape.test(text) && checksum(text.slice(0, -checksumLength)) === text.slice(-checksumLength)
    ? Option.some(text as ApiToken)
    : Option.none()

/** What is stored in place of a token and what it is looked up by: SHA-256 over its text, 32 bytes. */
export const hash = (token: ApiToken | LeaseToken): Uint8Array => sha256(token)

/** `key_prefix`: the first 12 characters, enough to recognise a token in a list (48 of its 256 random bits). */
export const prefix = (token: ApiToken): string => token.slice(0, 12)

const checksumLength = 6
const shape = /^lsm_[A-Za-z0-9_-]{43}[0-9A-Za-z]{6}$/
const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/** CRC-32 over an ASCII text, most significant base62 digit first. 62^6 exceeds 2^32, so six digits always do. */
const checksum = (text: string): string => {
  let rest = crc32(text)
  let digits = ""
  for (let place = 0; place < checksumLength; place++) {
    digits = `${base62[rest % 62]}${digits}`
    rest = Math.floor(rest / 62)
  }
  return digits
}

/** CRC-32 as in gzip and zip (reflected polynomial 0xEDB88320). */
const crc32 = (text: string): number => {
  let crc = 0xffffffff
  for (let index = 0; index < text.length; index++) {
    crc = (crc >>> 8) ^ (crcTable[(crc ^ text.charCodeAt(index)) & 0xff] as number)
  }
  return (crc ^ 0xffffffff) >>> 0
}

const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  return crc
})
