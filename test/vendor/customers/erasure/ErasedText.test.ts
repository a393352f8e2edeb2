import { assert, describe, it } from "@effect/vitest"
import {
  erasedCustomerEvent,
  erasedRecordEvent,
  erasedResponse,
  matcherOf,
  ownershipAt,
  withoutText
} from "../../../../src/vendor/customers/erasure/ErasedText.ts"

const never = { before: false, after: false }
const always = { before: true, after: true }
const eventOf = (event_type: string, metadata: object) => ({
  sequence: 1,
  event_type,
  resource_id: "x",
  metadata: metadata as never
})

describe("The text that an erasure removes", () => {
  it("is a name as a part of a text, without regard to case, but not a part of a word", () => {
    const matches = matcherOf(["Anna", "anna@example.com", " ", "Al"])
    for (const text of ["anna", "Contact: ANNA.", "(Anna)", "mail anna@EXAMPLE.com now", "al", " Al "])
      assert.isTrue(matches(text), text)
    for (const text of ["lic_01KANNA0", "Johanna", "Annas", "Hannah", "Al Bundy", "ÄAnna", ""])
      assert.isFalse(matches(text), text)
    assert.isFalse(matcherOf([])(""))
    for (const form of ["NFC", "NFD"]) {
      const accented = matcherOf(["Zo\u00eb".normalize(form)])
      for (const text of ["for ZO\u00cb", "for zoe\u0308"]) assert.isTrue(accented(text), `${form} ${text}`)
      assert.isFalse(accented("zoe"), form)
    }
  })

  it("is removed from free-form values with the members that it names", () => {
    const matches = matcherOf(["Anna"])
    assert.deepStrictEqual(withoutText({ a: "Anna", "for Anna": 1, b: ["x", "to anna"], c: { d: 2 } }, matches), {
      a: null,
      b: ["x", null],
      c: { d: 2 }
    })
  })

  it("is every value in an event of the customer, while names of fields stay", () => {
    assert.deepStrictEqual(
      erasedCustomerEvent(eventOf("customer.created", { name: "A", code: "a", request_id: "r" })),
      {
        name: null,
        code: null,
        request_id: "r",
        erased: true
      }
    )
    const changes = { name: { old: "A", new: "B" }, metadata: { old: { phone: "1" }, new: {} } }
    assert.deepStrictEqual(erasedCustomerEvent(eventOf("customer.updated", { changes })), {
      changes: { name: { old: null, new: null }, metadata: { old: null, new: null } },
      erased: true
    })
    const value = { definition_id: "d", code: "phone", value: { old: null, new: "1" } }
    assert.deepStrictEqual(erasedCustomerEvent(eventOf("custom_field_value.set", value)), {
      ...value,
      value: { old: null, new: null },
      erased: true
    })
  })

  it("is removed from a license's event on the side on which the customer owned the license", () => {
    const changes = {
      customer_id: { old: "cust_1", new: "cust_2" },
      customer_name: { old: "A. Nna", new: "Bob" },
      expires_at: { old: "x", new: "y" }
    }
    const event = eventOf("license.transferred", { changes })
    const matches = matcherOf(["Anna"])
    const nameAfter = (ownership: typeof never) =>
      (erasedRecordEvent(event, ownership, matches)["changes"] as never as typeof changes).customer_name
    assert.deepStrictEqual(nameAfter({ before: true, after: false }), { old: null, new: "Bob" } as never)
    assert.deepStrictEqual(nameAfter({ before: false, after: true }), { old: "A. Nna", new: null } as never)
    assert.strictEqual(erasedRecordEvent(event, never, matches), event.metadata)
    const others = { license_type: "trial", changes: { metadata: { old: { a: "trial" }, new: { b: 1 } } } }
    assert.deepStrictEqual(erasedRecordEvent(eventOf("license.updated", others), never, matcherOf(["Trial"])), {
      license_type: "trial",
      changes: { metadata: { old: { a: null }, new: { b: 1 } } },
      erased: true
    })
  })

  it("is found by the owner at the time of an event", () => {
    const changes = [
      { sequence: 5, before: true, after: false },
      { sequence: 8, before: false, after: true }
    ]
    assert.deepStrictEqual(
      [3, 5, 6, 8, 9].map((sequence) => ownershipAt(changes, sequence, true)),
      [always, { before: true, after: false }, never, { before: false, after: true }, always]
    )
    assert.deepStrictEqual(ownershipAt([], 3, true), always)
    assert.deepStrictEqual(ownershipAt([], 3, false), never)
  })

  it("is removed from stored responses of the customer, its licenses and its fields", () => {
    const matches = matcherOf(["Anna"])
    const body = {
      data: {
        license: { id: "lic_1", customer_id: "cust_1", customer_name: "Other", metadata: { note: "for Anna" } },
        customer: { id: "cust_1", name: "Anna", email: "a@b.c", code: "anna", metadata: { a: 1 } },
        field: { resource_id: "cust_1", code: "phone", string_value: "1" },
        another: { id: "lic_2", customer_id: "cust_2", customer_name: "Anna" }
      }
    }
    assert.deepStrictEqual(erasedResponse(body, "cust_1", matches), {
      data: {
        license: { id: "lic_1", customer_id: "cust_1", metadata: { note: null } },
        customer: { id: "cust_1", name: "", code: "anna", metadata: {} },
        field: { resource_id: "cust_1", code: "phone" },
        another: { id: "lic_2", customer_id: "cust_2" }
      }
    } as never)
  })
})
