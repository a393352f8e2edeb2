/**
 * AES-256-GCM over bytes, and keys made for it: the one place that talks to the cipher. Who chooses the key and the nonce (never
 * twice the same pair) and how the parts are laid out is the caller's: `MasterKey` for what is stored, the offline envelope for
 * clients.
 */
import { createCipheriv, createDecipheriv, hkdfSync } from "node:crypto"
import { Option } from "effect"

export const keyLength = 32
export const nonceLength = 12
export const tagLength = 16

/** A key that both sides can make of a secret that they share: HKDF with SHA-256 (RFC 5869). */
export const deriveKey = (secret: string, salt: Uint8Array, info: string): Uint8Array =>
  new Uint8Array(hkdfSync("sha256", secret, salt, info, keyLength))

/** The ciphertext with the 16-byte tag appended. */
export const encrypt = (key: Uint8Array, nonce: Uint8Array, plaintext: Uint8Array, aad: Uint8Array): Uint8Array => {
  const cipher = createCipheriv("aes-256-gcm", key, nonce, { authTagLength: tagLength }).setAAD(aad)
  return Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()])
}

/** The plaintext, or None where key, nonce, bytes or the additional data are not those of the encryption. */
export const decrypt = (
  key: Uint8Array,
  nonce: Uint8Array,
  sealed: Uint8Array,
  aad: Uint8Array
): Option.Option<Uint8Array> => {
  if (sealed.length < tagLength) return Option.none()
  const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: tagLength })
    .setAAD(aad)
    .setAuthTag(sealed.subarray(-tagLength))
  const plaintext = decipher.update(sealed.subarray(0, -tagLength))
  // `final` throws where the tag does not fit; until it has returned, no byte of the plaintext is shown to anyone.
  return Option.liftThrowable(() => Buffer.concat([plaintext, decipher.final()]))()
}
