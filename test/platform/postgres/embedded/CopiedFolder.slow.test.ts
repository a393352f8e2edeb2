/** A data folder that was copied while its server runs: the copy never uses the server of the original. */
import { fileURLToPath } from "node:url"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, it } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { SqlClient } from "effect/sql"
import { Postgres } from "../../../../src/platform/postgres/driver/Postgres.ts"
import { EmbeddedPostgres, type Options } from "../../../../src/platform/postgres/embedded/EmbeddedPostgres.ts"
import { run } from "../../../../src/platform/postgres/embedded/ServerProcess.ts"
import { serverFolder } from "../../../support/database/DatabaseServer.ts"

const clientOn = Effect.fnUntraced(function* (directory: string, layer: (options: Options) => typeof embedded) {
  const { url } = Context.get(yield* Layer.build(layer({ directory, settings: { fsync: "off" } })), EmbeddedPostgres)
  return Context.get(yield* Layer.build(Postgres.layer({ url })), SqlClient.SqlClient)
})
declare const embedded: ReturnType<typeof EmbeddedPostgres.layer>

const postmaster = Effect.fnUntraced(function* (directory: string) {
  const files = yield* FileSystem.FileSystem
  return Number((yield* files.readFileString(`${directory}/postgres/postmaster.pid`)).split("\n")[0])
})

/** Leaves the folder's server running without a service, as kill -9 of the service does. */
const abandonServer = Effect.fnUntraced(function* (directory: string) {
  const owner = yield* ChildProcess.make(process.execPath, [
    fileURLToPath(new URL("../../../support/processes/EmbeddedPostgresOwner.ts", import.meta.url)),
    directory
  ])
  const ready = Stream.takeUntil(Stream.splitLines(Stream.decodeText(owner.stdout)), (line) => line === "ready")
  yield* Stream.runDrain(ready)
  yield* owner.kill({ killSignal: "SIGKILL" })
})

const copy = (from: string, to: string) =>
  Effect.map(run("/bin/cp", ["-a", from, to]), ({ code, output }) => assert.strictEqual(code, 0, output))

const starts = { "a service": EmbeddedPostgres.layer, "a command": EmbeddedPostgres.layerShared }

for (const [who, start] of Object.entries(starts)) {
  it.live(`gets a server of its own from ${who}, and the original keeps its server and its rows`, () =>
    Effect.gen(function* () {
      const directory = yield* serverFolder
      const copied = `${yield* serverFolder}/copy`
      yield* Effect.scoped(Effect.flatMap(clientOn(directory, start), (sql) => sql`CREATE TABLE place (name text)`))
      yield* abandonServer(directory)
      const leftover = yield* postmaster(directory)
      yield* copy(directory, copied)
      assert.strictEqual(yield* postmaster(copied), leftover)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const sql = yield* clientOn(copied, start)
          assert.notStrictEqual(yield* postmaster(copied), leftover)
          yield* sql`INSERT INTO place VALUES ('copy')`
        })
      )
      assert.strictEqual(yield* postmaster(directory), leftover)
      const sql = yield* clientOn(directory, EmbeddedPostgres.layer)
      assert.strictEqual(yield* postmaster(directory), leftover)
      assert.deepStrictEqual(yield* sql`SELECT name FROM place`, [])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
}

it.live("is found by the server's files, not by the path that the server was started with", () =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const folder = yield* serverFolder
    const [path, moved] = [`${folder}/data`, `${folder}/moved`]
    yield* Effect.scoped(clientOn(path, EmbeddedPostgres.layer))
    yield* abandonServer(path)
    const leftover = yield* postmaster(path)
    // The server continues in the folder that moved; the copy has the path that the server reports.
    yield* files.rename(path, moved)
    yield* copy(moved, path)
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* clientOn(path, EmbeddedPostgres.layer)
        assert.notStrictEqual(yield* postmaster(path), leftover)
      })
    )
    const sql = yield* clientOn(moved, EmbeddedPostgres.layer)
    assert.strictEqual(yield* postmaster(moved), leftover)
    assert.deepStrictEqual(yield* sql`SELECT 1 AS one`, [{ one: 1 }])
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)
