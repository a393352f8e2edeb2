/** `licensing doctor` with a replica for reports. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { Database } from "../../support/database/Database.ts"
import { operatorSettings, runLine } from "../../support/processes/CommandLine.ts"

interface Finding {
  readonly check: string
  readonly status: string
  readonly message: string
  readonly advice?: string
}

const setting = "LICENSING_REPORTS_DATABASE_URL"

layer(Database.layer, { excludeTestServices: true })("doctor", (it) => {
  it.effect("checks the replica that reports are read from", () =>
    Effect.gen(function* () {
      const settings = { ...(yield* operatorSettings), LICENSING_PORT: "0" }
      const findingOf = Effect.fnUntraced(function* (replica: Record<string, string>) {
        const { out } = yield* runLine({ ...settings, ...replica }, "doctor", "--json")
        const { checks } = JSON.parse(out) as { readonly checks: ReadonlyArray<Finding> }
        return checks.find(({ check }) => check === "replica")
      })
      const another = (database: Layer.Layer<Database>) =>
        Effect.map(Layer.build(Layer.fresh(database)), (context) => Redacted.value(Context.get(context, Database).url))

      assert.isUndefined(yield* findingOf({}))
      assert.strictEqual((yield* findingOf({ [setting]: settings.LICENSING_DATABASE_URL }))?.status, "ok")

      const unfit = {
        "postgres://licensing:chosen@127.0.0.1:1/licensing": "ECONNREFUSED",
        [yield* another(Database.layerUrlLatin1)]: "has the encoding LATIN1",
        [yield* another(Database.layerUrlEmpty)]: "does not have the tables of this database"
      }
      for (const [url, problem] of Object.entries(unfit)) {
        const finding = yield* findingOf({ [setting]: url })
        assert.strictEqual(finding?.status, "fail")
        assert.include(finding?.message, problem)
        assert.include(finding?.advice, setting)
        assert.notInclude(JSON.stringify(finding), "chosen")
      }

      const copy = yield* another(Database.layerUrl)
      const sql = yield* SqlClient.SqlClient
      // A replica's server may have another time zone.
      const name = new URL(copy).pathname.slice(1)
      yield* sql`ALTER DATABASE ${sql(name)} SET timezone TO 'Asia/Tokyo'`
      assert.strictEqual((yield* findingOf({ [setting]: copy }))?.status, "ok")
      yield* sql`UPDATE schema_migrations SET applied_at = applied_at + interval '1 second'`
      assert.strictEqual((yield* findingOf({ [setting]: copy }))?.status, "fail")
    }).pipe(Effect.scoped)
  )
})
