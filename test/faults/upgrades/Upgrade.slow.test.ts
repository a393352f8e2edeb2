/** A database of the first version, with records of each kind, is upgraded while its migrations are interrupted in every step. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it, layer } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer, References } from "effect"
import { SqlClient } from "effect/sql"
import { schemaText } from "../../../infra/scripts/schemaText.ts"
import { Postgres } from "../../../src/platform/postgres/driver/Postgres.ts"
import { run } from "../../../src/platform/postgres/migrations/Migrations.ts"
import { Database } from "../../support/database/Database.ts"
import { startService } from "../../support/processes/Processes.ts"
import { recordedAnswers, restore, token } from "./Fixture.ts"
import { migrateKilled, someChanges } from "./Killing.ts"
import { lacking, readRecords } from "./Records.ts"

const first = "0001_initial.sql"
const layerQuiet = Layer.succeed(References.MinimumLogLevel, "None")

const schemaOf = (url: Database["Service"]["url"]) =>
  Effect.gen(function* () {
    const context = yield* Layer.build(Layer.fresh(Postgres.layer({ url, maxConnections: 1 })))
    return yield* Effect.provideService(schemaText(), SqlClient.SqlClient, Context.get(context, SqlClient.SqlClient))
  })

const urlOf = (database: Layer.Layer<Database>) =>
  Effect.map(Layer.build(Layer.fresh(database)), (context) => Context.get(context, Database).url)

layer(Layer.merge(NodeServices.layer, layerQuiet), { excludeTestServices: true, timeout: 300_000 })(
  "The upgrade from the first version",
  (it) => {
    it.effect("is completed after interruptions in every step: each answer has what the first version answered", () =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const folder = yield* files.makeTempDirectoryScoped()
        yield* files.copyFile(
          new URL(`../../../schema/migrations/${first}`, import.meta.url).pathname,
          `${folder}/${first}`
        )
        const url = yield* urlOf(Database.layerUrlEmpty)
        yield* run({ url, folder })
        yield* restore(url)
        assert.isAbove(yield* migrateKilled(url, someChanges), 100)
        assert.strictEqual(yield* schemaOf(url), yield* schemaOf(yield* urlOf(Database.layerUrl)))

        const { port } = yield* Effect.provideService(
          startService({ LICENSING_RATE_MANAGEMENT: "0", LICENSING_BOOTSTRAP_TOKEN: token }),
          Database,
          { url }
        )
        const service = { base: `http://127.0.0.1:${port}`, token }
        const answers = yield* Effect.promise(() => readRecords(service))
        assert.deepStrictEqual(lacking(recordedAnswers(), answers), [])
      }).pipe(Effect.scoped)
    )
  }
)

describe("The comparison of answers", () => {
  it("finds what is missing or different, and takes what is new", () => {
    assert.deepStrictEqual(lacking({ a: [1, { b: 2 }] }, { a: [0, { b: 2, c: 3 }, 1], d: 4 }), [])
    for (const after of [{}, { a: [1] }, { a: [1, { b: 3 }] }, { a: [1, { c: 2 }] }])
      assert.lengthOf(lacking({ a: [1, { b: 2 }] }, after), 1)
    assert.lengthOf(lacking({ a: null, b: undefined }, { b: 0 }), 2)
  })
})
