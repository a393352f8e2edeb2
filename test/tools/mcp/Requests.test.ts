/** The requests that tools send: an argument never leads to another operation than the tool's. */
import { assert, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import type { ContractOperation } from "../../../src/tools/mcp/Contract.ts"
import { callOperation } from "../../../src/tools/mcp/ToolCalls.ts"

const operation: ContractOperation = {
  id: "getLicense",
  group: "licenses",
  method: "GET",
  path: "/api/v1/licenses/{id}",
  summary: "",
  description: "",
  scopes: ["license:read"],
  reachesProducts: true,
  parameters: [{ name: "id", in: "path", description: undefined, required: true, schema: {} }],
  body: undefined,
  takesIdempotencyKey: false
}

/** The answer to a call, and the paths that were requested. */
const call = Effect.fnUntraced(function* (id: unknown) {
  const paths: Array<string> = []
  const client = HttpClient.make((request, url) => {
    paths.push(url.pathname)
    return Effect.succeed(HttpClientResponse.fromWeb(request, Response.json({ data: { id } })))
  })
  const service = { url: "http://127.0.0.1", token: Redacted.make("t") }
  const answer = yield* Effect.provideService(callOperation(service, operation, { id }), HttpClient.HttpClient, client)
  return { ...answer, paths }
})

it.effect("A path id that an address would resolve to another path is refused without a request", () =>
  Effect.gen(function* () {
    for (const id of ["..", ".", "", undefined, null]) {
      const { isError, paths, text } = yield* call(id)
      assert.deepStrictEqual([isError, paths], [true, []], String(id))
      assert.match(text, id === undefined || id === null ? /^getLicense needs id/ : /^id is no id/)
    }
  })
)

it.effect("Any other path id stays one segment of the operation's path", () =>
  Effect.gen(function* () {
    for (const id of ["../../products", "a/../b", "..;", "%2e%2e", "%2E%2E/products", "a?b#c", "..\\..", "a\nb", 7]) {
      const { isError, paths } = yield* call(id)
      assert.isFalse(isError, String(id))
      const [, api, v1, licenses, segment, ...more] = paths[0]!.split("/")
      assert.deepStrictEqual([api, v1, licenses, more], ["api", "v1", "licenses", []], String(id))
      assert.strictEqual(decodeURIComponent(segment!), String(id))
    }
  })
)
