// A database of one's own for each test file: a copy of the migrated template, dropped at the end.
import { Context, Effect, Layer, Redacted } from "effect"
import { Hex } from "effect/encoding"
import type { SqlClient } from "effect/sql"
import { inject } from "vitest"
import { openSession, Postgres } from "../../src/postgres/Postgres.ts"

const createDatabase = (template: () => string) =>
  Effect.gen(function* () {
    const name = `licensing_test_${Hex.random(12)}`
    const server = new URL(inject("database").url)
    const admin = yield* openSession(Redacted.make(server.href))
    yield* Effect.acquireRelease(admin.values(`CREATE DATABASE ${name} TEMPLATE ${template()}`), () =>
      admin.values(`DROP DATABASE ${name} WITH (FORCE)`).pipe(Effect.orDie)
    )
    server.pathname = name
    return { url: Redacted.make(server.href) }
  }).pipe(Effect.orDie)

export class Database extends Context.Service<
  Database,
  {
    readonly url: Redacted.Redacted<string>
  }
>()("licensing/test/Database") {
  /** The address alone of a database with every table and no row. */
  static readonly layerUrl: Layer.Layer<Database> = Layer.effect(
    Database,
    createDatabase(() => inject("database").template)
  )

  /** The address alone of a database without any table. */
  static readonly layerUrlEmpty: Layer.Layer<Database> = Layer.effect(
    Database,
    createDatabase(() => "template0")
  )

  /** The clients of a database with every table and no row. */
  static readonly layer: Layer.Layer<Database | Postgres | SqlClient.SqlClient> = Layer.unwrap(
    Effect.map(Database, ({ url }) => Layer.orDie(Postgres.layer({ url, maxConnections: 8 })))
  ).pipe(Layer.provideMerge(Database.layerUrl))
}
