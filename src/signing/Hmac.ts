/** HMAC-SHA256: what webhook deliveries are signed with. */
import { createHmac } from "node:crypto"

/** The 32 bytes over the parts, one after the other. */
export const hmacSha256 = (key: Uint8Array, ...parts: ReadonlyArray<Uint8Array | string>): Buffer => {
  const hmac = createHmac("sha256", key)
  for (const part of parts) hmac.update(part)
  return hmac.digest()
}
