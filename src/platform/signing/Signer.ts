/**
 * Signs responses with the active key.
 *
 * A payload is canonicalized and signed once, and the response contains exactly that text. A client may verify the raw bytes, or
 * parse and canonicalize again: both give the same result.
 */
import { Context, Effect, Exit, Layer } from "effect"
import { canonicalize, type Json } from "../../contract/api/CanonicalJson.ts"
import type { Signature } from "../../contract/api/Envelope.ts"
import { KeyRing } from "./KeyRing.ts"
import { algorithm, signSync } from "./SigningKey.ts"
import { makeSigningThread, type Sign } from "./SigningThread.ts"

/** The canonical JSON of a payload and the signature over its UTF-8. Send `bytes` unchanged. */
export interface Signed {
  readonly bytes: string
  readonly signature: Signature
}

/** A signature in progress: calls back with it, at once if it is complete. */
export type PendingSignature = (onSignature: (signed: Exit.Exit<Signed>) => void) => void

/** Waits for a signature. */
export const awaitSignature = (pending: PendingSignature): Effect.Effect<Signed> =>
  Effect.callback((resume) => pending(resume))

export class Signer extends Context.Service<
  Signer,
  {
    sign(data: Json): Effect.Effect<Signed>
    /** Starts signing at once, so that the caller can do other work until the signature is complete. */
    begin(data: Json): PendingSignature
  }
>()("licensing/platform/signing/Signer") {
  static readonly layer = Layer.effect(
    Signer,
    Effect.gen(function* () {
      const keyRing = yield* KeyRing
      const signText = "Deno" in globalThis ? signOnThisThread : yield* makeSigningThread()

      const begin = (data: Json): PendingSignature => {
        const key = keyRing.current()
        const bytes = canonicalize(data)
        const pending = signText(key, bytes)
        return (onSignature) =>
          pending((exit) =>
            onSignature(Exit.map(exit, (value) => ({ bytes, signature: { alg: algorithm, kid: key.kid, value } })))
          )
      }
      return Signer.of({ begin, sign: (data) => Effect.suspend(() => awaitSignature(begin(data))) })
    })
  )
}

// On Deno the callback form takes 48 µs, the synchronous form 13 µs (measured for one signature over 500 bytes).
const signOnThisThread: Sign = (key, text) => {
  const signature = Buffer.from(signSync(key, Buffer.from(text))).toString("base64")
  return (onSignature) => onSignature(Exit.succeed(signature))
}
