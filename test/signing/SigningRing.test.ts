import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { makeRing, type Ring, type RingSize, RingWriter, signHandedOver } from "../../src/signing/SigningRing.ts"

/** 64 bytes that only this key and text give. */
const signatureOf = (key: number, text: string | Uint8Array) =>
  createHash("sha512").update(`${key}:`).update(text).digest()

/** Both ends, on one thread; the reader signs as many as it is told to. */
const makeEnds = (size: RingSize, handedOverBefore = 0) => {
  const ring = makeRing(size)
  ring.counts.fill(handedOverBefore, 0, 2)
  const writer = new RingWriter(ring)
  const told: Array<number> = []
  return { ring, writer, told, sign: (most?: number) => signSome(ring, told, most) }
}

const signSome = (ring: Ring, told: Array<number>, most = Number.POSITIVE_INFINITY) => {
  let signed = 0
  const enough = new Error("enough")
  try {
    signHandedOver(
      ring,
      (key, text) => {
        if (signed === most) throw enough
        signed++
        return signatureOf(key, text)
      },
      () => told.push(signed)
    )
  } catch (error) {
    if (error !== enough) throw error
  }
}

const takeAll = (writer: RingWriter) => {
  const taken: Array<[order: number, signature: string]> = []
  writer.take((order, signature) => taken.push([order, signature]))
  return taken
}

const base64Of = (key: number, text: string) => signatureOf(key, text).toString("base64")

const size = { slots: 8, textBytes: 256 }

type Step = { readonly write: string } | { readonly sign: number } | "take"

const steps: fc.Arbitrary<Array<Step>> = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.string({ unit: "binary", maxLength: 60 }).map((write) => ({ write })) },
    { weight: 2, arbitrary: fc.nat({ max: 4 }).map((sign) => ({ sign })) },
    { weight: 2, arbitrary: fc.constant("take" as const) }
  ),
  { minLength: 50, maxLength: 200 }
)

describe("the signing ring", () => {
  it("gives every text its own signature, in order, over any number of turns and past the end of its counts", () => {
    let wrapped = 0
    fc.assert(
      fc.property(steps, (steps) => {
        const { ring, writer, sign } = makeEnds(size, 2 ** 31 - 10)
        const expected: Array<[order: number, signature: string]> = []
        let key = 0
        for (const step of steps) {
          if (step === "take") for (const one of takeAll(writer)) assert.deepStrictEqual(one, expected.shift())
          else if ("sign" in step) sign(step.sign)
          else {
            const order = writer.write(++key, step.write)
            if (order !== undefined) expected.push([order, base64Of(key, step.write)])
          }
        }
        sign()
        assert.deepStrictEqual(takeAll(writer), expected)
        if (ring.counts[0]! < 0) wrapped++
      }),
      { numRuns: 300 }
    )
    assert.isAbove(wrapped, 100)
  })

  it("takes no text that may be larger than its memory, and leaves what it has as it is", () => {
    const { writer, sign } = makeEnds(size)
    const most = "€".repeat(Math.floor((size.textBytes - 1) / 3))
    assert.strictEqual(writer.write(1, most), 0)
    assert.isUndefined(writer.write(2, `${most}€`))
    sign()
    assert.deepStrictEqual(takeAll(writer), [[0, base64Of(1, most)]])
    assert.isUndefined(writer.write(2, `${most}€`))
    assert.strictEqual(writer.write(3, most), 1)
  })

  it("is full when all slots are under way, and has room as soon as signatures are taken", () => {
    const { writer, sign } = makeEnds(size)
    for (let order = 0; order < size.slots; order++) assert.strictEqual(writer.write(0, ""), order)
    assert.isUndefined(writer.write(0, ""))
    sign(1)
    assert.isUndefined(writer.write(0, ""))
    assert.lengthOf(takeAll(writer), 1)
    assert.strictEqual(writer.write(0, ""), size.slots)
    assert.isUndefined(writer.write(0, ""))
  })

  it("tells once, and only when what is wanted is signed", () => {
    const { writer, told, sign } = makeEnds(size)
    for (let order = 0; order < 5; order++) writer.write(0, `text ${order}`)
    sign(1)
    assert.isFalse(writer.want(0))
    assert.isTrue(writer.want(3))
    sign(2)
    assert.deepStrictEqual(told, [])
    sign()
    assert.deepStrictEqual(told, [1])
    assert.isFalse(writer.want(3))
  })
})
