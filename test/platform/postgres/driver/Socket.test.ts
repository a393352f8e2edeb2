import { createServer, type Server, type Socket } from "node:net"
import type { Duplex } from "node:stream"
import { connect, createServer as createTlsServer } from "node:tls"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { targetOf } from "../../../../src/platform/config/DatabaseAddress.ts"
import { connector } from "../../../../src/platform/postgres/driver/Socket.ts"
import { certificate, privateKey } from "../../../support/http/Http.ts"

const target = (address: string) => targetOf(new URL(address))

/** A local server that handles each connection as the given function says, and its target. */
const startServer = (onConnection: (socket: Socket) => void, tls = false) =>
  Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const listening = tls
        ? createTlsServer({ cert: certificate, key: privateKey }, (socket) => onConnection(socket.resume()))
        : createServer((socket) => onConnection(socket.resume()))
      const server = listening.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
  ).pipe(
    Effect.map((server) => {
      const address = server.address()
      return { host: "127.0.0.1", port: typeof address === "object" ? (address?.port ?? 0) : 0, name: "test", tls }
    })
  )

/** Answers the greeting with a request and returns how the connection ended: the error's message, or "closed". */
const endOf = (socket: Duplex) =>
  Effect.callback<string>((resume) => {
    socket.once("data", () => socket.write("request"))
    socket.on("error", (error) => resume(Effect.succeed(error.message)))
    socket.on("close", () => resume(Effect.succeed("closed")))
  })

it.live("gives up on a server that becomes silent while a request is unanswered", () =>
  Effect.gen(function* () {
    const silentServer = yield* startServer((socket) => void socket.write("greeting"))
    assert.strictEqual(yield* endOf(connector(silentServer, 20)()), "The server stopped answering")
  }).pipe(Effect.scoped)
)

it.live("gives up on a server that accepts a connection and sends nothing", () =>
  Effect.gen(function* () {
    const muteServer = yield* startServer(() => {})
    assert.strictEqual(yield* endOf(connector(muteServer, 0, { connectMillis: 20 })()), "The server does not answer")
  }).pipe(Effect.scoped)
)

it.live("gives up on a silent server behind TLS too, and not on one that answers", () =>
  Effect.gen(function* () {
    const encrypted = (target: Parameters<typeof connector>[0], silenceMillis: number) =>
      connect({ socket: connector(target, silenceMillis)(), ca: certificate, servername: "localhost" })
    const silentServer = yield* startServer((socket) => void socket.write("greeting"), true)
    assert.strictEqual(yield* endOf(encrypted(silentServer, 100)), "The server stopped answering")
    const answeringServer = yield* startServer((socket) => {
      socket.write("greeting")
      // Idle for longer than the silence limit.
      socket.once("data", () => socket.write("answer", () => setTimeout(() => socket.destroy(), 1_500)))
    }, true)
    assert.strictEqual(yield* endOf(encrypted(answeringServer, 1_000)), "closed")
  }).pipe(Effect.scoped)
)

it.live("keeps waiting while bytes arrive, even if the whole answer takes long", () =>
  Effect.gen(function* () {
    const slowServer = yield* startServer((socket) => {
      let sent = 0
      const timer = setInterval(() => {
        if (sent++ < 20) socket.write("part")
        else socket.end(() => clearInterval(timer))
      }, 10)
    })
    assert.strictEqual(yield* endOf(connector(slowServer, 100)()), "closed")
  }).pipe(Effect.scoped)
)

it("parses an address, and displays it without its password", () => {
  assert.deepStrictEqual(target("postgres://user:secret@db.example/licensing?sslmode=require"), {
    host: "db.example",
    port: 5432,
    name: "db.example:5432/licensing",
    tls: true
  })
  assert.isFalse(target("postgres://db.example/licensing").tls)
  assert.isFalse(target("postgres://db.example/licensing?sslmode=disable").tls)
  assert.strictEqual(target("postgres://user@[::1]:6000/x").host, "::1")
  assert.strictEqual(target("postgres:///x?host=/run/postgresql&port=6000").host, "/run/postgresql")
  assert.strictEqual(target("postgres://%2Frun%2Fpostgresql/x").host, "/run/postgresql")
})
