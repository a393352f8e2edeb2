/** The verifier of the service's responses in tests and benchmarks, checked against the published vectors. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { memberBytes, verifierOf } from "./Verifier.ts"

const vectors = JSON.parse(readFileSync(new URL("../../../schema/vectors/signatures.json", import.meta.url), "utf8"))
const verify = verifierOf(vectors.keys)
const meta = { request_id: "req_1", timestamp: "2030-01-31T12:00:00.000Z" }
const answer = (data: string, signature: unknown) =>
  Buffer.from(`{"data":${data},"signature":${JSON.stringify(signature)},"meta":${JSON.stringify(meta)}}`)

describe("the independent verifier", () => {
  for (const { canonical, data, name, signature } of vectors.valid) {
    it(`accepts ${name}`, () => assert.deepStrictEqual(verify(answer(canonical, signature)), data))

    it(`detects changed bytes in ${name}`, () => {
      for (let position = 0; position < canonical.length; position += 7) {
        const changed = `${canonical.slice(0, position)}${canonical[position] === "1" ? "2" : "1"}${canonical.slice(position + 1)}`
        assert.throws(() => verify(answer(changed, signature)))
      }
    })
  }

  for (const { canonical, name, signature } of vectors.invalid) {
    it(`refuses ${name}`, () => void assert.throws(() => verify(answer(canonical, signature))))
  }

  it("refuses data whose signature is valid but whose bytes are not canonical", () => {
    const [{ canonical, signature }] = vectors.valid
    assert.throws(() => verify(answer(` ${canonical}`, signature)))
  })

  it("refuses a key that is not published", () => {
    const [{ canonical, signature }] = vectors.valid
    assert.throws(() => verify(answer(canonical, { ...signature, kid: "0000000000000000" })), /not published/)
  })

  it("reads the member data of the envelope, for all texts and neighbouring members", () => {
    const inner = String.raw`{"data":"}","text":"\"data\":{"}`
    assert.strictEqual(
      memberBytes(Buffer.from(`{"other":"data","more":{"data":1},"data":${inner},"end":[]}`), "data").toString(),
      inner
    )
    assert.throws(() => memberBytes(Buffer.from(`{"other":{"data":1}}`), "data"), /no data/)
  })
})
