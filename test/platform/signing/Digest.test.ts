import { assert, describe, it } from "@effect/vitest"
import { redacted, sha256, sha256Hex } from "../../../src/platform/signing/Digest.ts"

describe("Digest", () => {
  // The one-block and the two-block message of FIPS 180-4's examples.
  it.each([
    ["abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
    [
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ]
  ])("hashes %s", (text, expected) => {
    assert.strictEqual(sha256Hex(text), expected)
    assert.strictEqual(Buffer.from(sha256(text)).toString("hex"), expected)
    assert.strictEqual(sha256Hex(new TextEncoder().encode(text)), expected)
  })

  it("hashes the UTF-8 encoding of a text", () => {
    assert.deepStrictEqual(sha256("péché"), sha256(Uint8Array.of(0x70, 0xc3, 0xa9, 0x63, 0x68, 0xc3, 0xa9)))
  })

  it("redacts to 12 hex digits that are equal for equal values", () => {
    assert.strictEqual(redacted("abc"), "sha256:ba7816bf8f01")
  })
})
