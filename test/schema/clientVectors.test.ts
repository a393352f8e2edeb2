/** The vectors of what clients and receivers compute, checked without the code that made them. */
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { RefusalFacts } from "../../src/contract/api/RefusalFacts.ts"
import { verifyWebhook } from "../../src/ledger/webhooks/VerifyWebhook.ts"
import * as Payloads from "../../src/licensing/model/Payloads.ts"

const vectorsOf = (name: string) =>
  JSON.parse(readFileSync(new URL(`../../schema/vectors/${name}.json`, import.meta.url), "utf8")).vectors
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex")

describe("responses.json", () => {
  const schemas: Readonly<Record<string, Schema.ConstraintDecoder<unknown>>> = {
    entitlement: Payloads.EntitlementPayload,
    deactivation: Payloads.DeactivationPayload,
    offline: Payloads.OfflineEntitlementPayload,
    floating_checkout: Payloads.FloatingCheckoutPayload,
    floating_lease: Payloads.FloatingLeasePayload
  }

  it("has in what is believed only members that the service sends", () => {
    const believed = vectorsOf("responses").filter(({ verdict }: { readonly verdict: string }) => verdict === "believe")
    assert.isAbove(believed.length, 15)
    for (const { name, response } of believed) {
      const { data, error } = JSON.parse(response)
      const { code: _c, detail: _d, message: _m, ...facts } = error ?? {}
      const schema = data === undefined ? RefusalFacts : schemas[data.kind]
      assert.isDefined(schema, name)
      const read = Schema.decodeUnknownSync(schema!, { onExcessProperty: "error" })
      const kept = data === undefined ? facts : data
      assert.doesNotThrow(() => read(kept), name)
    }
  })
})

describe("bindings.json", () => {
  for (const { hash, key, kind, name, request } of vectorsOf("bindings")) {
    it(name, () => {
      const { is_container, ...ids } = request
      const sorted = Object.fromEntries(Object.entries(ids).sort(([a], [b]) => (a < b ? -1 : 1)))
      assert.strictEqual(key, is_container ? sha256(JSON.stringify(sorted)) : request.fingerprint)
      assert.strictEqual(kind, is_container ? "container" : "hardware")
      assert.strictEqual(hash, sha256(key))
    })
  }
})

describe("webhooks.json", () => {
  for (const { body, headers, name, now, reason, scheme, secrets } of vectorsOf("webhooks")) {
    // An empty body has no event to return: the receiver of this one reads the headers alone.
    if (scheme !== "service" || body === "") continue
    it(name, () => {
      const result = verifyWebhook({ secret: secrets, headers, body: Buffer.from(body, "base64"), nowSeconds: now })
      assert.strictEqual(result.valid ? undefined : result.reason, reason)
    })
  }
})
