/** The verifier for receivers: it accepts only genuine and recent deliveries. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { verifyWebhook } from "../../../src/ledger/webhooks/VerifyWebhook.ts"
import { hmacKey, hmacSha256 } from "../../../src/platform/signing/Hmac.ts"

const secret = "whsec_a-secret-of-these-tests"
const id = "dlv_1_7"
const t = 1_800_000_000
const body = Buffer.from(`{"id":"evt_7","type":"license.renewed","sequence":7,"created_at":"…","data":{}}`)
const signatureOf = (key = secret, at = t) =>
  hmacSha256(hmacKey(Buffer.from(key)), `${at}.${id}.`, body).toString("hex")
const headers = { "x-service-delivery-id": id, "x-service-signature": `t=${t},v1=${signatureOf()}` }
const genuine = { secret, headers, body, nowSeconds: t }

describe("verifyWebhook", () => {
  it("accepts a genuine delivery, as bytes or text, with headers in any case or from fetch", () => {
    const expected = {
      valid: true,
      deliveryId: id,
      sequence: 7,
      type: "license.renewed",
      event: JSON.parse(body.toString())
    }
    assert.deepStrictEqual(verifyWebhook(genuine), expected as never)
    assert.isTrue(verifyWebhook({ ...genuine, body: body.toString() }).valid)
    const upper = { "X-Service-Delivery-ID": id, "X-SERVICE-SIGNATURE": [headers["x-service-signature"]] }
    assert.isTrue(verifyWebhook({ ...genuine, headers: upper }).valid)
    assert.isTrue(verifyWebhook({ ...genuine, headers: new Headers(headers) }).valid)
  })

  it("accepts one of several signatures, made with one of several secrets", () => {
    const both = { ...headers, "x-service-signature": `t=${t},v1=${signatureOf("another secret")},v1=${signatureOf()}` }
    assert.isTrue(verifyWebhook({ ...genuine, headers: both }).valid)
    assert.isTrue(verifyWebhook({ ...genuine, secret: ["another secret", secret] }).valid)
    assert.isFalse(verifyWebhook({ ...genuine, secret: ["another secret", "a third"] }).valid)
    assert.isFalse(verifyWebhook({ ...genuine, secret: [] }).valid)
  })

  it("refuses any change of body, id, time or signature", () => {
    fc.assert(
      fc.property(fc.nat(body.length - 1), fc.integer({ min: 1, max: 255 }), (index, change) => {
        const changed = Buffer.from(body)
        changed[index]! ^= change
        assert.deepStrictEqual(verifyWebhook({ ...genuine, body: changed }), {
          valid: false,
          reason: "signature_wrong"
        })
      })
    )
    const wrong = { valid: false, reason: "signature_wrong" } as const
    assert.deepStrictEqual(
      verifyWebhook({ ...genuine, headers: { ...headers, "x-service-delivery-id": "dlv_1_8" } }),
      wrong
    )
    const later = { ...headers, "x-service-signature": `t=${t + 1},v1=${signatureOf()}` }
    assert.deepStrictEqual(verifyWebhook({ ...genuine, headers: later }), wrong)
    for (const v1 of ["", "00", signatureOf().slice(2), `${signatureOf()}00`, signatureOf("other"), "no hex at all"]) {
      const one = { ...headers, "x-service-signature": `t=${t},v1=${v1}` }
      assert.deepStrictEqual(verifyWebhook({ ...genuine, headers: one }), wrong, v1)
    }
  })

  it("refuses a timestamp older or newer than the tolerance, exact to the second", () => {
    const at = (nowSeconds: number, toleranceSeconds?: number) =>
      verifyWebhook({ ...genuine, nowSeconds, ...(toleranceSeconds === undefined ? {} : { toleranceSeconds }) }).valid
    assert.deepStrictEqual([at(t + 300), at(t + 301), at(t - 300), at(t - 301)], [true, false, true, false])
    assert.deepStrictEqual([at(t + 10, 10), at(t + 11, 10)], [true, false])
    assert.deepStrictEqual(verifyWebhook({ secret, headers, body }), { valid: false, reason: "too_old_or_new" })
  })

  it("names what is missing or malformed", () => {
    for (const name of Object.keys(headers)) {
      const without = { ...headers, [name]: undefined }
      assert.deepStrictEqual(verifyWebhook({ ...genuine, headers: without }), {
        valid: false,
        reason: "headers_missing"
      })
    }
    for (const signature of [
      "",
      "t=,v1=",
      `v1=${signatureOf()}`,
      `t=${t}`,
      `t=abc,v1=${signatureOf()}`,
      `t=-1,v1=${signatureOf()}`,
      "nonsense"
    ]) {
      const one = { ...headers, "x-service-signature": signature }
      assert.deepStrictEqual(
        verifyWebhook({ ...genuine, headers: one }),
        { valid: false, reason: "signature_malformed" },
        signature
      )
    }
  })
})
