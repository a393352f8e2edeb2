/** API tokens from the command line, beside a running instance. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { operatorSettings, runLine } from "../../support/processes/CommandLine.ts"
import { poll } from "../../support/rules/Poll.ts"

layer(TestServer.layer, { timeout: 60_000 })("`licensing tokens`", (it) => {
  it.effect("lists what it created, without the token, and revokes it", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const settings = yield* operatorSettings
      const tokens = (...args: ReadonlyArray<string>) =>
        Effect.map(runLine(settings, "tokens", ...args), (result) => {
          assert.strictEqual(result.code, 0, result.error)
          return result
        })
      const { api_key, token } = JSON.parse((yield* tokens("create", "--name", "reports", "--json")).out)
      const call = send({ path: "/api/v1/products", headers: { authorization: `Bearer ${token}` } })
      assertAnswered(yield* call, 200)

      const listed = yield* tokens("list", "--json")
      assert.deepStrictEqual(
        JSON.parse(listed.out).map(({ name }: { readonly name: string }) => name),
        ["reports", "bootstrap"]
      )
      const text = (yield* tokens("list")).out
      assert.match(text, new RegExp(`^${api_key.id}  ${token.slice(0, 12)}…  active  .*  admin  reports$`, "m"))
      assert.notInclude(listed.out + text, token)

      const { client } = yield* TestServer
      const { id } = yield* client.products.create({ payload: { name: "Product", code: "product" } })
      const limited = yield* tokens("create", "--name", "shop", "--scopes", "product:read", "--product", id, "--json")
      assert.deepStrictEqual(JSON.parse(limited.out).api_key.product_ids, [id])
      assert.include(limited.error, `for ${id} only`)
      assert.match((yield* tokens("list")).out, new RegExp(`product:read ${id}  shop$`, "m"))
      const unknown = yield* runLine(
        settings,
        "tokens",
        "create",
        "--name",
        "a",
        "--scopes",
        "product:read",
        "--product",
        "b"
      )
      assert.strictEqual(unknown.code, 1)

      assert.strictEqual((yield* tokens("revoke", api_key.id)).out, `${api_key.id} revoked`)
      yield* poll(call, ({ status }) => status !== 200)
      assertRefused(yield* call, 401, "TOKEN_INVALID")
      assert.notInclude((yield* tokens("list")).out, api_key.id)
      assert.strictEqual((yield* runLine(settings, "tokens", "revoke", api_key.id)).code, 1)
    })
  )
})
