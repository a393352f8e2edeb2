import { assert, describe, it } from "@effect/vitest"
import { Option } from "effect"
import * as SecretBox from "../../../src/platform/signing/SecretBox.ts"

const bytes = (hex: string) => Uint8Array.from(Buffer.from(hex, "hex"))
const hex = (value: Uint8Array) => Buffer.from(value).toString("hex")

// Test case 16 of the GCM specification (McGrew and Viega): AES-256 with additional data.
const key = bytes("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308")
const nonce = bytes("cafebabefacedbaddecaf888")
const aad = bytes("feedfacedeadbeeffeedfacedeadbeefabaddad2")
const plaintext = bytes(
  "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
)
const sealed = bytes(
  "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662" +
    "76fc6ece0f4e1768cddf8853bb2d551b"
)

describe("SecretBox", () => {
  it("encrypts and decrypts the specification's test case", () => {
    assert.strictEqual(hex(SecretBox.encrypt(key, nonce, plaintext, aad)), hex(sealed))
    assert.deepStrictEqual(Option.map(SecretBox.decrypt(key, nonce, sealed, aad), hex), Option.some(hex(plaintext)))
  })

  it("reveals nothing when any bit of the sealed bytes, the key, the nonce or the additional data differs", () => {
    const flipped = (value: Uint8Array, bit: number) =>
      value.map((byte, index) => (index === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte))
    for (let bit = 0; bit < sealed.length * 8; bit++) {
      assert.isTrue(Option.isNone(SecretBox.decrypt(key, nonce, flipped(sealed, bit), aad)), `bit ${bit}`)
    }
    assert.isTrue(Option.isNone(SecretBox.decrypt(flipped(key, 3), nonce, sealed, aad)))
    assert.isTrue(Option.isNone(SecretBox.decrypt(key, flipped(nonce, 3), sealed, aad)))
    assert.isTrue(Option.isNone(SecretBox.decrypt(key, nonce, sealed, flipped(aad, 3))))
  })

  it("reveals nothing when bytes are missing", () => {
    for (let length = 0; length < sealed.length; length++) {
      assert.isTrue(Option.isNone(SecretBox.decrypt(key, nonce, sealed.subarray(0, length), aad)), `${length} bytes`)
    }
  })
})
