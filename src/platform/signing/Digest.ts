/**
 * Synchronous SHA-256, for looking up credentials, for digests and for redaction. `node:crypto` exists in Node and Deno. Its
 * one-shot `hash` takes 0.7 µs for a short text on Node, a hash object 1.0 µs.
 */
import { createHash, hash } from "node:crypto"

/** The 32 bytes of SHA-256 over bytes, or over a text's UTF-8. */
export const sha256 = (input: Uint8Array | string): Uint8Array => hash("sha256", input, "buffer")

/** SHA-256 as 64 lower-case hex digits. */
export const sha256Hex = (input: Uint8Array | string): string => hash("sha256", input, "hex")

/** Incremental SHA-256 over bytes, or the UTF-8 of texts. */
export interface Digest {
  update(input: Uint8Array | string): void
  /** An independent copy of the current state. */
  copy(): Digest
  /** 64 lower-case hex digits; ends the digest. */
  hex(): string
}

export const makeDigest = (state = createHash("sha256")): Digest => ({
  update: (input) => void state.update(input),
  copy: () => makeDigest(state.copy()),
  hex: () => state.digest("hex")
})

/**
 * Replaces a fingerprint, a host name or a container id in events. Equal values have equal results. This is not encryption: a
 * guessable value can be found by trial.
 */
export const redacted = (value: string): string => `sha256:${sha256Hex(value).slice(0, 12)}`
