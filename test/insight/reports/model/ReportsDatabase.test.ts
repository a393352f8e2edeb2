import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { ReportsDatabase } from "../../../../src/insight/reports/model/ReportsDatabase.ts"
import { Settings } from "../../../../src/platform/config/Config.ts"
import { Database } from "../../../support/database/Database.ts"

const at = (reports: ReportsDatabase["Service"]) =>
  Effect.map(
    reports.sql<{ name: string; seqscan: string; application: string }>`
      SELECT current_database() AS name, current_setting('enable_seqscan') AS seqscan,
        current_setting('application_name') AS application`,
    ([row]) => row
  )

const build = (settings: Parameters<typeof Settings.layerTest>[0]) =>
  Effect.map(
    Layer.build(Layer.fresh(ReportsDatabase.layer.pipe(Layer.provide(Settings.layerTest(settings))))),
    (context) => Context.get(context, ReportsDatabase)
  )

layer(Database.layer)("The connections of reports", (it) => {
  it.effect("use the same database and the server's default planner settings", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [own] = yield* sql<{ name: string; seqscan: string }>`
        SELECT current_database() AS name, current_setting('enable_seqscan') AS seqscan`
      assert.strictEqual(own?.seqscan, "off")
      assert.deepStrictEqual(yield* Effect.flatMap(build({}), at), {
        name: own!.name,
        seqscan: "on",
        application: "licensing-reports"
      })
    })
  )

  it.effect("use the replica that the operator configures", () =>
    Effect.gen(function* () {
      const replica = Context.get(yield* Layer.build(Layer.fresh(Database.layerUrlEmpty)), Database)
      const reports = yield* build({ reportsDatabaseUrl: replica.url })
      const [own] = yield* (yield* SqlClient.SqlClient)<{ name: string }>`SELECT current_database() AS name`
      assert.notStrictEqual((yield* at(reports))?.name, own?.name)
    })
  )

  it.effect("do not start with a database that can be no replica, and name the setting to correct", () =>
    Effect.gen(function* () {
      const { url } = Context.get(yield* Layer.build(Layer.fresh(Database.layerUrlLatin1)), Database)
      const { message } = yield* Effect.flip(build({ reportsDatabaseUrl: url }))
      assert.match(
        message,
        / \(LICENSING_REPORTS_DATABASE_URL\) has the encoding LATIN1; .* Point LICENSING_REPORTS_DATABASE_URL at /
      )
    })
  )

  it.effect("are read-only, and see one snapshot", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const reports = yield* build({})
      const count = reports.sql<{ count: number }>`SELECT count(*) AS count FROM journals`
      const [before, after] = yield* reports.snapshot(
        Effect.gen(function* () {
          const [first] = yield* count
          yield* sql`INSERT INTO journals VALUES ('test', 1, now())`
          const [second] = yield* count
          return [first?.count, second?.count]
        })
      )
      assert.strictEqual(before, after)
      const written = yield* Effect.exit(reports.snapshot(reports.sql`DELETE FROM journals`))
      assert.strictEqual(written._tag, "Failure")
    })
  )
})
