/** The verifier that the tour and the benchmark use, checked against the published vectors. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import {
  Distrusted,
  type Expected,
  judgeOf,
  memberBytes,
  openOffline,
  verifierOf
} from "../../src/cli/VerifyResponse.ts"

const vectors = JSON.parse(readFileSync(new URL("../../schema/vectors/signatures.json", import.meta.url), "utf8"))
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

const published = JSON.parse(readFileSync(new URL("../../schema/vectors/responses.json", import.meta.url), "utf8"))

/** An expectation as the vectors write it: instants as text, null for no expectation. */
const expectedOf = (given: Record<string, unknown>): Expected => {
  const { clock, ...rest } = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null))
  const { highest_issued_at, now } = clock as { readonly now: string; readonly highest_issued_at: string | null }
  const highestIssuedAt = highest_issued_at === null ? 0 : Date.parse(highest_issued_at)
  return { ...rest, clock: { now: Date.parse(now), highestIssuedAt } }
}

describe("the judge of responses", () => {
  const judge = judgeOf(published.keys)
  const verdictOf = (response: string, expected: Expected) => {
    try {
      judge(Buffer.from(response), expected)
      return "believe"
    } catch (error) {
      return (error as Distrusted).rule
    }
  }

  for (const { expected, name, response, rule, verdict } of published.vectors) {
    it(`gives the published verdict on ${name}`, () => {
      const all = expectedOf({ ...published.expected, ...expected })
      assert.strictEqual(verdictOf(response, all), rule ?? verdict)
      assert.strictEqual(verdict, rule === undefined ? "believe" : "distrust")
    })
  }

  it("believes each distrusted response but for the rule that it breaks", () => {
    const expectations: Record<string, ReadonlyArray<keyof Expected>> = {
      kind: ["kind"],
      license: ["license_id"],
      product: ["product_id", "product_code"],
      binding: ["binding"],
      nonce: ["nonce"],
      times: ["clock"]
    }
    for (const { expected, name, response, rule } of published.vectors) {
      if (!(rule in expectations) || name.includes("refusal's error")) continue
      const all = expectedOf({ ...published.expected, ...expected })
      const others = Object.entries(all).filter(([member]) => !expectations[rule]!.includes(member as keyof Expected))
      assert.strictEqual(verdictOf(response, Object.fromEntries(others)), "believe", name)
    }
  })

  it("has a vector for each rule, of answers and of refusals", () => {
    const rules = new Set(published.vectors.map(({ rule }: { readonly rule?: string }) => rule))
    for (const rule of ["signature", "kid", "kind", "license", "product", "binding", "nonce", "times"])
      assert.isTrue(rules.has(rule), rule)
  })

  it("tells which rule is broken by its own error", () =>
    void assert.throws(() => judge(Buffer.from('{"error":{},"meta":{}}')), Distrusted))
})

const hostile = JSON.parse(readFileSync(new URL("../../schema/vectors/hostile.json", import.meta.url), "utf8"))
const joined = (chunks: ReadonlyArray<{ readonly base64: string; readonly times: number }>): Buffer =>
  Buffer.concat(
    chunks.flatMap(({ base64, times }) => Array.from({ length: times }, () => Buffer.from(base64, "base64")))
  )

describe("hostile input", () => {
  const judge = judgeOf(hostile.keys)
  const open = openOffline(judge)
  const verdictOf = (judged: () => unknown) => {
    try {
      judged()
      return "believe"
    } catch (error) {
      return error instanceof Distrusted ? error.rule : String(error)
    }
  }

  for (const { body, expected, name, rule, verdict } of hostile.responses) {
    it(`is judged: ${name}`, () => {
      const all = expectedOf({ ...hostile.expected, ...expected })
      assert.strictEqual(
        verdictOf(() => judge(joined(body), all)),
        rule ?? verdict
      )
    })
  }

  for (const { envelope, expected, name, rule, verdict } of hostile.envelopes) {
    it(`is judged as an offline envelope: ${name}`, () => {
      const all = expectedOf({ ...hostile.expected, ...expected })
      assert.strictEqual(
        verdictOf(() => open(hostile.license_key, joined(envelope), all)),
        rule ?? verdict
      )
    })
  }
})
