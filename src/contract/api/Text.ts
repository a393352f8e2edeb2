/**
 * The text fields of requests, with their limits. NUL, which PostgreSQL cannot store, and lone surrogates, which UTF-8 cannot
 * encode, are refused here, so that no later layer receives them.
 */
import { type JsonSchema, Schema } from "effect"

export const isStorable = (text: string): boolean => !text.includes("\u0000") && text.isWellFormed()

/** Whether a text has at most `maximum` code points. A code point is one or two UTF-16 code units. */
const hasAtMost = (text: string, maximum: number): boolean =>
  text.length <= maximum || (text.length <= 2 * maximum && Array.from(text).length <= maximum)

/** Limits a text's length in code points, which is how JSON Schema counts. */
const isMaxCharacters = (maximum: number) =>
  Schema.makeFilter((text: string) => hasAtMost(text, maximum), {
    expected: `at most ${maximum} characters`,
    toJsonSchema: () => ({ maxLength: maximum }),
    arbitraryConstraint: { maxLength: maximum }
  })

/** Text of at least `minimum` code points. */
export const isMinCharacters = (minimum: number) =>
  Schema.makeFilter((text: string) => text.length >= minimum && !hasAtMost(text, minimum - 1), {
    expected: minimum === 1 ? "at least 1 character" : `at least ${minimum} characters`,
    toJsonSchema: () => ({ minLength: minimum }),
    arbitraryConstraint: { minLength: minimum }
  })

/** Adds to the OpenAPI document a rule that a later step of decoding checks with its own message. */
export const publishedAs = (schema: JsonSchema.JsonSchema) =>
  Schema.makeFilter(() => true, { toJsonSchema: () => schema })

/** Any text without NUL characters and lone surrogates, at most `length` characters (code points). */
export const Text = (length: number) =>
  Schema.String.check(
    isMaxCharacters(length),
    Schema.makeFilter((text) => isStorable(text) || "Expected text without NUL characters and lone surrogates", {
      // Without it the document lacks the annotations of the text, which belong to the last check.
      toJsonSchema: () => ({})
    })
  )

/** A display name: 1 to 255 characters. */
export const Name = Text(255).check(isMinCharacters(1))

/** A code chosen by the vendor: lower case, 1 to 64 characters, unique within its kind. */
export const Code = Schema.String.check(
  Schema.isPattern(/^[a-z0-9][a-z0-9._-]{0,63}$/u, {
    message: "Expected 1 to 64 of a-z, 0-9, '.', '_' and '-', beginning with a letter or digit"
  })
)

/** A nonce: 1 to 128 printable ASCII characters, spaces too. */
export const noncePattern = /^[\x20-\x7e]{1,128}$/u

/** A license key that a vendor chooses. */
export const licenseKeyPattern = /^[\x21-\x7e]{8,255}$/u

/** An id in a request. The look-up decides whether it exists, so any short text is accepted. */
export const Reference = Text(64).check(isMinCharacters(1))

/** An e-mail address: one @ with something on both sides; at most 254 characters (RFC 5321). */
export const Email = Text(254).check(
  Schema.isPattern(/^[^\s@]+@[^\s@]+$/u, { message: "Expected an e-mail address, as name@example.com" })
)
