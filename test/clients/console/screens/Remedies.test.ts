/** Refusals and failed deliveries in words; what operators read about them names no field of the API. */
import { assert, describe, it } from "@effect/vitest"
import { reasonOf } from "../../../../src/clients/console/access/FailureWords.ts"
import { wordsOfRefusal } from "../../../../src/clients/console/licenses/RefusalWords.ts"
import { adviceOn } from "../../../../src/clients/console/operations/Remedies.ts"
import { statuses } from "../../../../src/contract/api/ErrorCode.ts"

describe("A refusal", () => {
  for (const code of Object.keys(statuses))
    it(`is named in words: ${code}`, () => {
      assert.match(wordsOfRefusal(code), /^[A-Z][^_]*[^.]$/)
    })
  it("of a body says what was wrong with the request", () => {
    assert.match(wordsOfRefusal("INVALID_JSON"), /^The request’s body was not the JSON/)
  })
})

describe("Why a delivery failed", () => {
  for (const [reason, said] of [
    ["status_503", "It responded with the status 503: it is not available"],
    ["status_302", "It responded with the status 302: it redirects, which is not followed"],
    ["status_418", "It responded with the status 418"],
    ["tls_failed", "Its certificate was not accepted"],
    ["new_reason", "new reason"],
    [undefined, "none"]
  ] as const)
    it(`is said in words: ${reason}`, () => {
      assert.strictEqual(reasonOf(reason), said)
    })
})

describe("What to do about a refusal", () => {
  for (const code of Object.keys(statuses))
    it(`is said in plain words: ${code}`, () => {
      const { remedy, when } = adviceOn(code)!
      for (const text of [when, remedy]) {
        assert.match(text, /^[A-Z].*\.$/)
        assert.notMatch(text, /`|\b[a-z]+_[a-z]+|\bdetails?\b/)
      }
    })
})
