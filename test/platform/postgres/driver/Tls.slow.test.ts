/**
 * Connections to a PostgreSQL server with TLS: encrypted and verified if the address requires it, refused otherwise.
 */
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { getCACertificates, setDefaultCACertificates } from "node:tls"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { openSession, Postgres } from "../../../../src/platform/postgres/driver/Postgres.ts"
import { EmbeddedPostgres } from "../../../../src/platform/postgres/embedded/EmbeddedPostgres.ts"
import { serverAccount } from "../../../../src/platform/postgres/embedded/ServerProcess.ts"
import { certificate, privateKey } from "../../../support/http/Http.ts"

/** The address of a server whose certificate for localhost is not signed by a trusted authority. */
class TlsServer extends Context.Service<TlsServer, { address(sslmode: string): Redacted.Redacted<string> }>()(
  "licensing/test/Encrypted"
) {
  static readonly layer = Layer.effect(
    TlsServer,
    Effect.gen(function* () {
      const directory = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-tls-"))),
        (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
      )
      const account = yield* serverAccount
      const file = (name: string, text: string) => {
        const path = join(directory, name)
        writeFileSync(path, text, { mode: 0o600 })
        if (account !== undefined) chownSync(path, account.uid, account.gid)
        return path
      }
      // PostgreSQL's own user must be able to enter the folder.
      chmodSync(directory, 0o711)
      const settings = {
        ssl: "on",
        ssl_cert_file: file("server.crt", certificate),
        ssl_key_file: file("server.key", privateKey)
      }
      const server = Context.get(yield* Layer.build(EmbeddedPostgres.layer({ directory, settings })), EmbeddedPostgres)
      return {
        address: (sslmode) => {
          const url = new URL(Redacted.value(server.url))
          url.hostname = "localhost"
          url.searchParams.set("sslmode", sslmode)
          return Redacted.make(url.href)
        }
      }
    })
  ).pipe(Layer.provide(NodeFileSystem.layer))
}

const isEncrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"

/** This process trusts the test's certificate until the scope closes. */
const trustCertificate = Effect.acquireRelease(
  Effect.sync(() => {
    const before = getCACertificates()
    setDefaultCACertificates([...before, certificate])
    return before
  }),
  (before) => Effect.sync(() => setDefaultCACertificates(before))
)

layer(TlsServer.layer, { excludeTestServices: true, timeout: 60_000 })("A PostgreSQL server with TLS", (it) => {
  it.effect("receives unencrypted connections only if the address disables TLS", () =>
    Effect.gen(function* () {
      const { address } = yield* TlsServer
      const session = yield* openSession(address("disable"))
      assert.deepStrictEqual(yield* session.values(isEncrypted), [[false]])
    })
  )

  for (const sslmode of ["prefer", "require", "verify-full"]) {
    it.effect(`must present a trusted certificate with sslmode=${sslmode}`, () =>
      Effect.gen(function* () {
        const { address } = yield* TlsServer
        const refused = yield* Effect.flip(Effect.scoped(openSession(address(sslmode))))
        assert.include(JSON.stringify(refused), "DEPTH_ZERO_SELF_SIGNED_CERT")
        yield* trustCertificate
        const session = yield* openSession(address(sslmode))
        assert.deepStrictEqual(yield* session.values(isEncrypted), [[true]])
      })
    )
  }

  it.effect("is reported as lost when it ends a connection", () =>
    Effect.gen(function* () {
      const { address } = yield* TlsServer
      yield* trustCertificate
      const other = yield* openSession(address("disable"))
      const session = yield* openSession(address("require"))
      const [[pid]] = (yield* session.values("SELECT pg_backend_pid()")) as [[number]]
      yield* other.values("SELECT pg_terminate_backend($1)", [pid])
      yield* session.lost
    })
  )

  it.effect("serves the pools of the service over TLS", () =>
    Effect.gen(function* () {
      const { address } = yield* TlsServer
      yield* trustCertificate
      const services = yield* Layer.build(Postgres.layer({ url: address("require"), maxConnections: 4 }))
      const sql = Context.get(services, SqlClient.SqlClient)
      const { pipelined, customPlanned } = Context.get(services, Postgres)
      const [first] = yield* sql.unsafe<{ ssl: boolean }>(isEncrypted)
      const [second] = yield* customPlanned.unsafe<{ ssl: boolean }>(isEncrypted)
      const [third] = yield* pipelined(sql.unsafe<{ ssl: boolean }>(isEncrypted))
      assert.deepStrictEqual([first?.ssl, second?.ssl, third?.ssl], [true, true, true])
      const [long] = yield* sql<{ text: string }>`SELECT repeat('0123456789', 100000) AS text`
      assert.lengthOf(long?.text ?? "", 1_000_000)
    })
  )
})
