/** The documents' examples: they are those of a run of the service, and every operation and every type of event has one. */
import { createHmac } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { openApiDocument } from "../../../src/edge/documents/Document.ts"
import { readExamples } from "../../../src/edge/documents/Examples.ts"
import { eventTypes } from "../../../src/ledger/events/EventType.ts"
import { verifyWebhook } from "../../../src/ledger/webhooks/VerifyWebhook.ts"
import { operations } from "../../contract/cases/Surface.ts"
import { Recorder } from "./recording/Recorder.ts"
import { story } from "./recording/Story.ts"

const file = fileURLToPath(new URL("../../../schema/examples.json", import.meta.url))
const howTo = "add a line to a chapter in test/edge/documents/recording/, then run `npm run examples`"

layer(Recorder.layer, { timeout: "1 minute" })("The examples", (it) => {
  it.effect("are those of a run of the service (otherwise run npm run examples)", () =>
    Effect.gen(function* () {
      const recorded = yield* story
      const text = `${JSON.stringify(recorded, null, 2)}\n`
      if (process.env["RECORD_EXAMPLES"] === "true") writeFileSync(file, text)
      const kept = readExamples()
      for (const [id, example] of Object.entries(recorded.operations))
        assert.deepStrictEqual(kept.operations[id], example, `${id} has another example: run \`npm run examples\``)
      assert.isTrue(readFileSync(file, "utf8") === text, "run `npm run examples`")
    })
  )
})

/** Operations whose responses have no example, each with the reason. */
const without: { readonly [operationId: string]: string } = {
  getMetrics: "Its text is Prometheus' and different in each run."
}

describe("Every operation", () => {
  const kept = readExamples().operations
  for (const { answers, body, id, params } of operations) {
    if (id in without) continue
    it(`has an example: ${id}`, () => {
      const example = kept[id]
      assert.isDefined(example, `${id} has no example: ${howTo}`)
      if (body !== undefined) assert.isDefined(example.body, `${id} has no example of its body: ${howTo}`)
      for (const { name } of params)
        assert.property(example.parameters, name, `${id} has no example of ${name}: ${howTo}`)
      // 206 is a piece of the example of 200.
      for (const [status, { media }] of answers)
        if (status < 300 && status !== 206 && media.length > 0)
          assert.property(example.responses, String(status), `${id} has no example of its response ${status}: ${howTo}`)
    })
  }
})

describe("Every type of event", () => {
  const { webhooks } = openApiDocument() as unknown as {
    readonly webhooks: Record<string, { readonly post: Described }>
  }
  const { secret } = readExamples().deliveries
  for (const type of eventTypes) {
    it(`has an example whose signatures the document's secret verifies: ${type}`, () => {
      const { description, parameters, requestBody } = webhooks[type]!.post
      assert.include(description, secret)
      const { example } = requestBody.content["application/json"]
      assert.isDefined(example, `${type} has no example: ${howTo}`)
      const headers: Record<string, string> = Object.fromEntries(
        parameters.map(({ name, example }) => [name, String(example)])
      )
      const body = JSON.stringify(example)
      const { "webhook-id": id = "", "webhook-timestamp": at = "" } = headers
      const nowSeconds = Number(at)
      const result = verifyWebhook({ secret, headers, body, nowSeconds })
      assert.deepStrictEqual(result.valid && [result.type, result.deliveryId], [type, id])
      const standard = `${id}.${at}.${body}`
      const key = Buffer.from(secret.slice("whsec_".length), "base64")
      const signature = createHmac("sha256", key).update(standard).digest("base64")
      assert.strictEqual(headers["webhook-signature"], `v1,${signature}`)
    })
  }
})

interface Described {
  readonly description: string
  readonly parameters: ReadonlyArray<{ readonly name: string; readonly example: unknown }>
  readonly requestBody: { readonly content: { readonly "application/json": { readonly example: unknown } } }
}
