/** The list of customers of a batch, as people type it or paste it from a spreadsheet. */
import { assert, describe, it } from "@effect/vitest"
import { Cause } from "effect"
import { faultOfBatch, licensesIn, linesOf } from "../../../../src/clients/console/batch/BatchLines.ts"
import { isRefusal, refuse } from "../../../../src/contract/api/Failure.ts"

const ownersOf = (...customers: ReadonlyArray<string>) => {
  const licenses = licensesIn("prod_1", { policy_id: "pol_1", customers })
  return isRefusal(licenses)
    ? licenses.message
    : licenses.map(({ customer_email = "", customer_name = "", license_key = "" }) =>
        [customer_name, customer_email, license_key].join("|")
      )
}

const countOf = (count: number) => {
  const licenses = licensesIn("prod_1", { policy_id: "pol_1", count })
  return isRefusal(licenses) ? licenses.detail : licenses.length
}

const faultOf = (path: string) => {
  const fault = faultOfBatch(Cause.fail(refuse("VALIDATION_ERROR", "It is wrong.", path)))
  return fault === undefined ? undefined : [fault.detail, fault.message]
}

describe("The list of a batch", () => {
  it("has a name, an e-mail and a key in each line, with commas or tabs between", () => {
    assert.deepStrictEqual(
      ownersOf("Ada, ada@example.com", "Ada", "ada@example.com", "Ada\tada@example.com\tKEY,1", `"L, A",a@b.cc,"K""1"`),
      ["Ada|ada@example.com|", "Ada||", "|ada@example.com|", "Ada|ada@example.com|KEY,1", `L, A|a@b.cc|K"1`]
    )
  })

  it("keeps the place of each cell beside empty ones", () => {
    assert.deepStrictEqual(
      ownersOf(
        ",anna@example.com",
        ",a@b.cc,KEY-1",
        "Anna,,KEY-2",
        "Anna\t\tKEY-3",
        "\tanna@example.com\t",
        "\t\tKEY-4",
        `"",a@b.cc,KEY-5`,
        `Anna "the first", a@b.cc`,
        "anna@example.com,,KEY-6"
      ),
      [
        "|anna@example.com|",
        "|a@b.cc|KEY-1",
        "Anna||KEY-2",
        "Anna||KEY-3",
        "|anna@example.com|",
        "||KEY-4",
        "|a@b.cc|KEY-5",
        `Anna "the first"|a@b.cc|`,
        "|anna@example.com|KEY-6"
      ]
    )
    assert.deepStrictEqual(linesOf(["\t\tKEY-4\r\n\n  \t\nAnna"]), ["\t\tKEY-4", "Anna"])
  })

  it("has 1 to 1,000 licenses", () => {
    assert.deepStrictEqual([1, 1_000, 0, 1_001, 1.5].map(countOf), [1, 1_000, "count", "count", "count"])
    assert.match(String(ownersOf(...Array(1_001).fill("Ada"))), /1 to 1000/)
  })

  it("names the line that is wrong, or the field that all licenses share", () => {
    assert.deepStrictEqual(faultOf("licenses[3].customer_email"), ["customers", "Line 4: It is wrong."])
    assert.deepStrictEqual(faultOf("licenses.0.license_key"), ["customers", "Line 1: It is wrong."])
    assert.deepStrictEqual(faultOf("licenses[0].expires_at"), ["expires_at", "It is wrong."])
    assert.strictEqual(faultOf("policy_id"), undefined)
  })
})
