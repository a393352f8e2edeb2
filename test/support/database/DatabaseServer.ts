/**
 * The PostgreSQL of a whole test run, as vitest's global setup: the server that LICENSING_TEST_DATABASE_URL names, else an
 * embedded one in a temporary folder. It holds a template with every migration applied; each test file gets a copy.
 */
import { tmpdir } from "node:os"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Clock, Config, Context, Effect, Exit, FileSystem, Layer, Option, Redacted, Scope } from "effect"
import { Hex } from "effect/encoding"
import type { TestProject } from "vitest/node"
import { openSession } from "../../../src/platform/postgres/driver/Postgres.ts"
import { EmbeddedPostgres } from "../../../src/platform/postgres/embedded/EmbeddedPostgres.ts"
import { run } from "../../../src/platform/postgres/migrations/Migrations.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly database: {
      /** The address of a database of the server, with a user that may create databases. */
      readonly url: string
      /** The name of the migrated database to copy. */
      readonly template: string
    }
  }
}

const folderPrefix = "licensing-test-"

/** A temporary data folder that the embedded server's user may enter. */
export const serverFolder = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const directory = yield* files.makeTempDirectoryScoped({ directory: tmpdir(), prefix: folderPrefix })
  yield* files.chmod(directory, 0o711)
  return directory
})

const staleMillis = 3_600_000

/** A killed run leaves its server running, as the service does. The next run after an hour stops it. */
const removeStale = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const now = yield* Clock.currentTimeMillis
  for (const name of (yield* files.readDirectory(tmpdir())).filter((name) => name.startsWith(folderPrefix))) {
    const directory = `${tmpdir()}/${name}`
    const modified = (yield* files.stat(directory)).mtime.pipe(Option.match({ onNone: () => now, onSome: Number }))
    if (now - modified < staleMillis) continue
    yield* Effect.scoped(Layer.build(EmbeddedPostgres.layer({ directory })))
    yield* files.remove(directory, { recursive: true })
  }
}).pipe(Effect.ignore)

const fastSettings = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" }

const embedded = Effect.gen(function* () {
  yield* removeStale
  const directory = yield* serverFolder
  // Autovacuum would change plans, statistics and the order of rows during a test.
  const settings = { ...fastSettings, max_connections: "300", autovacuum: "off" }
  return Context.get(yield* Layer.build(EmbeddedPostgres.layer({ directory, settings })), EmbeddedPostgres).url
})

/** A database with every migration applied, dropped with the scope, and the server that holds it. */
export const migratedDatabase = Effect.gen(function* () {
  const given = yield* Config.option(Config.Redacted("LICENSING_TEST_DATABASE_URL"))
  const server = Option.isSome(given) ? given.value : yield* embedded
  const name = `licensing_test_${Hex.random(12)}`
  const admin = yield* openSession(server)
  yield* Effect.acquireRelease(admin.values(`CREATE DATABASE ${name}`), () =>
    Effect.orDie(admin.values(`DROP DATABASE ${name} WITH (FORCE)`))
  )
  const url = new URL(Redacted.value(server))
  url.pathname = name
  yield* run({ url: Redacted.make(url.href) })
  return { server, name, url: Redacted.make(url.href) }
}).pipe(Effect.provide(NodeFileSystem.layer))

export default (project: TestProject) => {
  const scope = Scope.makeUnsafe()
  const started = Scope.provide(migratedDatabase, scope).pipe(
    Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
  )
  return Effect.runPromise(started).then(({ name, server }) => {
    project.provide("database", { url: Redacted.value(server), template: name })
    return () => Effect.runPromise(Scope.close(scope, Exit.void))
  })
}
