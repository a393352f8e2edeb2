/** The secrets that deliveries are signed with, generated or chosen by the caller. */
import { Effect, Result } from "effect"
import type { SecureRandom } from "effect/crypto"
import { Base64 } from "effect/encoding"

const marker = "whsec_"

/** `whsec_` and 32 random bytes in base64. */
export const generate = (random: SecureRandom.SecureRandom["Service"]): Effect.Effect<string> =>
  Effect.map(random.randomBytes(32), (bytes) => marker + Base64.encode(bytes))

/** What may be shown of a secret, so that its holder knows it again. */
export const prefixOf = (secret: string): string =>
  Array.from(secret)
    .slice(0, secret.startsWith(marker) ? marker.length + 4 : 4)
    .join("")

/** The bytes that X-Service-Signature is made with: the whole text. */
export const keyOf = (secret: string): Uint8Array => Buffer.from(secret)

/** The bytes that Standard Webhooks signs with: what `whsec_` introduces, decoded; of any other secret the whole text. */
export const standardKeyOf = (secret: string): Uint8Array => {
  const encoded = secret.startsWith(marker) ? secret.slice(marker.length) : ""
  const decoded = Base64.decode(encoded)
  return encoded !== "" && Result.isSuccess(decoded) ? decoded.success : keyOf(secret)
}
