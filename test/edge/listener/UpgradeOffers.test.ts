/** Requests that offer an upgrade, as bytes: each is answered as if it offered none, and so is what comes after it. */
import { assert, layer } from "@effect/vitest"
import { Effect, Option } from "effect"
import { TestClock } from "effect/testing"
import { converse, statuses } from "../../support/http/Conversation.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"

let codes = 0

/** A request that makes a product. */
const post = (token: string, lines: string, chunked = false): string => {
  const body = JSON.stringify({ name: "P", code: `offered-${++codes}` })
  const framed = chunked
    ? `Transfer-Encoding: chunked\r\n\r\n5\r\n${body.slice(0, 5)}\r\n${(body.length - 5).toString(16)}\r\n${body.slice(5)}\r\n0\r\n\r\n`
    : `Content-Length: ${body.length}\r\n\r\n${body}`
  return `POST /api/v1/products HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n${lines}${framed}`
}

const get = (lines: string) => `GET /health HTTP/1.1\r\nHost: x\r\n${lines}\r\n`

const statusesOf = (pieces: ReadonlyArray<string>) => Effect.map(converse(pieces), statuses)

const requests = Effect.map(TestServer, ({ adminToken }) => [
  post(adminToken, ""),
  post(adminToken, offer),
  post(adminToken, ""),
  post(adminToken, offer, true),
  get("Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"),
  post(adminToken, "Upgrade: h2c\r\n"),
  get(offer),
  post(adminToken, offer.replace("Upgrade,", "close, Upgrade,"))
])
const answers = [201, 201, 201, 201, 200, 201, 200, 201]

layer(TestServer.layer)("Requests of which some offer an upgrade", (it) => {
  it.effect("are all answered when they come in one packet", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* statusesOf([(yield* requests).join("")]), answers)
    })
  )

  it.effect("are all answered when they come one after the other", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* statusesOf(yield* requests), answers)
    })
  )

  it.effect("are all answered when they come in small pieces", () =>
    Effect.gen(function* () {
      const pieces = (yield* requests).join("").match(/[\s\S]{1,37}/g) ?? []
      assert.deepStrictEqual(yield* statusesOf(pieces), answers)
    })
  )

  it.effect("are answered behind a response of many pieces", () =>
    Effect.gen(function* () {
      const document = "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
      const last = get(offer.replace("Upgrade,", "close, Upgrade,"))
      const received = converse([`${document}${get(offer)}${last}`])
      const inTime = yield* Effect.timeoutOption(received, "60 seconds").pipe(TestClock.withLive)
      assert.deepStrictEqual(Option.map(inTime, statuses), Option.some([200, 200, 200]))
    })
  )

  it.effect("are answered when one is the last of its connection", () =>
    Effect.gen(function* () {
      const { adminToken, exchange } = yield* TestServer
      const answer = yield* exchange(post(adminToken, offer.replace("Upgrade,", "close, Upgrade,")))
      assert.strictEqual(answer.status, 201)
    })
  )

  it.effect("leave no connection open whose client sends no more", () =>
    Effect.gen(function* () {
      const { adminToken } = yield* TestServer
      const received = converse([`${post(adminToken, "")}${post(adminToken, offer)}`], { ends: true })
      // Without the client's end the connection would wait for another request, more than a minute.
      const inTime = yield* Effect.timeoutOption(received, "30 seconds").pipe(TestClock.withLive)
      assert.deepStrictEqual(Option.map(inTime, statuses), Option.some([201, 201]))
    })
  )

  it.effect("that break off or are reset harm no other", () =>
    Effect.gen(function* () {
      const { adminToken, abandon, send } = yield* TestServer
      for (let round = 0; round < 20; round++) yield* abandon(`${post(adminToken, "")}${post(adminToken, offer)}`)
      assert.strictEqual((yield* send({ path: "/health" })).status, 200)
    })
  )
})
