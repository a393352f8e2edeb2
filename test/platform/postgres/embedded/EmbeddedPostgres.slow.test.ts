import { fileURLToPath } from "node:url"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, it, layer } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, FileSystem, Layer, Redacted, Result, Schedule, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { SqlClient } from "effect/sql"
import { Postgres } from "../../../../src/platform/postgres/driver/Postgres.ts"
import { faultsOf } from "../../../../src/platform/postgres/embedded/DatabaseFolder.ts"
import { EmbeddedPostgres } from "../../../../src/platform/postgres/embedded/EmbeddedPostgres.ts"
import { run } from "../../../../src/platform/postgres/embedded/ServerProcess.ts"
import { serverFolder } from "../../../support/database/DatabaseServer.ts"
import { poll } from "../../../support/rules/Poll.ts"

const settings = { fsync: "off" }

/** A started server that stops when the scope closes. */
const startOn = (directory: string) =>
  Effect.map(Layer.build(EmbeddedPostgres.layer({ directory, settings })), Context.get(EmbeddedPostgres))

const clientOf = (url: Redacted.Redacted<string>) =>
  Effect.map(Layer.build(Postgres.layer({ url })), Context.get(SqlClient.SqlClient))

const postmaster = Effect.fnUntraced(function* (directory: string) {
  const files = yield* FileSystem.FileSystem
  return Number((yield* files.readFileString(`${directory}/postgres/postmaster.pid`)).split("\n")[0])
})

const refusalOf = <A, E extends { readonly message: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(Effect.scoped(effect)), ({ message }) => message)

/** A data folder with a database, which one start has created. Creating it takes longer than most tests. */
class Initialised extends Context.Service<Initialised, { readonly directory: string }>()("licensing/test/Initialised") {
  static readonly layer = Layer.effect(
    Initialised,
    Effect.gen(function* () {
      const directory = yield* serverFolder
      yield* Effect.scoped(startOn(directory))
      return Initialised.of({ directory })
    })
  ).pipe(Layer.provide(NodeServices.layer))
}

/** A copy of it. */
const initialisedFolder = Effect.gen(function* () {
  const { directory } = yield* Initialised
  const copy = yield* serverFolder
  const { code, output } = yield* run("/bin/cp", ["-a", `${directory}/.`, copy])
  assert.strictEqual(code, 0, output)
  return copy
})

it.live("creates a database on the first start and keeps it for the next start", () =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const directory = yield* serverFolder
    const first = yield* Effect.scoped(
      Effect.gen(function* () {
        const { url } = yield* startOn(directory)
        const sql = yield* clientOf(url)
        yield* sql`CREATE TABLE kept AS SELECT 'Zürich' AS place`
        const [row] =
          yield* sql`SELECT current_setting('listen_addresses') AS address, current_setting('server_encoding') AS encoding,
          current_setting('synchronous_commit') AS commits, current_setting('wal_segment_size') AS segment,
          datlocprovider = 'b' AS builtin, lower('Ä') AS lower
          FROM pg_database WHERE datname = current_database()`
        assert.deepStrictEqual(row, {
          address: "127.0.0.1",
          encoding: "UTF8",
          commits: "on",
          segment: "2MB",
          builtin: true,
          lower: "ä"
        })
        return url
      })
    )
    assert.isTrue(Exit.isFailure(yield* Effect.exit(postmaster(directory))))
    const { mode } = yield* files.stat(`${directory}/postgres.password`)
    assert.strictEqual(mode & 0o777, 0o600)

    const { url } = yield* startOn(directory)
    assert.strictEqual(new URL(Redacted.value(url)).password, new URL(Redacted.value(first)).password)
    assert.deepStrictEqual(yield* (yield* clientOf(url))`SELECT place FROM kept`, [{ place: "Zürich" }])
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)

it.live("syncs to disk before it acknowledges a write, and requires the password", () =>
  Effect.gen(function* () {
    const directory = yield* serverFolder
    const { url } = Context.get(yield* Layer.build(EmbeddedPostgres.layer({ directory })), EmbeddedPostgres)
    const sql = yield* clientOf(url)
    const [row] = yield* sql`SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS pages`
    assert.deepStrictEqual(row, { fsync: "on", pages: "on" })

    const address = new URL(Redacted.value(url))
    address.password = "wrong-secret"
    const message = yield* refusalOf(clientOf(Redacted.make(address.href)))
    assert.match(
      message,
      /^PostgreSQL at .* cannot be used: password authentication failed for user "postgres"\. Correct the role/
    )
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)

it.live("starts only one of two services that start together on an empty folder", () =>
  Effect.gen(function* () {
    const directory = yield* serverFolder
    const [first, second] = yield* Effect.all([Effect.result(startOn(directory)), Effect.result(startOn(directory))], {
      concurrency: 2
    })
    const [winner, loser] = Result.isSuccess(first) ? [first, second] : [second, first]
    assert.match(Result.isFailure(loser) ? loser.failure.message : "none", /^Another service is using the database in /)
    const sql = yield* clientOf((yield* Effect.fromResult(winner)).url)
    assert.deepStrictEqual(yield* sql`SELECT 1 AS one`, [{ one: 1 }])
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)

it.live("does not stop the server of another folder, even if postmaster.pid names it", () =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const [directory, other] = [yield* serverFolder, yield* serverFolder]
    yield* Effect.scoped(startOn(directory))
    const sql = yield* clientOf((yield* startOn(other)).url)
    yield* files.copyFile(`${other}/postgres/postmaster.pid`, `${directory}/postgres/postmaster.pid`)
    const own = yield* clientOf((yield* startOn(directory)).url)
    assert.notStrictEqual(yield* postmaster(directory), yield* postmaster(other))
    for (const client of [sql, own]) assert.deepStrictEqual(yield* client`SELECT 1 AS one`, [{ one: 1 }])
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)

it.live.skipIf(process.getuid?.() !== 0)("names the folder that the server's user cannot enter", () =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const directory = yield* serverFolder
    yield* files.makeDirectory(`${directory}/closed`, { mode: 0o700 })
    const message = yield* refusalOf(startOn(`${directory}/closed/data`))
    assert.include(message, `may not enter ${directory}/closed.`)
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)

it("reports in one line why the first start cannot initialise the folder", () => {
  const progress = "creating subdirectories ... ok\nrunning bootstrap script ... ok\n"
  const fault = 'FATAL:  could not write to file "base/4/2838": No space left on device'
  const output = `${progress}performing post-bootstrap initialization ... ${fault}\n\nchild process exited with exit code 1`
  assert.strictEqual(faultsOf(output), `performing post-bootstrap initialization ... ${fault}`)
  const refused = 'initdb: error: directory "/data" exists but is not empty'
  assert.strictEqual(faultsOf(`${progress}${refused}\ninitdb: hint: Empty it.`), refused)
  assert.strictEqual(faultsOf("spawn initdb ENOENT"), "spawn initdb ENOENT")
})

layer(Initialised.layer, { excludeTestServices: true, timeout: 60_000 })("A data folder with a database", (it) => {
  it.effect("refuses a second service on the same folder and does not disturb the first", () =>
    Effect.gen(function* () {
      const directory = yield* initialisedFolder
      const sql = yield* clientOf((yield* startOn(directory)).url)
      assert.match(yield* refusalOf(startOn(directory)), /^Another service is using the database in /)
      assert.deepStrictEqual(yield* sql`SELECT 1 AS one`, [{ one: 1 }])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("takes over the server that a killed service left behind", () =>
    Effect.gen(function* () {
      const directory = yield* initialisedFolder
      const owner = yield* ChildProcess.make(process.execPath, [
        fileURLToPath(new URL("../../../support/processes/EmbeddedPostgresOwner.ts", import.meta.url)),
        directory
      ])
      yield* owner.stdout.pipe(
        Stream.decodeText(),
        Stream.splitLines,
        Stream.takeUntil((line) => line === "ready"),
        Stream.runDrain
      )
      const leftover = yield* postmaster(directory)
      yield* owner.kill({ killSignal: "SIGKILL" })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const sql = yield* clientOf((yield* startOn(directory)).url)
          assert.strictEqual(yield* postmaster(directory), leftover)
          assert.deepStrictEqual(yield* sql`SELECT 1 AS one`, [{ one: 1 }])
        })
      )
      assert.isTrue(Exit.isFailure(yield* Effect.exit(postmaster(directory))))
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("starts despite a postmaster.pid whose process number now belongs to another process", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const directory = yield* initialisedFolder
      const stale = `${process.pid}\n${directory}/postgres\n1\n5432\n\n127.0.0.1\n1 1\nready\n`
      yield* files.writeFileString(`${directory}/postgres/postmaster.pid`, stale)
      const sql = yield* clientOf((yield* startOn(directory)).url)
      assert.deepStrictEqual(yield* sql`SELECT 1 AS one`, [{ one: 1 }])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("fails running statements when the server stops, restarts it, and continues with the same client", () =>
    Effect.gen(function* () {
      const directory = yield* initialisedFolder
      const sql = yield* clientOf((yield* startOn(directory)).url)
      yield* Effect.all(
        Array.from({ length: 8 }, () => sql`SELECT pg_sleep(0.01)`),
        { concurrency: 8 }
      )
      const slow = yield* Effect.forkChild(Effect.flip(sql`SELECT pg_sleep(60)`))
      const inTransaction = yield* Effect.forkChild(Effect.flip(sql.withTransaction(sql`SELECT pg_sleep(60)`)))
      const sleeping = sql`SELECT FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' AND state = 'active'`
      yield* poll(sleeping, (rows) => rows.length === 2)

      process.kill(yield* postmaster(directory), "SIGINT")
      assert.strictEqual((yield* Fiber.join(slow)).reason._tag, "ConnectionError")
      assert.strictEqual((yield* Fiber.join(inTransaction)).reason._tag, "ConnectionError")

      yield* Effect.retry(sql`SELECT 1 AS one`, {
        while: (error) => error.reason._tag === "ConnectionError",
        schedule: Schedule.spaced("20 millis")
      })
      const answers = yield* Effect.all(
        Array.from({ length: 20 }, () => sql`SELECT 1 AS one`),
        { concurrency: 20 }
      )
      assert.strictEqual(answers.length, 20)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("names the missing password file", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const directory = yield* initialisedFolder
      yield* files.remove(`${directory}/postgres.password`)
      assert.match(yield* refusalOf(startOn(directory)), /postgres\.password is missing/)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect(
    "reports the server's reason when it accepts no session, and blames the password only for a wrong one",
    () =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const directory = yield* initialisedFolder
        // Stands for any failure of a new session, such as a full disk.
        const broken = { ...settings, session_preload_libraries: "missing_library" }
        const message = yield* refusalOf(Layer.build(EmbeddedPostgres.layer({ directory, settings: broken })))
        assert.match(message, /^The embedded PostgreSQL accepts no session: .*"missing_library"/)
        assert.notInclude(message, "password")

        yield* files.writeFileString(`${directory}/postgres.password`, "another")
        assert.match(
          yield* refusalOf(startOn(directory)),
          /accepts no session: password authentication failed .* Restore the file postgres\.password/
        )
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("reports the server's reason when it does not start", () =>
    Effect.gen(function* () {
      const directory = yield* initialisedFolder
      const broken = Layer.build(EmbeddedPostgres.layer({ directory, settings: { shared_buffers: "nonsense" } }))
      assert.match(yield* refusalOf(broken), /does not start: .*invalid value for parameter "shared_buffers"/)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
