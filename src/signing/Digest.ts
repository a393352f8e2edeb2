/**
 * SHA-256, synchronously: what credentials are looked up by, what digests and redactions show.
 *
 * Only this folder touches `node:crypto`, which Node and Deno both carry; `hash` is its one-shot form (0.7 µs for a short
 * text on Node, against 1.0 µs through a hash object).
 */
import { createHash, hash } from "node:crypto"

/** The 32 bytes of SHA-256 over bytes, or over a text's UTF-8. */
export const sha256 = (input: Uint8Array | string): Uint8Array => hash("sha256", input, "buffer")

/** SHA-256 as 64 lower-case hex digits. */
export const sha256Hex = (input: Uint8Array | string): string => hash("sha256", input, "hex")

/** SHA-256 over bytes, or the UTF-8 of texts, that come piece by piece. */
export interface Digest {
  update(input: Uint8Array | string): void
  /** Another one that goes on from here by itself. */
  copy(): Digest
  /** 64 lower-case hex digits; the last thing that is asked of it. */
  hex(): string
}

export const makeDigest = (state = createHash("sha256")): Digest => ({
  update: (input) => void state.update(input),
  copy: () => makeDigest(state.copy()),
  hex: () => state.digest("hex")
})

/**
 * What events show in place of a fingerprint, a host name or a container id: equal values stay recognisable as equal, the
 * value itself stays away. A guessable value can still be guessed: this hides, it does not encrypt.
 */
export const redacted = (value: string): string => `sha256:${sha256Hex(value).slice(0, 12)}`
