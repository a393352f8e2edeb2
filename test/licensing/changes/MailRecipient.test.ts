/** Who gets mails about a license, and its new key. */
import { assert, describe, it } from "@effect/vitest"
import { rotateKey } from "../../../src/licensing/changes/KeyRotation.ts"
import { recipientOf, refuseNoRecipient } from "../../../src/licensing/changes/MailRecipient.ts"
import type { LinkRecord } from "../../../src/licensing/model/LicenseRecords.ts"
import { sha256Hex } from "../../../src/platform/signing/Digest.ts"
import { allowed, refusedWith } from "../../support/rules/LicenseRules.ts"
import { rowsOf } from "../../support/rules/Licenses.ts"

const own = { customer_email: "anna@example.com", customer_name: "Anna", metadata: { language: "de" } }
const linked = { name: "Ben", email: "ben@example.com", language: "fr" }
const nobody = { customer_email: undefined, customer_name: undefined, metadata: {} }

describe("the recipient of mails", () => {
  it("is the license's own address, name and language", () => {
    const expected = { address: "anna@example.com", name: "Anna", language: "de" }
    assert.deepStrictEqual(recipientOf(own), expected)
    assert.deepStrictEqual(recipientOf(own, linked), expected)
  })

  it("is the customer where the license has nothing of its own", () => {
    assert.deepStrictEqual(recipientOf(nobody, linked), { address: "ben@example.com", name: "Ben", language: "fr" })
    const unnamed = { ...linked, name: "", language: undefined }
    assert.deepStrictEqual(recipientOf(nobody, unnamed), {
      address: "ben@example.com",
      name: undefined,
      language: undefined
    })
  })

  it("is nobody without an address that mail can be sent to", () => {
    assert.isUndefined(recipientOf(nobody))
    assert.isUndefined(recipientOf(nobody, { name: "Ben", email: undefined, language: undefined }))
    assert.isUndefined(recipientOf({ ...own, customer_email: "no address" }, linked))
  })

  it("has no language that is no language tag", () => {
    const languageOf = (language: unknown) =>
      recipientOf({ ...own, metadata: { language } as typeof own.metadata })?.language
    assert.strictEqual(languageOf("x".repeat(35)), "x".repeat(35))
    assert.isUndefined(languageOf("x".repeat(36)))
    assert.isUndefined(languageOf(7))
  })

  it("has the customer's language if the license's is none", () => {
    for (const language of [null, "", 7, {}, "x".repeat(36)])
      assert.strictEqual(recipientOf({ ...own, metadata: { language } }, linked)?.language, "fr")
  })

  it("is asked for by the refusal of the field that wants it", () => {
    const { code, detail, message } = refuseNoRecipient("licenses[2].send_key")
    assert.deepStrictEqual([code, detail], ["VALIDATION_ERROR", "licenses[2].send_key"])
    assert.include(message, "customer_email")
  })
})

const key = { key_hash: sha256Hex("another key"), license_key_prefix: "LK-12345", license_key_last4: "WXYZ" }
const customer: LinkRecord = { kind: "customer", id: "cus_1", product_id: "prod_1", ...linked }

describe("rotate-key by mail", () => {
  it("names who gets the new key: the license's own address, else its customer's", () => {
    const { reply } = allowed(rowsOf({ license: { customer_email: "anna@example.com" } }), rotateKey, {
      ...key,
      send_key: true
    })
    assert.strictEqual(reply.recipient?.address, "anna@example.com")
    const rows = rowsOf({ license: { customer_id: "cus_1" }, links: [customer] })
    assert.strictEqual(allowed(rows, rotateKey, { ...key, send_key: true }).reply.recipient?.address, "ben@example.com")
  })

  it("names nobody unless asked", () => {
    const rows = rowsOf({ license: { customer_email: "anna@example.com" } })
    for (const send_key of [undefined, false])
      assert.notProperty(allowed(rows, rotateKey, { ...key, send_key }).reply, "recipient")
  })

  it("is refused without a recipient", () => {
    const { refused } = refusedWith("VALIDATION_ERROR", rowsOf(), rotateKey, { ...key, send_key: true })
    assert.strictEqual(refused.detail, "send_key")
    assert.include(refused.message, "send_key")
  })

  it("reads the license's owner only if asked to send", () => {
    assert.deepStrictEqual(rotateKey.needs?.({ ...key, send_key: true }), { owner: true })
    assert.deepStrictEqual(rotateKey.needs?.(key), {})
  })
})
