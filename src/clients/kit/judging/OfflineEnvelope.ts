/** Opens offline envelopes. What is in one must be judged like any response. */

import { fromBase64, membersOf, objectOf, textOf } from "../texts/ResponseText.ts"
import { Distrusted } from "./Judge.ts"

const info = new TextEncoder().encode("licensing-service/offline/v1")

/** The text in an envelope, which is the JSON of kid, salt, nonce and ciphertext. The license key is the one as issued. */
export const openEnvelope = async (licenseKey: string, envelope: string): Promise<string> => {
  const plaintext = await decrypted(licenseKey, envelope).catch(() => {
    throw new Distrusted("envelope")
  })
  try {
    return textOf(new Uint8Array(plaintext))
  } catch {
    throw new Distrusted("signature")
  }
}

const decrypted = async (licenseKey: string, envelope: string): Promise<ArrayBuffer> => {
  membersOf(envelope)
  const { ciphertext, kid, nonce, salt } = objectOf(envelope)
  const [iv, saltBytes] = [fromBase64(nonce), fromBase64(salt)]
  if (typeof kid !== "string" || iv.length !== 12 || saltBytes.length === 0) throw new Error("a part is missing")
  const utf8 = new TextEncoder()
  const secret = await crypto.subtle.importKey("raw", utf8.encode(licenseKey), "HKDF", false, ["deriveKey"])
  const derivation = { name: "HKDF", hash: "SHA-256", salt: saltBytes, info }
  const key = await crypto.subtle.deriveKey(derivation, secret, { name: "AES-GCM", length: 256 }, false, ["decrypt"])
  const algorithm = { name: "AES-GCM", iv, additionalData: utf8.encode(kid), tagLength: 128 }
  return crypto.subtle.decrypt(algorithm, key, fromBase64(ciphertext))
}
