import { createPublicKey, verify } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { KeyRing } from "../../../src/platform/signing/KeyRing.ts"
import { Signer } from "../../../src/platform/signing/Signer.ts"
import { fromSeed, isSignature, signSync } from "../../../src/platform/signing/SigningKey.ts"

/** RFC 8032, section 7.1. */
const vectors = [
  {
    name: "TEST 1",
    seed: "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
    publicKey: "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
    message: "",
    signature:
      "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
  },
  {
    name: "TEST 2",
    seed: "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
    publicKey: "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
    message: "72",
    signature:
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
  },
  {
    name: "TEST 3",
    seed: "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
    publicKey: "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
    message: "af82",
    signature:
      "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
  },
  {
    name: "TEST SHA(abc)",
    seed: "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
    publicKey: "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
    message:
      "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
    signature:
      "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704"
  }
] as const

const bytesOf = (hex: string) => Uint8Array.from(Buffer.from(hex, "hex"))

const signingWith = (seed: string) =>
  Signer.layer.pipe(
    Layer.provide(
      Layer.mock(KeyRing, {
        current: () => fromSeed(bytesOf(seed))
      })
    )
  )

/** Verifies as a client does: with only the raw 32 bytes of the public key, imported as a JSON Web Key. */
const verifies = (publicKey: string, message: Uint8Array, signature: string) =>
  verify(
    null,
    message,
    createPublicKey({
      key: { kty: "OKP", crv: "Ed25519", x: Buffer.from(publicKey, "hex").toString("base64url") },
      format: "jwk"
    }),
    Buffer.from(signature, "base64")
  )

describe("Signer", () => {
  it.effect("signs the UTF-8 encoding of exactly the text that it returns", () =>
    Effect.gen(function* () {
      const signer = yield* Signer
      const { bytes, signature } = yield* signer.sign({
        status: "active",
        expires_at: undefined,
        features: [],
        code: "péché"
      })
      assert.strictEqual(bytes, '{"code":"péché","features":[],"status":"active"}')
      const message = new TextEncoder().encode(bytes)
      assert.isTrue(verifies(vectors[0].publicKey, message, signature.value))
      assert.isFalse(verifies(vectors[1].publicKey, message, signature.value))
      assert.isFalse(verifies(vectors[0].publicKey, new TextEncoder().encode(`${bytes} `), signature.value))
      const { kid } = fromSeed(bytesOf(vectors[0].seed))
      const value = Buffer.from(signSync(fromSeed(bytesOf(vectors[0].seed)), message)).toString("base64")
      assert.deepStrictEqual(signature, { alg: "Ed25519", kid, value })
    }).pipe(Effect.provide(signingWith(vectors[0].seed)))
  )

  it.effect("returns each signature to its own caller when many sign concurrently", () =>
    Effect.gen(function* () {
      const signer = yield* Signer
      const signed = yield* Effect.forEach(
        Array.from({ length: 200 }, (_, sequence) => ({ sequence })),
        (data) => signer.sign(data),
        { concurrency: "unbounded" }
      )
      for (const [sequence, { bytes, signature }] of signed.entries()) {
        assert.strictEqual(bytes, `{"sequence":${sequence}}`)
        assert.isTrue(verifies(vectors[0].publicKey, new TextEncoder().encode(bytes), signature.value))
      }
    }).pipe(Effect.provide(signingWith(vectors[0].seed)))
  )

  it.effect("dies when JSON cannot represent the data", () =>
    Effect.gen(function* () {
      const signer = yield* Signer
      const defect = yield* signer.sign({ total: Number.NaN }).pipe(Effect.catchDefect(Effect.succeed))
      assert.instanceOf(defect, TypeError)
    }).pipe(Effect.provide(signingWith(vectors[0].seed)))
  )
})

describe("SigningKey", () => {
  it.each(vectors)("derives RFC 8032's $name", ({ seed, publicKey, message, signature }) => {
    const key = fromSeed(bytesOf(seed))
    assert.strictEqual(Buffer.from(key.publicKey).toString("hex"), publicKey)
    assert.strictEqual(Buffer.from(signSync(key, bytesOf(message))).toString("hex"), signature)
    assert.isTrue(isSignature(key.publicKey, bytesOf(message), bytesOf(signature)))
  })

  it("has an id of the first 16 hex digits of SHA-256 over its public key", () => {
    assert.strictEqual(fromSeed(bytesOf(vectors[0].seed)).kid, "21fe31dfa154a261")
  })

  it("rejects every signature that it did not make", () => {
    const [{ publicKey, signature }, other] = vectors
    const message = new Uint8Array()
    for (let bit = 0; bit < 512; bit++) {
      const flipped = bytesOf(signature).map((byte, index) => (index === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte))
      assert.isFalse(isSignature(bytesOf(publicKey), message, flipped), `bit ${bit}`)
    }
    assert.isFalse(isSignature(bytesOf(publicKey), Uint8Array.of(0), bytesOf(signature)))
    assert.isFalse(isSignature(bytesOf(other.publicKey), message, bytesOf(signature)))
    assert.isFalse(isSignature(bytesOf(publicKey).subarray(1), message, bytesOf(signature)))
    assert.isFalse(isSignature(bytesOf(publicKey), message, bytesOf(signature).subarray(1)))
  })

  it("refuses a seed of another length", () => {
    assert.throws(() => fromSeed(new Uint8Array(31)), RangeError)
  })
})
