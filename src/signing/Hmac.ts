/** HMAC-SHA256, the signature of webhook deliveries. */
import { createHmac, createSecretKey, type KeyObject } from "node:crypto"

/** A prepared key. */
export type HmacKey = KeyObject

/** Prepares a key once: signing with raw bytes prepares the key each time and takes 40 µs instead of 5. */
export const hmacKey = (bytes: Uint8Array): HmacKey => createSecretKey(bytes)

/** The 32 bytes of the HMAC over the concatenated parts. */
export const hmacSha256 = (key: HmacKey, ...parts: ReadonlyArray<Uint8Array | string>): Buffer => {
  const hmac = createHmac("sha256", key)
  for (const part of parts) hmac.update(part)
  return hmac.digest()
}
