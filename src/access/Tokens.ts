/**
 * API tokens and lease tokens: their generation, format and storage.
 *
 * An API token contains a checksum, so that a truncated or mistyped token is refused without a look-up, and a secret scanner can
 * recognise a leaked token. Only the SHA-256 is stored: 256 random bits need no slow hash.
 */
import { crc32 } from "node:zlib"
import { Effect } from "effect"
import { SecureRandom } from "effect/crypto"
import * as Base64Url from "effect/encoding/Base64Url"
import { sha256 } from "../platform/signing/Digest.ts"

const randomLength = 32

/**
 * `lsm_`, 32 bytes in base64url (43 characters), and CRC-32 over those 47 in base62 (6 characters). It is pure, so that test
 * vectors can be published.
 */
export const fromBytes = (bytes: Uint8Array): string => {
  const body = `lsm_${encode(bytes)}`
  return `${body}${checksum(body)}`
}

/** Encodes 32 bytes as a lease token. It has no checksum: only programs handle it, and it is valid for minutes. */
export const leaseFromBytes = (bytes: Uint8Array): string => `lease_${encode(bytes)}`

const encode = (bytes: Uint8Array): string => {
  if (bytes.length !== randomLength) throw new RangeError(`A token is made of ${randomLength} bytes`)
  return Base64Url.encode(bytes)
}

const randomBytes = SecureRandom.SecureRandom.use((random) => random.randomBytes(randomLength))

/** A new API token. */
export const generate = Effect.map(randomBytes, fromBytes)

/** A random text without a format: the token of a session or of a link. */
export const generateOpaque = Effect.map(randomBytes, encode)

/** A new lease token. */
export const generateLease = Effect.map(randomBytes, leaseFromBytes)

/** Whether a text has the shape of an API token, and the right checksum. */
export const isApiToken = (text: string): boolean =>
  shape.test(text) && checksum(text.slice(0, -checksumLength)) === text.slice(-checksumLength)

/** The SHA-256 over a token's text, 32 bytes. It is stored instead of the token, and used for look-ups. */
export const hash = (token: string): Uint8Array => sha256(token)

/** `key_prefix`: the first 12 characters, enough to recognise a token in a list (48 of its 256 random bits). */
export const prefix = (token: string): string => token.slice(0, 12)

const checksumLength = 6
const shape = /^lsm_[A-Za-z0-9_-]{43}[0-9A-Za-z]{6}$/
const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/** The CRC-32 of a text in base62, most significant digit first. 62^6 exceeds 2^32, so six digits are enough. */
const checksum = (text: string): string => {
  let remainder = crc32(text)
  let digits = ""
  for (let index = 0; index < checksumLength; index++) {
    digits = `${base62[remainder % 62]}${digits}`
    remainder = Math.floor(remainder / 62)
  }
  return digits
}
