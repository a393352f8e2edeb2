/**
 * Offline envelopes (docs/API.md, "Offline envelopes"): a signed payload that only the holder of the license key can
 * read. After decryption the client must still verify the signature inside. A fresh salt gives each envelope its own
 * key, so no nonce is ever used twice with one key.
 */
import { Context, Effect, Layer, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import type { Json } from "../../contract/api/CanonicalJson.ts"
import type { Signature } from "../../contract/api/Envelope.ts"
import * as SecretBox from "../../platform/signing/SecretBox.ts"
import { Signer } from "../../platform/signing/Signer.ts"
import type { SealedEnvelope } from "../model/Payloads.ts"

/** The HKDF info string. Another use of the license key needs another one. */
export const offlineInfo = "licensing-service/offline/v1"
export const saltLength = 32

export class OfflineEnvelope extends Context.Service<
  OfflineEnvelope,
  {
    /** Signs a payload and encrypts it with a key that is derived from the license key as issued. */
    seal(licenseKey: Redacted.Redacted<string>, data: Json): Effect.Effect<SealedEnvelope>
  }
>()("licensing/licensing/runtime/OfflineEnvelope") {
  static readonly layer = Layer.effect(
    OfflineEnvelope,
    Effect.gen(function* () {
      const signer = yield* Signer
      const random = yield* SecureRandom.SecureRandom

      const seal = Effect.fn("OfflineEnvelope.seal")(function* (licenseKey: Redacted.Redacted<string>, data: Json) {
        const signed = yield* signer.sign(data)
        const salt = yield* random.randomBytes(saltLength)
        const nonce = yield* random.randomBytes(SecretBox.nonceLength)
        return sealEnvelope({ licenseKey: Redacted.value(licenseKey), salt, nonce, ...signed })
      })

      return OfflineEnvelope.of({ seal })
    })
  )
}

/** Encrypts the parts of an envelope. It is pure, so that test vectors can be published. */
export const sealEnvelope = ({ licenseKey, salt, nonce, bytes, signature }: Parts): SealedEnvelope => {
  const { kid } = signature
  const key = SecretBox.deriveKey(licenseKey, salt, offlineInfo)
  const plaintext = `{"data":${bytes},"signature":${JSON.stringify(signature)}}`
  const ciphertext = SecretBox.encrypt(key, nonce, Buffer.from(plaintext), Buffer.from(kid))
  return { kid, salt: base64(salt), nonce: base64(nonce), ciphertext: base64(ciphertext) }
}

interface Parts {
  readonly licenseKey: string
  readonly salt: Uint8Array
  readonly nonce: Uint8Array
  /** The canonical text that the signature covers. */
  readonly bytes: string
  readonly signature: Signature
}

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64")
