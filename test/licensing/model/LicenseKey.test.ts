import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import * as fc from "fast-check"
import * as LicenseKey from "../../../src/licensing/model/LicenseKey.ts"
import { sha256 } from "../../../src/platform/signing/Digest.ts"

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
const keys = fc.uint8Array({ minLength: 28, maxLength: 28 }).map(LicenseKey.fromBytes)
const body = (key: string) => key.slice(2).replaceAll("-", "")
const isKey = (text: string) => Option.isSome(LicenseKey.parse(text))
const samples = fc.sample(keys, { seed: 7, numRuns: 20 })

describe("LicenseKey", () => {
  it.effect("is generated from 28 random bytes, five bits of each", () =>
    Effect.gen(function* () {
      const requestedSizes: Array<number> = []
      const random = SecureRandom.make((size) => {
        requestedSizes.push(size)
        return Uint8Array.from({ length: size }, (_, index) => index + 224)
      })
      const key = yield* Effect.provideService(LicenseKey.generate, SecureRandom.SecureRandom, random)
      assert.match(key, /^LK-01234-56789-ABCDE-FGHJK-MNPQR-STV[0-9A-HJKMNP-TV-Z]{2}$/)
      assert.deepStrictEqual(requestedSizes, [28])
    })
  )

  it("refuses fewer bytes", () => {
    assert.throws(() => LicenseKey.fromBytes(new Uint8Array(27)), RangeError)
  })

  it("parses its own form", () => {
    fc.assert(fc.property(keys, (key) => assert.deepStrictEqual(LicenseKey.parse(key), Option.some(key))))
  })

  it("accepts any case, any dashes and spaces, and the letters that Crockford reads as digits", () => {
    const aliases: Record<string, string> = { "0": "0Oo", "1": "1IiLl", L: "LlIi1" }
    const written = keys.chain((key) =>
      fc.tuple(
        fc.constant(key),
        fc.tuple(
          ...Array.from(`LK${body(key)}`, (character) =>
            fc.tuple(
              fc.constantFrom(...(aliases[character] ?? character + character.toLowerCase())),
              fc.constantFrom("", "", "", "-", " ")
            )
          )
        )
      )
    )
    fc.assert(
      fc.property(written, ([key, characters]) => {
        const text = characters.map(([character, separator]) => character + separator).join("")
        assert.deepStrictEqual(LicenseKey.parse(text), Option.some(key))
      })
    )
  })

  it("detects every wrong character, at every position and for every character", () => {
    for (const key of samples) {
      for (let position = 0; position < 30; position++) {
        for (const character of alphabet) {
          const symbols = Array.from(body(key))
          if (symbols[position] === character) continue
          symbols[position] = character
          assert.isFalse(isKey(`LK${symbols.join("")}`), `${key} with ${character} at ${position}`)
        }
      }
    }
  })

  it("detects every swap of two different characters, adjacent or not", () => {
    for (const key of samples) {
      for (let one = 0; one < 30; one++) {
        for (let other = one + 1; other < 30; other++) {
          const symbols = Array.from(body(key))
          if (symbols[one] === symbols[other]) continue
          ;[symbols[one], symbols[other]] = [symbols[other] as string, symbols[one] as string]
          assert.isFalse(isKey(`LK${symbols.join("")}`), `${key} with ${one} and ${other} swapped`)
        }
      }
    }
  })

  // The code is linear: an error is missed exactly when its own two sums are zero, for every key. So all 418,035 errors
  // of two characters, tested on one key, cover every key.
  it("detects every pair of wrong characters", () => {
    const symbols = Array.from(body(samples[0] as string), (character) => alphabet.indexOf(character))
    const text = (changed: ReadonlyArray<number>) => `LK${changed.map((symbol) => alphabet[symbol]).join("")}`
    let tried = 0
    for (let one = 0; one < 30; one++) {
      for (let other = one + 1; other < 30; other++) {
        for (let oneError = 1; oneError < 32; oneError++) {
          for (let otherError = 1; otherError < 32; otherError++) {
            const changed = symbols.slice()
            changed[one] = (changed[one] as number) ^ oneError
            changed[other] = (changed[other] as number) ^ otherError
            if (isKey(text(changed))) assert.fail(`${text(changed)} was read`)
            tried++
          }
        }
      }
    }
    assert.strictEqual(tried, 435 * 31 * 31)
  })

  it("accepts one in 1,024 random texts", () => {
    const random = fc.sample(fc.array(fc.constantFrom(...alphabet), { minLength: 30, maxLength: 30 }), {
      seed: 11,
      numRuns: 50_000
    })
    const accepted = random.filter((symbols) => isKey(`LK${symbols.join("")}`)).length
    assert.isAbove(accepted, 20)
    assert.isBelow(accepted, 85)
  })

  it.each([
    ["empty", ""],
    ["only the prefix", "LK-"],
    ["without the prefix", body(samples[0] as string)],
    ["another prefix", `KL-${body(samples[0] as string)}`],
    ["one character short", (samples[0] as string).slice(0, -1)],
    ["one character more", `${samples[0]}0`],
    ["a letter that the alphabet lacks", `LK-U${body(samples[0] as string).slice(1)}`],
    ["a character beyond ASCII", `LK-\u{1d7d8}${body(samples[0] as string).slice(1)}`],
    ["another separator", (samples[0] as string).replaceAll("-", "_")],
    ["very long", `${samples[0]}${" ".repeat(60)}`],
    ["thirty zeros", `LK${"0".repeat(30)}`]
  ])("refuses a text that is not a key: %s", (_, text) => {
    assert.deepStrictEqual(LicenseKey.parse(text), Option.none())
  })

  it("never accepts a repetition of one character as a key", () => {
    for (const character of alphabet) assert.isFalse(isKey(`LK${character.repeat(30)}`))
  })

  it("exposes its first group and last four characters, and is stored as SHA-256 of the canonical form", () => {
    const key = LicenseKey.fromBytes(Uint8Array.from({ length: 28 }, (_, index) => index))
    assert.strictEqual(LicenseKey.prefix(key), "LK-01234")
    assert.strictEqual(LicenseKey.last4(key), key.slice(-4))
    assert.deepStrictEqual(LicenseKey.hash(key), sha256(key))
    assert.strictEqual(LicenseKey.hashHex(key), Buffer.from(sha256(key)).toString("hex"))
  })
})
