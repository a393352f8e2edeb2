/**
 * Random inputs for what the application kit parses: it refuses or reads each, and never crashes, hangs or reads a member
 * otherwise than a JSON parser. By default a hundred thousand, always the same; KIT_FUZZ_INPUTS=1000000 tests a million,
 * KIT_FUZZ_SEED=7 others.
 */
import { isDeepStrictEqual } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Distrusted, judgeOf, partsOf } from "../../../src/clients/kit/judging/Judge.ts"
import { openEnvelope } from "../../../src/clients/kit/judging/OfflineEnvelope.ts"
import { storedOf } from "../../../src/clients/kit/StoredText.ts"
import { licenseKeyOf } from "../../../src/clients/kit/texts/LicenseKeyText.ts"
import { fromBase64, instantOf, toBase64 } from "../../../src/clients/kit/texts/ResponseText.ts"
import { memberBytes } from "../../support/http/Verifier.ts"
import { countOf } from "../../support/rules/Counts.ts"
import { vectors } from "./Vectors.ts"

const seed = Number(process.env["KIT_FUZZ_SEED"] ?? 20300131)
const inputs = countOf("KIT_FUZZ_INPUTS", 100_000)
/** A million take a minute on an idle machine; the rest is for a busy one. */
const minutes = Math.max(2, inputs / 50_000) * 60_000

/** A generator of whole numbers below a bound; the same seed gives the same numbers (mulberry32). */
const numbersOf = (start: number) => {
  let state = start >>> 0
  return (bound: number): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * bound)
  }
}

const responses = (vectors.responses["vectors"] ?? []).map(({ response }) => response)
const pieces = [
  ...'{}[]",:\\ \n\t\u0000\ufeff0-.eE+é💥\ud800',
  ...[
    '"data"',
    '"error"',
    '"signature"',
    '"\\u0064ata"',
    "null",
    "true",
    "1e999",
    '"__proto__"',
    "\\u0000",
    '{"data":{}}'
  ]
]

const mutated = (text: string, below: (bound: number) => number): string => {
  let changed = text
  for (let change = 0; change <= below(3); change++) {
    const at = below(changed.length + 1)
    const to = Math.min(changed.length, at + below(below(4) === 0 ? changed.length : 4))
    const kinds = [
      () => changed.slice(0, at) + pieces[below(pieces.length)] + changed.slice(at),
      () => changed.slice(0, at) + changed.slice(to),
      () => changed.slice(0, at) + changed.slice(at, to) + changed.slice(at),
      () => changed.slice(0, at),
      () => changed.slice(0, at) + String.fromCharCode(below(0x10000)) + changed.slice(at + 1),
      () => changed.slice(0, at) + pieces[below(pieces.length)] + changed.slice(to)
    ]
    changed = (kinds[below(kinds.length)] as () => string)()
  }
  return changed
}

/** Undefined if the input is refused; any other error is a fault. */
const refusedOr = <A>(read: () => A): A | undefined => {
  try {
    return read()
  } catch (problem) {
    if (problem instanceof Distrusted) return undefined
    throw problem
  }
}

describe("The kit's parsers", () => {
  it(
    "read changed responses like a JSON parser, or refuse them",
    () => {
      const below = numbersOf(seed)
      let read = 0
      for (let run = 0; run < 0.7 * inputs; run++) {
        const text = mutated(responses[below(responses.length)] ?? "", below)
        const parts = refusedOr(() => partsOf(text))
        if (parts === undefined) continue
        read++
        const body = JSON.parse(text)
        const isSame =
          isDeepStrictEqual(parts.content, body[parts.member]) && isDeepStrictEqual(parts.signature, body.signature)
        if (!isSame) assert.fail(`run ${run}: ${text}`)
        if (run % 16 === 0 && text.isWellFormed()) {
          const other = memberBytes(Buffer.from(text), parts.member).toString().trim()
          assert.strictEqual(parts.signed, other, `run ${run}: ${text}`)
        }
      }
      assert.isAbove(read, 0.01 * inputs)
    },
    minutes
  )

  it(
    "read changed stored texts, instants, base64 texts and license keys, or refuse them",
    () => {
      const below = numbersOf(seed + 1)
      const stored = JSON.stringify({
        license_key: "LK-RQEKZ-EDRGD-XYVB2-GKT5J-VJKZ3-EE2H0",
        holding: "device",
        highest_issued_at: "2030-01-31T12:00:00.000Z",
        due_at: "2030-01-31T12:00:00.000Z",
        published_keys: vectors.responses.keys,
        responses: { entitlement: responses[0], refusal: responses[4] }
      })
      for (let run = 0; run < 0.075 * inputs; run++) {
        const read = storedOf(mutated(stored, below))
        const texts = [read.license_key, read.license_id, read.due_at, ...Object.values(read.responses)]
        assert.isTrue(texts.every((text) => text === undefined || typeof text === "string"))
        const instant = instantOf(mutated("2030-01-31T12:00:00.000Z", below))
        assert.isTrue(Number.isNaN(instant) || new Date(instant).getTime() === instant)
        const base64 = mutated("I+sUq/CEAQYOfb2qgpp4ZDBkFgzjyNZcOClaWMVBL40=", below)
        try {
          assert.strictEqual(toBase64(fromBase64(base64)), base64)
        } catch (problem) {
          assert.isFalse((problem as Error).name === "AssertionError", base64)
        }
        const key = licenseKeyOf(mutated("lk-rqekz-edrgd-xyvb2-gkt5j-vjkz3-ee2h0", below))
        assert.strictEqual(licenseKeyOf(key), key)
      }
    },
    minutes
  )

  it(
    "believe no changed response and open no changed envelope",
    async () => {
      const below = numbersOf(seed + 2)
      const judge = judgeOf(vectors.responses.keys)
      const [valid] = vectors["offline-envelopes"]["valid"] ?? []
      const envelope = JSON.stringify(valid?.envelope)
      for (let run = 0; run < 0.02 * inputs; run++) {
        const original = responses[below(9)] ?? ""
        const text = mutated(original, below)
        const trusted = await judge(text).catch((problem) => assert.instanceOf(problem, Distrusted))
        // What is outside of the signed bytes may differ.
        if (trusted !== undefined) assert.strictEqual(partsOf(text).signed, partsOf(original).signed)
        const changed = mutated(envelope, below)
        const opened = await openEnvelope(valid?.license_key ?? "", changed).catch((problem) =>
          assert.instanceOf(problem, Distrusted)
        )
        if (opened !== undefined) {
          const { ciphertext, kid, nonce, salt } = JSON.parse(envelope)
          assert.deepInclude(JSON.parse(changed), { ciphertext, kid, nonce, salt })
        }
      }
    },
    minutes
  )
})
