import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { OpenApi } from "effect/http-api"
import { Api } from "../../src/Api.ts"
import { ManagementScope } from "../../src/access/Scope.ts"
import { TestServer } from "../support/http/TestServer.ts"

/** The scopes that each resource's operations need to read and to write. */
const scopes: { readonly [resource: string]: readonly [read: ManagementScope, write: ManagementScope] } = {
  "/products": ["product:read", "product:write"],
  "/policies": ["product:read", "product:write"],
  "/features": ["product:read", "product:write"],
  "/orders": ["product:read", "product:write"],
  "/subscriptions": ["product:read", "product:write"],
  "/customers": ["license:read", "license:write"],
  "/api-keys": ["admin", "admin"],
  "/events": ["event:read", "event:read"]
}

/** Operations that need another scope than their resource. */
const exceptions: { readonly [path: string]: ManagementScope } = { "/api/v1/customers/{id}/erase": "admin" }

interface Operation {
  readonly method: string
  readonly path: string
  readonly required: ReadonlyArray<ManagementScope>
}

/** Every operation of the published document that needs a management token. */
const operations: ReadonlyArray<Operation> = Object.entries(OpenApi.fromApi(Api).paths).flatMap(([path, item]) =>
  Object.entries(item).flatMap(([method, operation]) => {
    const required = (operation as { readonly "x-required-scopes"?: ReadonlyArray<ManagementScope> })[
      "x-required-scopes"
    ]
    return required === undefined ? [] : [{ method: method.toUpperCase(), path, required }]
  })
)

/** For operations that any token may call: a key needs a scope. */
const anyScope: ManagementScope = "event:read"

const withoutIds = (path: string) => path.replaceAll(/\{\w+\}/g, "none")

layer(TestServer.layer)("Required scopes", (it) => {
  it("are published as the contract lists them", () => {
    for (const { method, path, required } of operations) {
      const resource = /^\/api\/v1(\/[a-z-]+)/.exec(path)?.[1] ?? ""
      const expected = scopes[resource]
      if (expected !== undefined)
        assert.deepStrictEqual(required, [exceptions[path] ?? expected[method === "GET" ? 0 : 1]], `${method} ${path}`)
    }
    const covered = Object.keys(scopes).filter((resource) =>
      operations.some(({ path }) => path.startsWith(`/api/v1${resource}`))
    )
    assert.deepStrictEqual(covered, Object.keys(scopes))
  })

  it.effect("are enforced on every operation, before the resource is looked up and the body is read", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const tokens = new Map<string, string>()
      for (const missing of ManagementScope.literals) {
        const otherScopes = ManagementScope.literals.filter((scope) => scope !== missing && scope !== "admin")
        const { token } = yield* client["api-keys"].create({
          payload: { name: `all but ${missing}`, scopes: otherScopes }
        })
        tokens.set(missing, token)
      }
      for (const { method, path, required } of operations) {
        for (const missing of required) {
          const body = method === "POST" || method === "PATCH" || method === "PUT" ? { body: "no JSON" } : {}
          const headers = { authorization: `Bearer ${tokens.get(missing)}` }
          const { error, headers: answered, status } = yield* send({ method, path: withoutIds(path), headers, ...body })
          const needed = required.join(", ")
          assert.deepStrictEqual(
            [status, error.code, error.detail],
            [403, "TOKEN_SCOPE_DENIED", needed],
            `${method} ${path}`
          )
          assert.include(answered["www-authenticate"], `error="insufficient_scope", scope="${required.join(" ")}"`)
        }
      }
    })
  )

  it.effect("are sufficient: a key with only them passes authorization", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      for (const { method, path, required } of operations) {
        const { api_key, token } = yield* client["api-keys"].create({
          payload: { name: "just enough", scopes: required.length === 0 ? [anyScope] : required }
        })
        const headers = { authorization: `Bearer ${token}` }
        const body = method === "POST" || method === "PATCH" || method === "PUT" ? { body: "no JSON" } : {}
        const { error, status } = yield* send({ method, path: withoutIds(path), headers, ...body })
        assert.notInclude([401, 403], status, `${method} ${path} ${error.code}`)
        yield* client["api-keys"].delete({ params: { id: api_key.id } })
      }
    })
  )
})
