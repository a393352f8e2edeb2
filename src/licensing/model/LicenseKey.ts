/**
 * License keys. A generated key is `LK-` and six groups of five Crockford base32 characters: 28 random ones (140 bits)
 * and 2 check characters. A vendor key is any other text that the vendor chose for a license.
 *
 * The check is a Reed-Solomon code over GF(32): two keys differ in at least three characters. So one or two wrong
 * characters and a swap of two characters are always detected, other errors with a probability of 1023/1024. Mistyped
 * and guessed keys are refused by table look-ups alone, without hashing or storage access.
 */
import { Effect, Option, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { licenseKeyPattern } from "../../contract/api/Text.ts"
import { sha256, sha256Hex } from "../../platform/signing/Digest.ts"

/** A license key as issued. A generated key is in canonical form: upper case, with dashes and a correct check. */
export const LicenseKey = Schema.String.pipe(Schema.brand("LicenseKey"))
export type LicenseKey = typeof LicenseKey.Type

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
const randomLength = 28
const length = 30
const groupLength = 5

/** Makes a key of the low 5 bits of 28 bytes, and the check. It is pure, so that test vectors can be published. */
export const fromBytes = (bytes: Uint8Array): LicenseKey => {
  if (bytes.length !== randomLength) throw new RangeError(`A license key is made of ${randomLength} bytes`)
  const symbols = new Uint8Array(length)
  for (let index = 0; index < randomLength; index++) symbols[index] = (bytes[index] as number) & 31
  complete(symbols)
  return format(symbols)
}

/** A new key with 140 random bits. */
export const generate: Effect.Effect<LicenseKey, never, SecureRandom.SecureRandom> = Effect.flatMap(
  SecureRandom.SecureRandom,
  (random) => Effect.map(random.randomBytes(randomLength), fromBytes)
)

/**
 * The canonical form of a generated key. Case, dashes and spaces do not matter; O reads as 0, I and L as 1 (in the
 * prefix too). None if the shape or the check is wrong. Takes less than a microsecond.
 */
export const parse = (text: string): Option.Option<LicenseKey> =>
  readSymbols(text) && isCodeword(parsed) ? Option.some(format(parsed)) : Option.none()

/** Whether a text can be a vendor key. Text in the shape of a generated key cannot, even with a wrong check. */
export const isVendorKey = (text: string): text is LicenseKey => licenseKeyPattern.test(text) && !readSymbols(text)

/** The key of either kind, as issued; None if no license can have it. */
export const read = (text: string): Option.Option<LicenseKey> =>
  Option.orElse(parse(text), () => (isVendorKey(text) ? Option.some(text) : Option.none()))

/** The stored values of a key. */
export const stored = (key: LicenseKey) => ({
  key_hash: hashHex(key),
  license_key_prefix: prefix(key),
  license_key_last4: last4(key)
})

/** Reads the symbols of a text into `parsed`. Returns whether it has the shape of a generated key, with any check. */
const readSymbols = (text: string): boolean => {
  if (text.length > textMax) return false
  let count = -prefixSymbols.length
  for (let index = 0; index < text.length; index++) {
    const symbol = values[text.charCodeAt(index)] ?? invalid
    if (symbol === separator) continue
    if (symbol === invalid || count === length) return false
    if (count >= 0) parsed[count] = symbol
    else if (symbol !== prefixSymbols[count + prefixSymbols.length]) return false
    count++
  }
  return count === length
}

/** The stored form of a key: SHA-256 over the key as issued, 32 bytes. */
export const hash = (key: LicenseKey): Uint8Array => sha256(key)

/** The hash as 64 lower-case hex digits, for use as a key in memory. */
export const hashHex = (key: LicenseKey): string => sha256Hex(key)

/** How many characters of a key may be shown in all: of a vendor key, which may be short, at most a quarter. */
const shownMax = (key: LicenseKey): number => Math.floor(key.length / (isVendorKey(key) ? 4 : 1))

/** `license_key_prefix`: the first eight characters, of a generated key "LK-" and five more; fewer of a vendor key. */
export const prefix = (key: LicenseKey): string => key.slice(0, Math.min(8, Math.max(0, shownMax(key) - 4)))

/** `license_key_last4`: the last four characters; fewer of a vendor key of less than sixteen. */
export const last4 = (key: LicenseKey): string => key.slice(-Math.min(4, shownMax(key)))

const format = (symbols: Uint8Array): LicenseKey => {
  let out = "LK"
  for (let index = 0; index < length; index++) {
    if (index % groupLength === 0) out += "-"
    out += alphabet[symbols[index] as number]
  }
  return out as LicenseKey
}

// Parsing: one table from character code to symbol. An issued key has up to 38 characters; 64 leave room for spaces.
const textMax = 64
const separator = 32
const invalid = 33
const prefixSymbols = [1, alphabet.indexOf("K")]
const parsed = new Uint8Array(length)

const values = new Uint8Array(128).fill(invalid)
for (const [index, character] of Array.from(alphabet).entries()) {
  values[character.charCodeAt(0)] = index
  values[character.toLowerCase().charCodeAt(0)] = index
}
for (const [alias, symbol] of [
  ["Oo", 0],
  ["IiLl", 1],
  ["- ", separator]
] as const) {
  for (const character of alias) values[character.charCodeAt(0)] = symbol
}

// The code: symbols are elements of GF(32) = GF(2)[x]/(x^5 + x^2 + 1) with the generator a = x. A key c of 30 symbols
// is correct if the sum of all c_i is 1 and the sum of c_i * a^(29-i) is 0. An error in one or two places changes at
// least one of the sums, because the 30 weights are different and none is zero. The sum is 1, not 0, so that a run of
// one character is not a key.
const timesA = (symbol: number): number => ((symbol << 1) & 31) ^ (symbol & 16 ? 5 : 0)

const isCodeword = (symbols: Uint8Array): boolean => {
  let sum = 1
  let weighted = 0
  for (let index = 0; index < length; index++) {
    const symbol = symbols[index] as number
    sum ^= symbol
    weighted = timesA(weighted) ^ symbol
  }
  return sum === 0 && weighted === 0
}

// The check symbols p, q solve both sums: p + q = s and a*p + q = w, hence (a + 1) * p = s + w and q = s + p.
// Dividing by a + 1 = a^18 is multiplying by a^13, since a^31 = 1.
const complete = (symbols: Uint8Array): void => {
  let sum = 1
  let weighted = 0
  for (let index = 0; index < randomLength; index++) {
    const symbol = symbols[index] as number
    sum ^= symbol
    weighted = timesA(weighted) ^ symbol
  }
  let check = sum ^ timesA(timesA(weighted))
  for (let power = 0; power < 13; power++) check = timesA(check)
  symbols[randomLength] = check
  symbols[randomLength + 1] = sum ^ check
}
