import { crc32 } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SecureRandom } from "effect/crypto"
import * as fc from "fast-check"
import * as Tokens from "../../src/access/Tokens.ts"
import { sha256 } from "../../src/platform/signing/Digest.ts"

const tokens = fc.uint8Array({ minLength: 32, maxLength: 32 }).map(Tokens.fromBytes)
const counting = SecureRandom.make((size) => Uint8Array.from({ length: size }, (_, index) => index))
const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const base62 = (value: number) =>
  Array.from({ length: 6 }, (_, index) => digits[Math.floor(value / 62 ** (5 - index)) % 62]).join("")
const isToken = Tokens.isApiToken

describe("API tokens", () => {
  it.effect("are lsm_, 32 random bytes in base64url and six base62 digits of CRC-32", () =>
    Effect.gen(function* () {
      const token = yield* Effect.provideService(Tokens.generate, SecureRandom.SecureRandom, counting)
      const body = "lsm_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
      assert.strictEqual(token.slice(0, -6), body)
      assert.strictEqual(token.slice(-6), base62(crc32(body)))
    })
  )

  it("are recognised", () => {
    fc.assert(fc.property(tokens, (token) => assert.isTrue(Tokens.isApiToken(token))))
  })

  it("are refused with any one character changed, and with any two adjacent characters swapped", () => {
    const characters = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
    for (const token of fc.sample(tokens, { seed: 3, numRuns: 5 })) {
      for (let index = 0; index < token.length; index++) {
        for (const character of characters) {
          if (token[index] !== character)
            assert.isFalse(isToken(token.slice(0, index) + character + token.slice(index + 1)))
        }
        const [one = "", other = ""] = token.slice(index, index + 2)
        if (one !== other && other !== "") {
          assert.isFalse(isToken(token.slice(0, index) + other + one + token.slice(index + 2)))
        }
      }
    }
  })

  it("are refused in another format", () => {
    const [token] = fc.sample(tokens, { seed: 3, numRuns: 1 }) as unknown as [string]
    for (const text of [
      "",
      "lsm_",
      token.slice(0, -1),
      `${token}0`,
      ` ${token}`,
      `${token}\n`,
      token.toUpperCase(),
      `key_${token.slice(4)}`
    ]) {
      assert.isFalse(Tokens.isApiToken(text), text)
    }
  })

  it("are refused in another format even if the checksum is correct", () => {
    const bodies = [
      "",
      "lsm_",
      `lsm_${"A".repeat(42)}`,
      `lsm_${"A".repeat(44)}`,
      `key_${"A".repeat(43)}`,
      `lsm_${"A".repeat(42)}=`
    ]
    for (const body of bodies) assert.isFalse(Tokens.isApiToken(`${body}${base62(crc32(body))}`), body)
    const body = `lsm_${"A".repeat(43)}`
    assert.isTrue(isToken(`${body}${base62(crc32(body))}`))
  })

  it("expose their first 12 characters and are stored as SHA-256", () => {
    const token = Tokens.fromBytes(new Uint8Array(32))
    assert.strictEqual(Tokens.prefix(token), "lsm_AAAAAAAA")
    assert.deepStrictEqual(Tokens.hash(token), sha256(token))
    assert.throws(() => Tokens.fromBytes(new Uint8Array(16)), RangeError)
  })
})

describe("lease tokens", () => {
  it.effect("are lease_ and 32 random bytes in base64url, stored as SHA-256", () =>
    Effect.gen(function* () {
      const token = yield* Effect.provideService(Tokens.generateLease, SecureRandom.SecureRandom, counting)
      assert.strictEqual(token, "lease_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8")
      assert.deepStrictEqual(Tokens.hash(token), sha256(token))
    })
  )
})
