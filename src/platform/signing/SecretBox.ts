/**
 * AES-256-GCM over bytes, and key derivation for it. Only this file uses the cipher. The caller chooses the key and the nonce (never
 * the same pair twice) and the layout of the parts: `MasterKey` for stored secrets, the offline envelope for clients.
 */
import { createCipheriv, createDecipheriv, hkdfSync } from "node:crypto"
import { Option } from "effect"

export const keyLength = 32
export const nonceLength = 12
export const tagLength = 16

/** Derives a key from a shared secret: HKDF with SHA-256 (RFC 5869). */
export const deriveKey = (secret: string, salt: Uint8Array, info: string): Uint8Array =>
  new Uint8Array(hkdfSync("sha256", secret, salt, info, keyLength))

/** The ciphertext with the 16-byte tag appended. */
export const encrypt = (key: Uint8Array, nonce: Uint8Array, plaintext: Uint8Array, aad: Uint8Array): Uint8Array => {
  const cipher = createCipheriv("aes-256-gcm", key, nonce, { authTagLength: tagLength }).setAAD(aad)
  return Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()])
}

/** The plaintext, or None if key, nonce, bytes or additional data differ from those of the encryption. */
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
  // `final` throws if the tag does not match. No byte of the plaintext is returned before that check.
  return Option.liftThrowable(() => Buffer.concat([plaintext, decipher.final()]))()
}
