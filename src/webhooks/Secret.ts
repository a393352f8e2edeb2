/** The secrets that deliveries are signed with, generated or chosen by the caller. */
import { Effect, Result } from "effect"
import type { SecureRandom } from "effect/crypto"
import { Base64 } from "effect/encoding"
import { hmacKey } from "../signing/Hmac.ts"
import type { SigningKeys } from "./Message.ts"

const marker = "whsec_"

/** `whsec_` and 32 random bytes in base64. */
export const generate = (random: SecureRandom.SecureRandom["Service"]): Effect.Effect<string> =>
  Effect.map(random.randomBytes(32), (bytes) => marker + Base64.encode(bytes))

/** What may be shown of a secret, so that its holder knows it again. */
export const prefixOf = (secret: string): string =>
  Array.from(secret)
    .slice(0, secret.startsWith(marker) ? marker.length + 4 : 4)
    .join("")

/** What a secret signs with. X-Service-Signature takes its whole text; Standard Webhooks what `whsec_` introduces, decoded. */
export const keysOf = (secret: string): SigningKeys => {
  const whole = Buffer.from(secret)
  const encoded = secret.startsWith(marker) ? secret.slice(marker.length) : ""
  const decoded = Base64.decode(encoded)
  // What is no base64 after the marker, or has no marker, signs as the text that it is.
  const standard = encoded !== "" && Result.isSuccess(decoded) ? decoded.success : whole
  return { own: hmacKey(whole), standard: hmacKey(standard) }
}
