/** The database session of `doctor`. It changes nothing. */
import { Effect, Redacted } from "effect"
import type { SqlError } from "effect/sql"
import { openConnection } from "../../platform/postgres/driver/Postgres.ts"

export type Row = Readonly<Record<string, unknown>>

export interface Database {
  row<A extends Row>(sql: string, parameters?: ReadonlyArray<unknown>): Effect.Effect<A, SqlError.SqlError>
  rows<A extends Row>(
    sql: string,
    parameters?: ReadonlyArray<unknown>
  ): Effect.Effect<ReadonlyArray<A>, SqlError.SqlError>
}

export const openDatabase = Effect.fnUntraced(function* (url: Redacted.Redacted<string>) {
  const session = yield* openConnection(url, {
    applicationName: "licensing-doctor",
    // Nodes set it too, and a pooler would refuse it.
    startupParameters: { statement_timeout: "5000" }
  })
  const rows: Database["rows"] = (sql, parameters = []) =>
    Effect.map(session.queryValues(`SELECT to_jsonb(answer) FROM (${sql}) AS answer`, parameters, false), (answers) =>
      answers.map(([answer]) => answer as never)
    )
  const row: Database["row"] = (sql, parameters) => Effect.map(rows(sql, parameters), ([first]) => first as never)
  return { row, rows } satisfies Database
})

/** The address without credentials. */
export const nameOf = (url: Redacted.Redacted<string>): string =>
  Redacted.value(url)
    .replace(/^[^/]*\/\/([^/]*@)?/, "")
    .replace(/\?.*/, "")
