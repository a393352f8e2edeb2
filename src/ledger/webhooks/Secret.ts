/** The secrets of endpoints, generated or chosen by the caller. */
import { Effect, Result } from "effect"
import type { SecureRandom } from "effect/crypto"
import * as Base64 from "effect/encoding/Base64"
import { hmacKey } from "../../platform/signing/Hmac.ts"
import type { SigningKeys } from "./Message.ts"

export const secretPrefix = "whsec_"
/** Random bytes of a generated secret. */
export const secretBytes = 32
/** How long deliveries are also signed with the previous secret. */
export const overlapMillis = 86_400_000

/** `whsec_` and random bytes in base64. */
export const generate = (random: SecureRandom.SecureRandom["Service"]): Effect.Effect<string> =>
  Effect.map(random.randomBytes(secretBytes), (bytes) => secretPrefix + Base64.encode(bytes))

/** The visible beginning of a secret, so that its owner can recognize it. */
export const prefixOf = (secret: string): string =>
  Array.from(secret)
    .slice(0, secret.startsWith(secretPrefix) ? secretPrefix.length + 4 : 4)
    .join("")

/** The HMAC keys of a secret: its text for X-Service-Signature, the decoded base64 of it for Standard Webhooks. */
export const keysOf = (secret: string): SigningKeys => {
  const whole = Buffer.from(secret)
  const encoded = secret.startsWith(secretPrefix) ? secret.slice(secretPrefix.length) : ""
  const decoded = Base64.decode(encoded)
  // A secret without the prefix, or without base64 after it, signs as its plain text.
  const standard = encoded !== "" && Result.isSuccess(decoded) ? decoded.success : whole
  return { own: hmacKey(whole), standard: hmacKey(standard) }
}
