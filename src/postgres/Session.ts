// A connection as `SqlClient` uses it. What must stay true: an error says whether the connection lives on, and a transaction
// that the server rolled back never looks committed.
import type { PgConnection } from "@effect/sql-pg/PgConnection"
import { Effect, Predicate } from "effect"
import { type SqlConnection, SqlError } from "effect/sql"

/** What the driver says of a statement with a value that it has no bytes for: the only failure without a word to the server. */
const unsent = "PgConnection: Failed to encode query"

const unavailableStates = ["57P01", "57P02", "57P03", "53300"]

/** The server's own code of an error; none when the driver or the network failed, whose errors have no severity. */
const sqlStateOf = ({ reason: { cause } }: SqlError.SqlError): string | undefined =>
  Predicate.hasProperty(cause, "severity") && Predicate.hasProperty(cause, "code") ? String(cause.code) : undefined

/** A server that is starting, stopping or full is a lost connection to the caller, though the driver files it as unknown. */
export const asConnectionError = (error: SqlError.SqlError): SqlError.SqlError => {
  const { cause, message = "" } = error.reason
  return unavailableStates.includes(sqlStateOf(error) ?? "")
    ? new SqlError.SqlError({ reason: new SqlError.ConnectionError({ cause, message, operation: "connect" }) })
    : error
}

export class Session implements SqlConnection.Connection {
  readonly #connection: PgConnection
  /** The connection broke: there is nothing to roll back on it. */
  lost = false
  constructor(connection: PgConnection) {
    this.#connection = connection
  }
  execute(sql: string, parameters: ReadonlyArray<unknown>) {
    return this.#rows(sql, parameters, true)
  }
  executeUnprepared(sql: string, parameters: ReadonlyArray<unknown>) {
    return this.#rows(sql, parameters, false)
  }
  executeRaw(sql: string, parameters: ReadonlyArray<unknown>) {
    return this.#watched(this.#connection.query(sql, parameters))
  }
  executeValues(sql: string, parameters: ReadonlyArray<unknown>) {
    return this.#watched(this.#connection.queryValues(sql, parameters))
  }
  executeValuesUnprepared(sql: string, parameters: ReadonlyArray<unknown>) {
    return this.#watched(this.#connection.queryValues(sql, parameters, false))
  }
  executeStream(sql: string, parameters: ReadonlyArray<unknown>) {
    return this.#connection.stream(sql, parameters)
  }
  #rows(sql: string, parameters: ReadonlyArray<unknown>, prepare: boolean) {
    return Effect.map(this.#watched(this.#connection.query(sql, parameters, prepare)), (result) => result.rows)
  }
  #watched<A>(answer: Effect.Effect<A, SqlError.SqlError>): Effect.Effect<A, SqlError.SqlError> {
    return Effect.catch(answer, (error) => {
      if (sqlStateOf(error) !== undefined) return Effect.fail(asConnectionError(error))
      // Known at once, so that a transaction sent as a whole is not sent without the statement.
      if (error.reason.message === unsent) return Effect.fail(error)
      if (error.reason._tag === "ConnectionError") this.lost = true
      // The driver's pool hears of a broken connection only after the failed fiber had its turn. Without the pause the next
      // statement of this fiber would be given the same connection.
      return Effect.andThen(Effect.yieldNow, Effect.fail(error))
    })
  }
}

export const isAlive = (connection: SqlConnection.Connection): boolean =>
  !(connection instanceof Session && connection.lost)

// The server answers COMMIT in a failed transaction with ROLLBACK and no error. Whoever swallowed the failed statement's
// error would take the lost change for stored.
export const commit = (connection: SqlConnection.Connection): Effect.Effect<void, SqlError.SqlError> =>
  Effect.flatMap(connection.executeRaw("COMMIT", []), (result) =>
    Predicate.hasProperty(result, "command") && result.command === "COMMIT"
      ? Effect.void
      : Effect.fail(
          new SqlError.SqlError({
            reason: new SqlError.UnknownError({
              cause: new Error("COMMIT was answered with ROLLBACK"),
              message: "The transaction was rolled back: a statement in it had failed",
              operation: "commit"
            })
          })
        )
  )
