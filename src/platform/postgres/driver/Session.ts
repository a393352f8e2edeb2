// A connection as `SqlClient` uses it. What must stay true: an error shows whether the connection is still usable, and a
// transaction that the server rolled back never appears committed.
import type { PgConnection } from "@effect/sql-pg/PgConnection"
import type { ErrorFields } from "@effect/sql-pg/PgProtocol"
import { Effect, Predicate } from "effect"
import { type SqlConnection, SqlError } from "effect/sql"
import { Deadline } from "./Deadline.ts"

/**
 * The server is stopping, has crashed, is starting or is full, or it ended the session: its database was dropped, it or its
 * transaction was idle for too long, or its transaction ran for too long.
 */
const unavailableStates = ["57P01", "57P02", "57P03", "53300", "57P04", "57P05", "25P03", "25P04"]

/** The server's fields of an error. Errors of the driver or the network have no severity, and no fields. */
const serverFieldsOf = ({ reason: { cause } }: SqlError.SqlError): ErrorFields | undefined =>
  Predicate.hasProperty(cause, "severity") ? (cause as ErrorFields) : undefined

/** Errors of these states, which the driver classifies as unknown, become connection errors. */
export const asConnectionError = (error: SqlError.SqlError): SqlError.SqlError => {
  const { cause, message = "" } = error.reason
  return unavailableStates.includes(serverFieldsOf(error)?.code ?? "")
    ? new SqlError.SqlError({ reason: new SqlError.ConnectionError({ cause, message, operation: "connect" }) })
    : error
}

// The server closes the connection after a FATAL error. If it sent one between two statements, the driver fails the next
// statement with that error and not with a connection error.
const endsConnection = (error: SqlError.SqlError): boolean => {
  const fields = serverFieldsOf(error)
  return fields === undefined
    ? error.reason._tag === "ConnectionError"
    : (fields.severityUnlocalized ?? fields.severity) !== "ERROR"
}

export class Session implements SqlConnection.Connection {
  readonly #connection: PgConnection
  /** The connection broke: no statement can be rolled back on it. The driver does not show this. */
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
    return Effect.mapError(answer, (error) => {
      if (endsConnection(error)) this.lost = true
      return asConnectionError(error)
    })
  }
}

export const isAlive = (connection: SqlConnection.Connection): boolean =>
  !(connection instanceof Session && connection.lost)

// In a failed transaction the server answers COMMIT with ROLLBACK and without an error, so a caller that ignored the failed
// statement would treat the lost change as stored. The driver checks this only in clients with its own pools.
export const commit = (connection: SqlConnection.Connection): Effect.Effect<void, SqlError.SqlError> =>
  Effect.withFiber((fiber) => {
    const deadline = fiber.getRef(Deadline)
    if (deadline?.givenUp === true) return Effect.andThen(connection.executeRaw("ROLLBACK", []), rolledBack)
    if (deadline !== undefined) deadline.committing = true
    const committed = Effect.mapError(connection.executeRaw("COMMIT", []), asCommitError)
    return Effect.flatMap(committed, (result) =>
      Predicate.hasProperty(result, "command") && result.command === "COMMIT" ? Effect.void : rolledBack
    )
  })

/** If the connection is lost during a COMMIT, the transaction may be committed or not. */
export const asCommitError = (error: SqlError.SqlError): SqlError.SqlError => {
  const { _tag, cause, message = "" } = error.reason
  return _tag === "ConnectionError"
    ? new SqlError.SqlError({ reason: new SqlError.ConnectionError({ cause, message, operation: commitOperation }) })
    : error
}

const commitOperation = "commit"

/** Whether a connection was lost during a COMMIT. */
export const isCommitLost = ({ reason }: SqlError.SqlError): boolean =>
  reason._tag === "ConnectionError" && reason.operation === commitOperation

const rolledBack = Effect.fail(
  new SqlError.SqlError({
    reason: new SqlError.UnknownError({
      cause: new Error("The transaction was not committed"),
      message: "The transaction was rolled back: a statement in it failed, or its request was abandoned",
      operation: commitOperation
    })
  })
)
