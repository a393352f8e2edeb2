/** The vectors of what clients and receivers compute, checked without the code that made them. */
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { verifyWebhook } from "../../src/ledger/webhooks/VerifyWebhook.ts"

const vectorsOf = (name: string) =>
  JSON.parse(readFileSync(new URL(`../../schema/vectors/${name}.json`, import.meta.url), "utf8")).vectors
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex")

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
