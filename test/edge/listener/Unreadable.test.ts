/** Input that is no request, behind requests on the same connection: these are answered first, each with its own response. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { converse, statuses } from "../../support/http/Conversation.ts"
import { TestServer } from "../../support/http/TestServer.ts"

let codes = 0

const post = (token: string): string => {
  const body = JSON.stringify({ name: "P", code: `before-${++codes}` })
  return `POST /api/v1/products HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

layer(TestServer.layer)("Input that is no request", (it) => {
  it.effect("is refused after the responses to the requests before it", () =>
    Effect.gen(function* () {
      const { adminToken } = yield* TestServer
      for (const count of [0, 1, 3]) {
        const wanted = [...Array.from({ length: count }, () => 201), 400]
        for (const garbage of ["garbage\r\n\r\n", "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n"]) {
          const requests = Array.from({ length: count }, () => post(adminToken)).join("")
          assert.deepStrictEqual(statuses(yield* converse([`${requests}${garbage}`])), wanted)
        }
      }
    })
  )

  it.effect("leaves a large response before it complete", () =>
    Effect.gen(function* () {
      const received = yield* converse(["GET /metrics HTTP/1.1\r\nHost: x\r\n\r\ngarbage\r\n\r\n"])
      assert.deepStrictEqual(statuses(received), [200, 400])
    })
  )

  it.effect("is refused at once in the body of the request itself", () =>
    Effect.gen(function* () {
      const { adminToken } = yield* TestServer
      const chunked = post(adminToken).replace(/Content-Length.*/s, "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n")
      assert.deepStrictEqual(statuses(yield* converse([chunked])), [400])
      assert.deepStrictEqual(statuses(yield* converse([`${post(adminToken)}${chunked}`])), [201, 400])
    })
  )
})
