/** The verifier that the tour and the benchmark trust, against the published vectors. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { dataBytes, verifierOf } from "../../infra/scripts/verify.ts"

const vectors = JSON.parse(readFileSync(new URL("../../schema/vectors/signatures.json", import.meta.url), "utf8"))
const verify = verifierOf(vectors.keys)
const meta = { request_id: "req_1", timestamp: "2030-01-31T12:00:00.000Z" }
const answer = (data: string, signature: unknown) =>
  Buffer.from(`{"data":${data},"signature":${JSON.stringify(signature)},"meta":${JSON.stringify(meta)}}`)

describe("the independent verifier", () => {
  for (const { canonical, data, name, signature } of vectors.valid) {
    it(`accepts ${name}`, () => assert.deepStrictEqual(verify(answer(canonical, signature)), data))

    it(`finds changed bytes in ${name}`, () => {
      for (let at = 0; at < canonical.length; at += 7) {
        const changed = `${canonical.slice(0, at)}${canonical[at] === "1" ? "2" : "1"}${canonical.slice(at + 1)}`
        assert.throws(() => verify(answer(changed, signature)))
      }
    })
  }

  for (const { canonical, name, signature } of vectors.invalid) {
    it(`refuses ${name}`, () => void assert.throws(() => verify(answer(canonical, signature))))
  }

  it("refuses data that is signed as it stands and not canonical", () => {
    const [{ canonical, signature }] = vectors.valid
    assert.throws(() => verify(answer(` ${canonical}`, signature)))
  })

  it("refuses a key that is not published", () => {
    const [{ canonical, signature }] = vectors.valid
    assert.throws(() => verify(answer(canonical, { ...signature, kid: "0000000000000000" })), /not published/)
  })

  it("takes the member data of the envelope, whatever its texts and neighbours look like", () => {
    const inner = String.raw`{"data":"}","text":"\"data\":{"}`
    assert.strictEqual(
      dataBytes(Buffer.from(`{"other":"data","more":{"data":1},"data":${inner},"end":[]}`)).toString(),
      inner
    )
    assert.throws(() => dataBytes(Buffer.from(`{"other":{"data":1}}`)), /no data/)
  })
})
