import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { assertRefused } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"

layer(TestServer.layerWith({ baseUrl: "https://example.com/licensing" }))("A service below a path", (it) => {
  it.effect("takes requests with the path and without it", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      for (const path of [
        "/api/v1/me",
        "/licensing/api/v1/me",
        "/healthz",
        "/licensing/health",
        "/licensing",
        "/licensing?a=b"
      ])
        assert.strictEqual((yield* send({ path })).status, 200, path)
      const runtime = { method: "POST", body: {}, headers: { authorization: "License none" } }
      assertRefused(yield* send({ ...runtime, path: "/licensing/api/v1/license/validate" }), 401, "LICENSE_KEY_INVALID")
    })
  )

  it.effect("takes no path that only begins with the same letters, and the path once", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      for (const path of ["/licensingapi/v1/me", "/licensinghealth", "/licensing/licensing/health"])
        assert.strictEqual((yield* send({ path })).status, 404, path)
    })
  )

  it.effect("does not publish under the path what balancers refuse or ask themselves", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      for (const path of ["/metrics", "/healthz", "/readyz"]) {
        assert.strictEqual((yield* send({ path })).status, 200, path)
        for (const prefix of ["/licensing", "/licensing/licensing"])
          for (const end of ["", "?", "?a=b"])
            assertRefused(yield* send({ path: `${prefix}${path}${end}` }), 404, "NOT_FOUND")
      }
      for (const path of ["/licensing/%6detrics", "/licensing/metrics;a", "/licensing/metrics#a"])
        assertRefused(yield* send({ path }), 404, "NOT_FOUND")
    })
  )
})

layer(TestServer.layerWith({ baseUrl: "https://example.com/api" }))("A service below a path of its own", (it) => {
  it.effect("leaves that path in requests: the balancer has to remove it", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      assert.strictEqual((yield* send({ path: "/api/v1/me" })).status, 200)
      assert.strictEqual((yield* send({ path: "/api/api/v1/me" })).status, 404)
    })
  )
})
