/** Servers that no start can use: the first answer ends it with one line. Only a server that is not there yet is tried again. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer, connect as dial, type Server, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { TLSSocket } from "node:tls"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Redacted } from "effect"
import { Hex } from "effect/encoding"
import { SqlError } from "effect/sql"
import { inject } from "vitest"
import { openSession, Postgres } from "../../../../src/platform/postgres/driver/Postgres.ts"
import { remedyOf } from "../../../../src/platform/postgres/driver/Remedies.ts"
import { certificate, privateKey } from "../../../support/http/Http.ts"

/** The refusal of a start with this database. */
const refusal = (url: string) =>
  Effect.map(
    Effect.flip(Effect.scoped(Layer.build(Postgres.layer({ url: Redacted.make(url) })))),
    ({ message }) => message
  )

/** A server on this machine that counts its connections. */
const serving = (treat: (socket: Socket, count: number) => void) =>
  Effect.acquireRelease(
    Effect.callback<{ server: Server; port: number; seen: { connections: number } }>((resume) => {
      const seen = { connections: 0 }
      const server = createServer((socket) => {
        socket.on("error", () => {})
        treat(socket, ++seen.connections)
      }).listen(0, "127.0.0.1", () => {
        const address = server.address()
        resume(Effect.succeed({ server, port: typeof address === "object" ? (address?.port ?? 0) : 0, seen }))
      })
    }),
    ({ server }) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
  )

/** Passes a connection on to a server. */
const pipeTo = (socket: Socket, server: { readonly host: string; readonly port: number }) => {
  const other = dial(server)
  other.on("error", () => socket.destroy())
  socket.on("close", () => other.destroy())
  other.on("close", () => socket.destroy())
  socket.pipe(other).pipe(socket)
}

/** Answers the first bytes with a text, and leaves the connection open. */
const answering = (text: string) => (socket: Socket) => void socket.once("data", () => socket.write(text))

/** Refuses a connection as PostgreSQL does. */
const refusing = (code: string, message: string) => {
  const fields = `SFATAL\0VFATAL\0C${code}\0M${message}\0\0`
  const length = Buffer.alloc(4)
  length.writeInt32BE(fields.length + 4)
  return answering(`E${length.toString("latin1")}${fields}`)
}

const correctAddress = "Correct the host and the port in LICENSING_DATABASE_URL."

layer(Layer.empty, { excludeTestServices: true })("A start", (it) => {
  for (const encoding of ["LATIN1", "SQL_ASCII"]) {
    it.effect(`refuses a database whose encoding is ${encoding}`, () =>
      Effect.gen(function* () {
        const address = new URL(inject("database").url)
        const admin = yield* openSession(Redacted.make(address.href))
        const name = `licensing_test_${Hex.random(12)}`
        yield* Effect.acquireRelease(
          admin.values(
            `CREATE DATABASE ${name} TEMPLATE template0 ENCODING '${encoding}' LOCALE_PROVIDER libc LOCALE 'C'`
          ),
          () => Effect.orDie(admin.values(`DROP DATABASE ${name} WITH (FORCE)`))
        )
        address.pathname = name
        const message = yield* refusal(address.href)
        assert.include(message, `/${name} has the encoding ${encoding}; the service needs UTF8`)
        assert.notInclude(message, "\n")
      }).pipe(Effect.scoped)
    )
  }

  it.effect("waits for a server that takes no writes, as a standby before its promotion", () =>
    Effect.gen(function* () {
      const address = new URL(inject("database").url)
      const admin = yield* openSession(Redacted.make(address.href))
      const name = `licensing_test_${Hex.random(12)}`
      yield* Effect.acquireRelease(admin.values(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8'`), () =>
        Effect.orDie(admin.values(`DROP DATABASE ${name} WITH (FORCE)`))
      )
      yield* admin.values(`ALTER DATABASE ${name} SET default_transaction_read_only = on`)
      const upstream = { host: address.hostname, port: Number(address.port || "5432") }
      const again = yield* Deferred.make<void>()
      const { port, seen } = yield* serving((socket, count) => {
        if (count === 2) Deferred.doneUnsafe(again, Effect.void)
        pipeTo(socket, upstream)
      })
      address.hostname = "127.0.0.1"
      address.port = String(port)
      address.pathname = name
      const start = yield* Effect.forkScoped(Layer.build(Postgres.layer({ url: Redacted.make(address.href) })))
      yield* Effect.raceFirst(Deferred.await(again), Fiber.join(start))
      assert.isAtLeast(seen.connections, 2)
      yield* admin.values(`ALTER DATABASE ${name} RESET default_transaction_read_only`)
      yield* Fiber.join(start)
    }).pipe(Effect.scoped)
  )

  for (const sslmode of ["disable", "require"]) {
    for (const [name, text] of Object.entries({
      http: "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
      ssh: "SSH-2.0-OpenSSH_9.9\r\n",
      silentAfterOneByte: "2"
    })) {
      it.effect(`stops at a server that is not PostgreSQL: ${name}, sslmode=${sslmode}`, () =>
        Effect.gen(function* () {
          const { port, seen } = yield* serving(answering(text))
          const message = yield* refusal(`postgres://user:secret@127.0.0.1:${port}/x?sslmode=${sslmode}`)
          assert.strictEqual(
            message,
            `PostgreSQL at 127.0.0.1:${port}/x cannot be used: The server at this address is not PostgreSQL. ${correctAddress}`
          )
          assert.strictEqual(seen.connections, 1)
        }).pipe(Effect.scoped)
      )
    }
  }

  for (const sslmode of ["require", "verify-ca", "verify-full"]) {
    it.effect(`stops at a server without TLS where the address asks for TLS: sslmode=${sslmode}`, () =>
      Effect.gen(function* () {
        const { port, seen } = yield* serving(answering("N"))
        const message = yield* refusal(`postgres://user:secret@127.0.0.1:${port}/x?sslmode=${sslmode}`)
        assert.strictEqual(
          message,
          `PostgreSQL at 127.0.0.1:${port}/x cannot be used: The server does not support TLS. ` +
            "Switch TLS on in the server, or take sslmode out of LICENSING_DATABASE_URL if the network is your own."
        )
        assert.strictEqual(seen.connections, 1)
      }).pipe(Effect.scoped)
    )
  }

  it.effect("stops at a pooler that refuses the parameters of the connection", () =>
    Effect.gen(function* () {
      const { port, seen } = yield* serving(refusing("08P01", "unsupported startup parameter: statement_timeout"))
      const message = yield* refusal(`postgres://user:secret@127.0.0.1:${port}/x`)
      assert.include(
        message,
        "cannot be used: unsupported startup parameter: statement_timeout. If a pooler such as PgBouncer"
      )
      assert.strictEqual(seen.connections, 1)
    }).pipe(Effect.scoped)
  )

  for (const [code, text, remedy] of [
    ["28P01", 'password authentication failed for user "user"', "Correct the role or the password"],
    ["28000", "no pg_hba.conf entry for host", "pg_hba.conf, with TLS"],
    ["3D000", 'database "x" does not exist', "Create the database"]
  ] as const) {
    it.effect(`says what to do about ${code}`, () =>
      Effect.gen(function* () {
        const { port } = yield* serving(refusing(code, text))
        const url = `postgres://user:secret@127.0.0.1:${port}/x`
        const session = yield* Effect.flip(openSession(Redacted.make(url)))
        if (!SqlError.isSqlError(session)) return assert.fail(String(session))
        assert.include(remedyOf(session), remedy)
        // A replica has its own setting, and the databases of its primary.
        assert.notMatch(remedyOf(session, "LICENSING_REPORTS_DATABASE_URL")!, /LICENSING_DATABASE_URL|CREATE/)
      }).pipe(Effect.scoped)
    )
  }

  it.effect("asks for the authority of a certificate that it cannot verify, and trusts the one of sslrootcert", () =>
    Effect.gen(function* () {
      const database = new URL(inject("database").url)
      const upstream = { host: database.hostname, port: Number(database.port || "5432") }
      // Ends the encryption in front of the test's server.
      const { port } = yield* serving((socket) =>
        socket.once("data", () => {
          socket.write("S")
          const plain = new TLSSocket(socket, { isServer: true, cert: certificate, key: privateKey })
          const other = dial(upstream)
          for (const [one, next] of [
            [plain, other],
            [other, plain]
          ] as const)
            one.on("error", () => next.destroy()).on("close", () => next.destroy())
          plain.pipe(other).pipe(plain)
        })
      )
      database.hostname = "localhost"
      database.port = String(port)
      database.searchParams.set("sslmode", "verify-full")
      const message = yield* refusal(database.href)
      assert.match(message, /self-signed certificate.*\. Name the file of its certificate authority: sslrootcert=/)
      assert.include(message, "NODE_EXTRA_CA_CERTS")

      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-authority-"))),
        (path) => Effect.sync(() => rmSync(path, { recursive: true }))
      )
      const file = join(folder, "ca.pem")
      database.searchParams.set("sslrootcert", file)
      assert.include(
        yield* refusal(database.href),
        `sslrootcert in the database address cannot be read (ENOENT): ${file}`
      )
      writeFileSync(file, certificate)
      yield* Effect.scoped(Layer.build(Postgres.layer({ url: Redacted.make(database.href) })))
      assert.deepStrictEqual(yield* (yield* openSession(Redacted.make(database.href))).values("SELECT 1"), [[1]])
    }).pipe(Effect.scoped)
  )

  it.effect("tries again where a connection is refused, or ends without an answer, or the disk is full", () =>
    Effect.gen(function* () {
      const address = new URL(inject("database").url)
      const upstream = { host: address.hostname, port: Number(address.port || "5432") }
      const { port, seen } = yield* serving((socket, count) => {
        if (count === 1) return void socket.resetAndDestroy()
        if (count === 2) return void socket.destroy()
        if (count === 3) return refusing("53100", "could not write init file: No space left on device")(socket)
        pipeTo(socket, upstream)
      })
      address.hostname = "127.0.0.1"
      address.port = String(port)
      yield* Effect.scoped(Layer.build(Postgres.layer({ url: Redacted.make(address.href) })))
      assert.isAtLeast(seen.connections, 4)
    }).pipe(Effect.scoped)
  )
})
