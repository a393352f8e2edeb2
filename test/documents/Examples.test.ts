/** The documents' examples: they are those of a run of the service, and every operation has one. */
import { readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { readExamples } from "../../src/documents/Examples.ts"
import { operations } from "../contract/Surface.ts"
import { Recorder } from "./recording/Recorder.ts"
import { story } from "./recording/Story.ts"

const file = fileURLToPath(new URL("../../schema/examples.json", import.meta.url))
const howTo = "add a line to a chapter in test/documents/recording/, then run `npm run examples`"

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
      for (const [status, { media }] of answers)
        if (status < 300 && media.length > 0)
          assert.property(example.responses, String(status), `${id} has no example of its response ${status}: ${howTo}`)
    })
  }
})
