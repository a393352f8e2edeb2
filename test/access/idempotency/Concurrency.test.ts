/** The requests with an Idempotency-Key that a node runs at once. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Latch, Layer, Queue } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import { Api } from "../../../src/Api.ts"
import { Idempotency } from "../../../src/access/idempotency/Idempotency.ts"
import * as IdempotencyHttp from "../../../src/access/idempotency/IdempotencyHttp.ts"
import { Foundations } from "../../support/database/Services.ts"

const { customers, reports } = Api.groups

layer(Layer.provideMerge(IdempotencyHttp.layer, Foundations))("Exports with an Idempotency-Key", (it) => {
  it.effect("wait for each other, and no other request waits for them", () =>
    Effect.gen(function* () {
      const once = yield* Idempotency
      const begun = yield* Queue.unbounded<string>()
      const open = yield* Latch.make()
      const send = (endpoint: HttpApiEndpoint.Top, key: string) => {
        const init = { method: endpoint.method, headers: { "idempotency-key": key } }
        const request = HttpServerRequest.fromWeb(new Request(`http://localhost${endpoint.path}`, init))
        const handler = Effect.andThen(
          Queue.offer(begun, endpoint.path),
          Effect.as(open.await, HttpServerResponse.empty({ status: 204 }))
        )
        return (once(handler, { endpoint } as never) as typeof handler).pipe(
          Effect.provideService(HttpServerRequest.HttpServerRequest, request),
          Effect.provideService(HttpRouter.RouteContext, { params: {}, route: undefined as never }),
          Effect.forkChild({ startImmediately: true })
        )
      }
      const fibers = [
        ...(yield* Effect.forEach(["1", "2", "3"], (key) => send(reports.endpoints.createExport, key))),
        ...(yield* Effect.forEach(["4", "5", "6", "7"], (key) => send(customers.endpoints.create, key)))
      ]
      const paths = yield* Queue.takeN(begun, 6)
      assert.strictEqual(paths.filter((path) => path === "/api/v1/reports/exports").length, 2)
      yield* open.open
      for (const { status } of yield* Fiber.joinAll(fibers)) assert.strictEqual(status, 204)
    })
  )
})
