/** A balancer's own probes while many addresses behind it ask for the same probes. */
import { connect } from "node:net"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { IpNetwork } from "effect/net"
import { send } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const trustedProxies = [IpNetwork.fromStringUnsafe("127.0.0.0/8")]
const connections = 200
const probes = 100

/** Connections of a proxy, each for a client of its own, that ask for readiness again and again. */
const flood = Effect.fnUntraced(function* (port: number) {
  let responses = 0
  const ask = (index: number) =>
    Effect.acquireRelease(
      Effect.callback<ReturnType<typeof connect>>((resume) => {
        const bytes = `GET /readyz HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 10.0.${index >> 8}.${index & 255}\r\n\r\n`
        const socket = connect(port, "127.0.0.1", () => socket.write(bytes))
        socket.on("error", () => {})
        socket.on("data", () => {
          responses++
          socket.write(bytes)
          resume(Effect.succeed(socket))
        })
      }),
      (socket) => Effect.sync(() => socket.destroy())
    )
  yield* Effect.forEach(Array.from({ length: connections }).keys(), ask, { concurrency: "unbounded", discard: true })
  return () => responses
})

layer(TestServer.layerWith({ trustedProxies }), { timeout: 120_000 })("A trusted proxy's own probe", (it) => {
  it.effect("is answered under a flood of probes from clients behind the proxy", () =>
    Effect.gen(function* () {
      const { port } = yield* TestServer
      const responses = yield* flood(port)
      for (const path of ["/readyz", "/healthz", "/health"]) {
        const before = responses()
        const answers = yield* Effect.forEach(Array.from({ length: probes }), () => send(port, { path }))
        assert.deepStrictEqual([...new Set(answers.map(({ status }) => status))], [200], path)
        assert.isAbove(responses(), before, "the flood goes on")
      }
    }).pipe(Effect.scoped)
  )
})
