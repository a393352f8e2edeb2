/** Bodies are decoded as by the schema library, and only the invalid parts of a body are searched for faults. */
import { assert, describe, it } from "@effect/vitest"
import { Exit, Schema } from "effect"
import type { HttpApiEndpoint } from "effect/http-api"
import fc from "fast-check"
import { Api } from "../../../src/Api.ts"
import { decoderOf, invalid } from "../../../src/access/requests/BodyDecoder.ts"
import { firstFaults } from "../../../src/access/requests/BodyFaults.ts"
import { bodySchema } from "../../../src/access/requests/RequestBody.ts"
import { bodiesNear } from "../../contract/cases/Arbitraries.ts"
import { operations } from "../../contract/cases/Surface.ts"

const endpoints = new Map(
  Object.values(Api.groups)
    .flatMap(({ endpoints }): ReadonlyArray<HttpApiEndpoint.Top> => Object.values(endpoints))
    .map((endpoint) => [`${endpoint.method} ${endpoint.path.replaceAll(/:(\w+)/g, "{$1}")}`, endpoint])
)

describe("the decoder of bodies agrees with the schema library", () => {
  for (const { body, example, id, method, path } of operations) {
    if (body === undefined) continue
    it(`for ${id}`, () => {
      const schema = bodySchema(endpoints.get(`${method} ${path}`)!) as Schema.Codec<unknown, unknown>
      const library = Schema.decodeUnknownExit(schema, { onExcessProperty: "error" })
      const decode = decoderOf(schema.ast)
      const agrees = (body: unknown) => {
        const expected = library(body)
        const decoded = decode(body)
        if (Exit.isSuccess(expected)) assert.deepStrictEqual(decoded, expected.value)
        else assert.strictEqual(decoded, invalid)
        // An invalid body has a fault, and a valid one none.
        assert.strictEqual(firstFaults(schema.ast, body).length > 0, Exit.isFailure(expected))
      }
      agrees(example)
      fc.assert(fc.property(bodiesNear(body, example as object), agrees), { numRuns: 100, seed: 1 })
    })
  }
})

describe("the first faults of a body", () => {
  it("are searched for only in its invalid parts", () => {
    let decoded = 0
    const Name = Schema.String.check(Schema.makeFilter((name: string) => ++decoded > 0 && name.length < 3))
    const { ast } = Schema.Struct({ records: Schema.Array(Schema.Struct({ name: Name })) })
    const records = [{ name: "long" }, ...Array(50).fill({ name: "a" }), { name: "longer" }]
    assert.strictEqual(decoderOf(ast)({ records }), invalid)
    assert.strictEqual(decoded, 1)
    assert.strictEqual(firstFaults(ast, { records }).length, 2)
    // Each valid name is decoded once for the JSON's faults, and once for those of validation.
    assert.isBelow(decoded, 120)
  })
})
