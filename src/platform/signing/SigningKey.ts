/**
 * One Ed25519 key (RFC 8032), derived from its 32-byte seed. Its id is derived from the public half.
 *
 * Only the sealed seed is stored. Everything else is derived from it, so the private and the public half always match.
 */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto"
import { sha256Hex } from "./Digest.ts"

export const algorithm = "Ed25519"
export const seedLength = 32
const publicKeyLength = 32

export interface SigningKey {
  readonly kid: string
  /** The 32 raw bytes of RFC 8032. */
  readonly publicKey: Uint8Array
  readonly privateKey: KeyObject
}

/** The key of a 32-byte seed (the "secret key" of RFC 8032). */
export const fromSeed = (seed: Uint8Array): SigningKey => {
  if (seed.length !== seedLength) throw new RangeError(`An Ed25519 seed has ${seedLength} bytes`)
  const privateKey = createPrivateKey({ key: Buffer.concat([pkcs8Prefix, seed]), format: "der", type: "pkcs8" })
  const spki = createPublicKey(privateKey).export({ format: "der", type: "spki" })
  const publicKey = Uint8Array.from(spki.subarray(spkiPrefix.length))
  return { kid: kidOf(publicKey), publicKey, privateKey }
}

/** The id of a public key: the first 16 hex digits of its SHA-256. */
export const kidOf = (publicKey: Uint8Array): string => sha256Hex(publicKey).slice(0, 16)

/** The 64 signature bytes. Takes 21 µs of the calling thread on Node, so responses are signed through `Signer` instead. */
export const signSync = (key: SigningKey, bytes: Uint8Array): Uint8Array => sign(null, bytes, key.privateKey)

/** Whether these 64 bytes are the signature of `bytes` by the key with this raw 32-byte public half. */
export const isSignature = (publicKey: Uint8Array, bytes: Uint8Array, signature: Uint8Array): boolean =>
  publicKey.length === publicKeyLength &&
  verify(
    null,
    bytes,
    createPublicKey({ key: Buffer.concat([spkiPrefix, publicKey]), format: "der", type: "spki" }),
    signature
  )

// The DER prefixes of RFC 8410 before the 32 bytes of a private (PKCS #8) and of a public key (SubjectPublicKeyInfo).
const pkcs8Prefix = Buffer.from("302e020100300506032b657004220420", "hex")
const spkiPrefix = Buffer.from("302a300506032b6570032100", "hex")
