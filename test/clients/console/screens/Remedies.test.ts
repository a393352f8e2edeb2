/** What operators read about refused requests names no field of the API. */
import { assert, describe, it } from "@effect/vitest"
import { adviceOn } from "../../../../src/clients/console/operations/Remedies.ts"
import { statuses } from "../../../../src/contract/api/ErrorCode.ts"

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
