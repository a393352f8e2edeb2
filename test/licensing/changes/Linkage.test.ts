/** The links of a license after an edit, and customers that are being erased. */
import { assert, describe, it } from "@effect/vitest"
import { editedLinks, namedLinks, refuseErasing } from "../../../src/licensing/changes/Linkage.ts"
import type { LicenseRecord, LinkRecord } from "../../../src/licensing/model/LicenseRecords.ts"
import { viewOf } from "../../support/rules/LicenseRules.ts"
import { rowsOf } from "../../support/rules/Licenses.ts"

const links: ReadonlyArray<LinkRecord> = [
  { kind: "order", id: "ord_alone", product_id: "prod_1" },
  { kind: "order", id: "ord_1", product_id: "prod_1", subscription_id: "sub_1" },
  { kind: "order", id: "ord_foreign", product_id: "prod_2" },
  { kind: "subscription", id: "sub_1", product_id: "prod_1" },
  { kind: "subscription", id: "sub_2", product_id: "prod_1" },
  { kind: "customer", id: "cus_erasing", product_id: "prod_1", erasing: true },
  { kind: "customer", id: "cus_1", product_id: "prod_1" }
]

const viewWith = (license: Partial<LicenseRecord> = {}) => viewOf(rowsOf({ license, links }))

type Edit = Parameters<typeof editedLinks>[1]

describe("the links after an edit", () => {
  it.each([
    ["nothing is named", {}, {}, {}],
    ["nothing is named, of a linked license", { order_id: "ord_1", subscription_id: "sub_1" }, {}, {}],
    ["an order names its subscription", {}, { order_id: "ord_1" }, { order_id: "ord_1", subscription_id: "sub_1" }],
    [
      "both match",
      {},
      { order_id: "ord_1", subscription_id: "sub_1" },
      { order_id: "ord_1", subscription_id: "sub_1" }
    ],
    ["an order alone", {}, { order_id: "ord_alone" }, { order_id: "ord_alone", subscription_id: undefined }],
    ["a subscription alone", {}, { subscription_id: "sub_2" }, { order_id: undefined, subscription_id: "sub_2" }],
    [
      "a subscription beside the license's own order",
      { order_id: "ord_1" },
      { subscription_id: "sub_1" },
      { order_id: "ord_1", subscription_id: "sub_1" }
    ],
    [
      "null clears one, and the other stays",
      { order_id: "ord_1", subscription_id: "sub_1" },
      { order_id: null },
      { order_id: undefined, subscription_id: "sub_1" }
    ],
    [
      "an order without its subscription, which null clears",
      { subscription_id: "sub_2" },
      { order_id: "ord_1", subscription_id: null },
      { order_id: "ord_1", subscription_id: undefined }
    ],
    [
      "links that an earlier version stored, named again",
      { order_id: "ord_alone", subscription_id: "sub_1" },
      { subscription_id: "sub_1" },
      { order_id: "ord_alone", subscription_id: "sub_1" }
    ]
  ] as ReadonlyArray<readonly [string, Partial<LicenseRecord>, Edit, object]>)("%s", (_, license, edit, expected) => {
    assert.deepStrictEqual(editedLinks(viewWith(license), edit), expected as never)
  })

  it.each([
    ["NOT_FOUND", "order_id", {}, { order_id: "ord_none" }],
    ["NOT_FOUND", "subscription_id", {}, { order_id: "ord_1", subscription_id: "sub_none" }],
    ["LINKAGE_MISMATCH", "order_id", {}, { order_id: "ord_foreign" }],
    ["LINKAGE_MISMATCH", "subscription_id", {}, { order_id: "ord_1", subscription_id: "sub_2" }],
    ["LINKAGE_MISMATCH", "subscription_id", { order_id: "ord_1" }, { subscription_id: "sub_2" }],
    ["LINKAGE_MISMATCH", "subscription_id", { subscription_id: "sub_2" }, { order_id: "ord_alone" }],
    ["LINKAGE_MISMATCH", "subscription_id", { order_id: "ord_unknown" }, { subscription_id: "sub_2" }]
  ] as ReadonlyArray<readonly ["NOT_FOUND" | "LINKAGE_MISMATCH", string, Partial<LicenseRecord>, Edit]>)(
    "refuses with %s of %s",
    (code, detail, license, edit) => {
      const refused = editedLinks(viewWith(license), edit)
      assert.deepInclude(refused, { accepted: false, code, detail })
    }
  )
})

describe("the links that a command names", () => {
  it("are looked up only if they are named", () => {
    const asked: Array<string> = []
    const view = { ...viewWith(), link: (kind: string, id: string) => void asked.push(`${kind} ${id}`) }
    assert.deepStrictEqual(namedLinks(view, {}), { order: undefined, subscription: undefined })
    assert.deepStrictEqual(asked, [])
  })
})

describe("a customer that is being erased", () => {
  it("is not linked; others are", () => {
    assert.deepInclude(refuseErasing(viewWith(), "cus_erasing"), {
      accepted: false,
      code: "CONFLICT",
      detail: "customer_id",
      isTemporary: true
    })
    for (const id of ["cus_1", "cus_unknown", undefined]) assert.isUndefined(refuseErasing(viewWith(), id))
  })
})
