/**
 * The text fields of requests, with their limits. PostgreSQL cannot store NUL, and JSON text may contain lone surrogates, which
 * UTF-8 cannot encode: both are refused here, once, so that no later layer receives them.
 */
import { Schema } from "effect"

export const isStorable = (text: string): boolean => !text.includes("\u0000") && text.isWellFormed()

/** Any text without NUL characters and lone surrogates, at most `length` UTF-16 code units. */
export const Text = (length: number) =>
  Schema.String.check(
    Schema.isMaxLength(length),
    Schema.makeFilter((text) => isStorable(text) || "Expected text without NUL characters and lone surrogates")
  )

/** A display name: 1 to 255 characters. */
export const Name = Text(255).check(Schema.isMinLength(1))

/** A code chosen by the vendor: lower case, 1 to 64 characters, unique within its kind. */
export const Code = Schema.String.check(
  Schema.isPattern(/^[a-z0-9][a-z0-9._-]{0,63}$/u, {
    message: "Expected 1 to 64 of a-z, 0-9, '.', '_' and '-', beginning with a letter or digit"
  })
)

/** A nonce: 1 to 128 printable ASCII characters, spaces too. */
export const noncePattern = /^[\x20-\x7e]{1,128}$/u

/** An id in a request. The look-up decides whether it exists, so any short text is accepted. */
export const Reference = Text(64).check(Schema.isMinLength(1))

/** An e-mail address: one @ with something on both sides; at most 254 characters (RFC 5321). */
export const Email = Text(254).check(
  Schema.isPattern(/^[^\s@]+@[^\s@]+$/u, { message: "Expected an e-mail address, as name@example.com" })
)
