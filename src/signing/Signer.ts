/**
 * Signs answers with the active key.
 *
 * A text is canonicalized and signed once, and exactly that text stands in the answer: a client may verify the raw bytes,
 * or parse and canonicalize again, and both agree.
 */
import { sign as nodeSign } from "node:crypto"
import { Context, Effect, Layer } from "effect"
import { canonicalize, type Json } from "../api/CanonicalJson.ts"
import type { Signature as SignatureSchema } from "../api/Envelope.ts"
import { KeyRing } from "./KeyRing.ts"
import { algorithm, type SigningKey, signSync } from "./SigningKey.ts"

/** `{alg, kid, value}`, the envelope's signature; `value` is base64 of the 64 signature bytes. */
export type Signature = typeof SignatureSchema.Type

export class Signer extends Context.Service<
  Signer,
  {
    /** Signs bytes as they are. */
    sign(bytes: Uint8Array): Effect.Effect<Signature>
    /** The canonical JSON of `data` and the signature over its UTF-8. Send `bytes` unchanged. */
    signData(data: Json): Effect.Effect<{ readonly bytes: string; readonly signature: Signature }>
  }
>()("licensing/signing/Signer") {
  static readonly layer = Layer.effect(
    Signer,
    Effect.gen(function* () {
      const keyRing = yield* KeyRing

      // Untraced: every runtime answer passes here, and a span costs 10 µs of the main thread where all the rest costs 9.
      const sign = Effect.fnUntraced(function* (bytes: Uint8Array) {
        const key = yield* keyRing.current
        const value = yield* signature(key, bytes)
        return { alg: algorithm, kid: key.kid, value: Buffer.from(value).toString("base64") } as const
      })

      const signData = Effect.fnUntraced(function* (data: Json) {
        const bytes = canonicalize(data)
        return { bytes, signature: yield* sign(Buffer.from(bytes)) }
      })

      return Signer.of({ sign, signData })
    })
  )
}

// Node signs on its thread pool: the callback form keeps 5 µs of the main thread busy, the synchronous one 21 µs. Deno's
// callback form costs 48 µs of latency at no gain over its synchronous 13 µs. (One signature over 500 bytes, measured.)
const signature: (key: SigningKey, bytes: Uint8Array) => Effect.Effect<Uint8Array> =
  "Deno" in globalThis
    ? (key, bytes) => Effect.sync(() => signSync(key, bytes))
    : (key, bytes) =>
        Effect.callback((resume) => {
          nodeSign(null, bytes, key.privateKey, (error, value) =>
            resume(error === null ? Effect.succeed(value) : Effect.die(error))
          )
        })
