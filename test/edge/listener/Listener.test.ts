import { connect } from "node:net"
import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Layer, Stream } from "effect"
import { SecureRandom } from "effect/crypto"
import { HttpServer, type HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { NetAddress } from "effect/net"
import { Identifiers } from "../../../src/contract/api/Identifier.ts"
import * as Listener from "../../../src/edge/listener/Listener.ts"
import { Settings } from "../../../src/platform/config/Config.ts"
import { assertRefused, exchange, send } from "../../support/http/Http.ts"

const Basis = Layer.mergeAll(
  Settings.layerTest({ port: 0 }),
  Identifiers.layer.pipe(Layer.provide(SecureRandom.layerWebCrypto))
)

type Operation = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  HttpServerError.HttpServerError,
  HttpServerRequest.HttpServerRequest
>

const nothing: Operation = Effect.succeed(HttpServerResponse.empty({ status: 200 }))

/** The port of a listener with these limits, over an operation. */
const listening = Effect.fnUntraced(function* (
  limits: Parameters<typeof Listener.layerWith>[0],
  operation: Operation = nothing
) {
  const server = Context.get(yield* Layer.build(Layer.fresh(Listener.layerWith(limits))), HttpServer.HttpServer)
  yield* server.serve(Effect.orDie(operation))
  return NetAddress.isInetAddress(server.address) ? server.address.port : 0
})

/** Writes to a connection and never ends the request: waits for the service to close it, and gives what came. */
const dawdle = (port: number, bytes: string) => exchange(port, bytes)

layer(Basis, { excludeTestServices: true })("A connection", (it) => {
  it.effect("on which a head comes too slowly is answered and closed", () =>
    Effect.gen(function* () {
      const port = yield* listening({ headersTimeout: 200, requestTimeout: 400, connectionsCheckingInterval: 50 })
      for (const bytes of ["GET /health HTTP/1.1\r\nHost: x\r\n", "G", "GET / HTTP/1.1\r\nX-Slow: aaaa"]) {
        const answer = yield* dawdle(port, bytes)
        assertRefused(answer, 400, "BAD_REQUEST")
        assert.strictEqual(answer.error.message, "The request did not arrive in time: send it again.")
        assert.strictEqual(answer.headers["connection"], "close")
      }
    }).pipe(Effect.scoped)
  )

  it.effect(
    "that was opened ahead of requests is closed without an answer, which would be taken for the next one's",
    () =>
      Effect.gen(function* () {
        const port = yield* listening({ headersTimeout: 200, connectionsCheckingInterval: 50 })
        const received = yield* Effect.callback<string>((resume) => {
          let text = ""
          const socket = connect(port, "127.0.0.1")
          socket.on("data", (bytes) => {
            text += bytes
          })
          socket.on("close", () => resume(Effect.succeed(text)))
        })
        assert.strictEqual(received, "")
      }).pipe(Effect.scoped)
  )

  it.effect("on which a body comes too slowly is closed, and the operation never has it", () =>
    Effect.gen(function* () {
      const read = yield* Deferred.make<void>()
      const reading = Effect.gen(function* () {
        yield* (yield* HttpServerRequest.HttpServerRequest).arrayBuffer
        yield* Deferred.succeed(read, undefined)
        return HttpServerResponse.empty({ status: 200 })
      })
      const limits = { headersTimeout: 200, requestTimeout: 400, connectionsCheckingInterval: 50 }
      const port = yield* listening(limits, reading)
      yield* dawdle(port, 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"slow":')
      assert.isFalse(yield* Deferred.isDone(read))
    }).pipe(Effect.scoped)
  )

  it.effect("on which a tunnel is asked for is told that there is none, and closed", () =>
    Effect.gen(function* () {
      const port = yield* listening({})
      const answer = yield* exchange(port, "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")
      assertRefused(answer, 405, "METHOD_NOT_ALLOWED")
      assert.strictEqual(answer.headers["connection"], "close")
      assert.strictEqual(answer.headers["allow"], "")
    }).pipe(Effect.scoped)
  )

  it.effect("on which a head has very many headers has each of them read, also what a proxy writes last", () =>
    Effect.gen(function* () {
      const echo = Effect.map(HttpServerRequest.HttpServerRequest, ({ headers }) =>
        HttpServerResponse.empty({ status: 200, headers: { "x-client": headers["x-forwarded-for"] ?? "" } })
      )
      const port = yield* listening({}, echo)
      const head = `GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${"A:b\r\n".repeat(3_000)}`
      const answer = yield* exchange(port, `${head}X-Forwarded-For: 192.0.2.1\r\n\r\n`)
      assert.strictEqual(answer.headers["x-client"], "192.0.2.1", answer.text)
    }).pipe(Effect.scoped)
  )

  it.effect("that is kept open is closed after its idle time", () =>
    Effect.gen(function* () {
      const port = yield* listening({ keepAliveTimeout: 200, connectionsCheckingInterval: 50 })
      assert.strictEqual((yield* dawdle(port, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")).status, 200)
    }).pipe(Effect.scoped)
  )

  it.effect("whose client does not take the answer is closed, and the answer given up", () =>
    Effect.gen(function* () {
      const ended = yield* Deferred.make<void>()
      const endless = Stream.fromEffectRepeat(Effect.succeed(new Uint8Array(65_536))).pipe(
        Stream.ensuring(Deferred.succeed(ended, undefined))
      )
      const port = yield* listening({ silenceTimeout: 300 }, Effect.succeed(HttpServerResponse.stream(endless)))
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          const socket = connect(port, "127.0.0.1", () => socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
          socket.on("error", () => {})
          return socket.pause()
        }),
        (socket) => Effect.sync(() => socket.destroy())
      )
      yield* Deferred.await(ended)
    }).pipe(Effect.scoped)
  )

  it.effect("beyond the most that are open is closed without an answer", () =>
    Effect.gen(function* () {
      const port = yield* listening({ connectionsMax: 2 })
      const hold = Effect.acquireRelease(
        Effect.callback<ReturnType<typeof connect>>((resume) => {
          const socket = connect(port, "127.0.0.1", () => resume(Effect.succeed(socket)))
        }),
        (socket) => Effect.sync(() => socket.destroy())
      )
      const held = [yield* hold, yield* hold]
      assert.strictEqual((yield* exchange(port, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")).text, "")
      held[0]!.destroy()
      const answered = send(port, { path: "/" }).pipe(
        Effect.map(({ status }) => status),
        Effect.catchDefect(() => Effect.succeed(0)),
        Effect.repeat({ until: (status) => status === 200 })
      )
      assert.strictEqual(yield* answered, 200)
    }).pipe(Effect.scoped)
  )

  it.effect("that brings a head beyond its size is answered and closed; one just below it is taken", () =>
    Effect.gen(function* () {
      const port = yield* listening({})
      const withHead = (length: number) =>
        exchange(
          port,
          `GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${"a".repeat(length)}\r\n\r\n`
        )
      assert.strictEqual((yield* withHead(15_000)).status, 200)
      for (const length of [16_384, 65_536, 1_000_000]) {
        const answer = yield* withHead(length)
        assertRefused(answer, 400, "BAD_REQUEST")
        assert.strictEqual(
          answer.error.message,
          "The request's head is larger than 16384 bytes: shorten the path or the headers."
        )
      }
    }).pipe(Effect.scoped)
  )

  it.effect("on which more comes than the request that was to be the last answers that one, and closes", () =>
    Effect.gen(function* () {
      const port = yield* listening({}, Effect.andThen(Effect.yieldNow, nothing))
      const last = "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
      for (const more of ["garbage", "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"]) {
        const answer = yield* exchange(port, `${last}${more}`)
        assert.strictEqual(answer.status, 200)
        assert.notInclude(answer.text, "HTTP/1.1")
      }
    }).pipe(Effect.scoped)
  )
})
