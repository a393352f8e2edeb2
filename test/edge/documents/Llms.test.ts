/** The texts for language models: their form, and that a program can be built from what they say. */
import { createDecipheriv, createHash, createHmac, createPublicKey, hkdfSync, verify } from "node:crypto"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { idempotencyKeyMax, replayedHeader } from "../../../src/access/idempotency/Idempotency.ts"
import { statuses } from "../../../src/contract/api/ErrorCode.ts"
import { openApiDocument } from "../../../src/edge/documents/Document.ts"
import { operations } from "../../../src/edge/documents/DocumentedOperations.ts"
import { llmsFull, llmsIndex, operationTexts } from "../../../src/edge/documents/texts/Llms.ts"
import { eventTypes } from "../../../src/ledger/events/EventType.ts"
import { verifyWebhook } from "../../../src/ledger/webhooks/VerifyWebhook.ts"
import { Settings } from "../../../src/platform/config/Config.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const address = "https://licenses.example.com"
const document = openApiDocument()
const pages = ["Applications", "Guides"].map((section) => ({
  path: "webhooks.md",
  title: "Webhooks",
  description: "For developers who receive webhooks.",
  section
}))
const index = llmsIndex(document, address, pages)
const full = llmsFull(document, address)

/** The text between two headings. */
const section = (heading: string): string => {
  const [, text = ""] = new RegExp(`^## ${heading}\n([\\s\\S]*?)(?=^##? )`, "m").exec(full) ?? []
  return text === "" ? assert.fail(`no section ${heading}`) : text
}

describe("llms.txt", () => {
  it("has a title, a summary, and after that sections of links only", () => {
    assert.match(index, /^# [^\n]+\n\n> [^\n]+\n\n/)
    const [introduction = "", ...sections] = index.split(/^## /m)
    assert.notMatch(introduction.slice(2), /^#/m)
    assert.includeMembers(
      sections.map((text) => text.split("\n", 1)[0]),
      ["Documents", "Applications", "Guides", "Operations: runtime", "Optional"]
    )
    for (const text of sections) {
      const [, ...lines] = text.trim().split("\n")
      for (const line of lines.filter((each) => each !== ""))
        assert.match(line, /^- \[[^\]]+\]\(https:\/\/licenses\.example\.com\/[\w./-]*\)(: .+)?$/)
    }
  })

  it("leads to a text of each operation, with what a request needs", () => {
    const texts = operationTexts(document, address)
    for (const id of operations().keys()) {
      assert.include(index, `[${id}](${address}/docs/operations/${id}.md)`)
      assert.match(texts.get(id) ?? "", new RegExp(`^# ${id}\n`))
    }
    const createLicense = texts.get("createLicense") ?? ""
    for (const part of ["`POST /api/v1/licenses`", "license:write", "## LicenseCreateRequest", "`policy_id`", "422: "])
      assert.include(createLicense, part)
    assert.isBelow(createLicense.length, full.length / 5)
  })
})

describe("llms-full.txt", () => {
  it("fits into the context of a language model, with room for an answer", () => {
    // About four bytes are a token.
    assert.isBelow(full.length, 320_000)
  })

  it("names every error code and every event", () => {
    for (const code of Object.keys(statuses)) assert.include(full, `- ${code} (`)
    for (const type of eventTypes) assert.include(section("Webhooks"), `\`${type}\``)
  })

  it("has an example of a delivery that its own words and the verifier accept", () => {
    const text = section("Webhooks")
    const [, secret = ""] = /with the secret `([^`]+)`/.exec(text) ?? []
    const [, request = ""] = /```http\n([\s\S]*?)\n```/.exec(text) ?? []
    const [head = "", body = ""] = request.split("\n\n")
    const headers = Object.fromEntries(
      head
        .split("\n")
        .slice(1)
        .map((line) => line.split(/: (.*)/) as [string, string])
    )
    const [, t, v1] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(headers["x-service-signature"] ?? "") ?? []
    assert.include(text, "over `<t>.<X-Service-Delivery-ID>.<raw body>`")
    const hmac = createHmac("sha256", secret).update(`${t}.${headers["x-service-delivery-id"]}.${body}`)
    assert.strictEqual(hmac.digest("hex"), v1)
    assert.isTrue(verifyWebhook({ secret, headers, body, nowSeconds: Number(t) }).valid)
  })

  it.effect("states the limits and schedules that apply by default", () =>
    Effect.gen(function* () {
      const { rateActivation, rateFailures, rateManagement, rateRuntime, webhookRetrySeconds } = yield* Settings
      const repeating = section("Retry-After, rate limits and Idempotency-Key")
      for (const rate of [rateRuntime, rateActivation, rateManagement, rateFailures])
        assert.include(repeating, ` ${rate} `)
      for (const part of [
        "`Retry-After`",
        `1 to ${idempotencyKeyMax} characters`,
        `\`${replayedHeader}: true\``,
        "24 hours"
      ])
        assert.include(repeating, part)
      assert.include(section("Webhooks"), webhookRetrySeconds.join(", "))
    }).pipe(Effect.provide(Settings.layerTest()))
  )
})

layer(TestServer.layer)("From llms-full.txt alone", (it) => {
  it.effect("a program opens an offline envelope and verifies what is in it", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const text = section("Offline envelopes")
      const number = (pattern: RegExp) => Number(pattern.exec(text)?.[1] ?? assert.fail(String(pattern)))
      const [saltLength, keyLength] = [number(/salt: the (\d+) bytes/), number(/length: (\d+) bytes/)]
      const [nonceLength, tagLength] = [
        number(/the (\d+) bytes of `nonce`/),
        number(/last (\d+) bytes of `ciphertext` are the tag/)
      ]
      const [, info = ""] = /info: `([^`]+)`/.exec(text) ?? []
      const { license_key } = yield* issue()
      const runtime = (operation: string) =>
        send({
          method: "POST",
          path: `/api/v1/license/${operation}`,
          headers: { authorization: `License ${license_key}` },
          body: { fingerprint: "air-gapped" }
        })
      assert.strictEqual((yield* runtime("activate")).status, 200)
      const { data } = (yield* runtime("offline")).json as { readonly data: Record<string, string> }
      const bytes = (name: string) => Buffer.from(data[name] ?? "", "base64")
      assert.strictEqual(bytes("salt").length, saltLength)
      assert.strictEqual(bytes("nonce").length, nonceLength)
      const key = Buffer.from(hkdfSync("sha256", license_key, bytes("salt"), info, keyLength))
      const sealed = bytes("ciphertext")
      const decipher = createDecipheriv("aes-256-gcm", key, bytes("nonce"))
        .setAAD(Buffer.from(data["kid"] ?? ""))
        .setAuthTag(sealed.subarray(-tagLength))
      const opened = Buffer.concat([decipher.update(sealed.subarray(0, -tagLength)), decipher.final()]).toString()
      const inner = JSON.parse(opened) as {
        readonly data: Record<string, unknown>
        readonly signature: Record<string, string>
      }
      const signed = opened.slice('{"data":'.length, opened.lastIndexOf(',"signature":'))
      const { items } = yield* client.system.listPublicKeys()
      const published = items.find(({ kid }) => kid === inner.signature["kid"])
      const raw = Buffer.from(published?.public_key ?? "", "base64")
      assert.strictEqual(createHash("sha256").update(raw).digest("hex").slice(0, 16), published?.kid)
      const publicKey = createPublicKey({
        key: { kty: "OKP", crv: "Ed25519", x: raw.toString("base64url") },
        format: "jwk"
      })
      assert.isTrue(verify(null, Buffer.from(signed), publicKey, Buffer.from(inner.signature["value"] ?? "", "base64")))
      assert.strictEqual(inner.data["kind"], "offline")
      const fingerprint = createHash("sha256").update("air-gapped").digest("hex")
      assert.strictEqual(inner.data["binding_hash"], fingerprint)
    })
  )
})
