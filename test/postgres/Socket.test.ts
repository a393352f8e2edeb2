import { createServer, type Server, type Socket } from "node:net"
import type { Duplex } from "node:stream"
import { connect, createServer as createTlsServer } from "node:tls"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { connector, targetOf } from "../../src/postgres/Socket.ts"
import { certificate, privateKey } from "../support/Http.ts"

const target = (address: string) => targetOf(new URL(address))

/** A server on this machine that treats each connection as told, and its target. */
const serving = (treat: (socket: Socket) => void, tls = false) =>
  Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const made = tls
        ? createTlsServer({ cert: certificate, key: privateKey }, (socket) => treat(socket.resume()))
        : createServer((socket) => treat(socket.resume()))
      const server = made.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
  ).pipe(
    Effect.map((server) => {
      const address = server.address()
      return { host: "127.0.0.1", port: typeof address === "object" ? (address?.port ?? 0) : 0, name: "test", tls }
    })
  )

/** Answers the greeting with a request and gives what ended the connection: the error's message, or "closed". */
const endOf = (socket: Duplex) =>
  Effect.callback<string>((resume) => {
    socket.once("data", () => socket.write("request"))
    socket.on("error", (error) => resume(Effect.succeed(error.message)))
    socket.on("close", () => resume(Effect.succeed("closed")))
  })

it.live("gives up on a server that falls silent with a request unanswered", () =>
  Effect.gen(function* () {
    const silent = yield* serving((socket) => void socket.write("greeting"))
    assert.strictEqual(yield* endOf(connector(silent, 20)()), "The server stopped answering")
  }).pipe(Effect.scoped)
)

it.live("gives up on a server that accepts a connection and says nothing", () =>
  Effect.gen(function* () {
    const mute = yield* serving(() => {})
    assert.strictEqual(yield* endOf(connector(mute, 0, 20)()), "The server does not answer")
  }).pipe(Effect.scoped)
)

it.live("gives up on a silent server behind TLS as well, and not on one that answers", () =>
  Effect.gen(function* () {
    const encrypted = (target: Parameters<typeof connector>[0]) =>
      connect({ socket: connector(target, 100)(), ca: certificate, servername: "localhost" })
    const silent = yield* serving((socket) => void socket.write("greeting"), true)
    assert.strictEqual(yield* endOf(encrypted(silent)), "The server stopped answering")
    const answering = yield* serving((socket) => {
      socket.write("greeting")
      // Idle for longer than a silence may last.
      socket.once("data", () => socket.write("answer", () => setTimeout(() => socket.destroy(), 300)))
    }, true)
    assert.strictEqual(yield* endOf(encrypted(answering)), "closed")
  }).pipe(Effect.scoped)
)

it.live("waits on while bytes come in, however long the whole answer takes", () =>
  Effect.gen(function* () {
    const slow = yield* serving((socket) => {
      let sent = 0
      const timer = setInterval(() => {
        if (sent++ < 20) socket.write("part")
        else socket.end(() => clearInterval(timer))
      }, 10)
    })
    assert.strictEqual(yield* endOf(connector(slow, 100)()), "closed")
  }).pipe(Effect.scoped)
)

it("reads where an address points, and names it without its password", () => {
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
