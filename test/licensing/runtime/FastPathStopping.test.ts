/** Plain requests while the service stops: they end as on the framework path, and nothing that was counted is lost. */
import { layer } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { contentTypes, runtimePaths } from "../../support/http/FastPath.ts"
import { assertAnswered, assertRefused, hold } from "../../support/http/Http.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { startServer, TestServer } from "../../support/http/TestServer.ts"
import { poll } from "../../support/rules/Poll.ts"

layer(TestServer.layer, { timeout: 60_000 })("A service that stops", (it) => {
  for (const way of runtimePaths) {
    it.effect(`answers what it has begun to read as it does before: the ${way} path`, () =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const node = yield* Scope.provide(startServer(), scope)
        const license = yield* issue()
        const path = "/api/v1/license/check"
        const headers = { authorization: `License ${license.license_key}` }
        const body = '{"fingerprint":"m"}'
        const known = yield* node.send({ method: "POST", path, headers, body })
        assertRefused(known, 404, "DEVICE_NOT_FOUND")
        assertAnswered(yield* license.post("rotate-key"), 200)
        const begun = yield* hold(
          node.port,
          `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${headers.authorization}\r\nContent-Type: ${contentTypes[way]}\r\n` +
            `Content-Length: ${body.length}\r\n\r\n${body.slice(0, 5)}`
        )
        const stopped = yield* Effect.forkChild(Scope.close(scope, Exit.void))
        const closed = node.send({ path: "/health" }).pipe(
          Effect.as(false),
          Effect.catchDefect(() => Effect.succeed(true))
        )
        yield* poll(closed, (isClosed) => isClosed)
        yield* begun.write(body.slice(5))
        assertRefused(yield* begun.answer, 401, "LICENSE_KEY_INVALID")
        yield* Fiber.join(stopped)
      })
    )
  }
})
