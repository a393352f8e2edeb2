/** SQL helpers shared by all services: transactions, keyset pages, decoding of rows, and constraint violations as refusals. */
import { Context, Effect, Schema, SchemaAST } from "effect"
import { type SqlClient, SqlError, type Statement } from "effect/sql"
import { refuse } from "../../../contract/api/Failure.ts"
import type { Keyset } from "../../../contract/api/Paging.ts"
import { instant } from "../driver/Parameters.ts"
import { HoldLimit, mayNotPause, retryTransaction } from "../driver/Transactions.ts"

/** Runs a command as one transaction, and retries it after a deadlock or serialization failure. Other SQL errors are defects. */
export const transaction =
  (sql: SqlClient.SqlClient) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, Exclude<E, SqlError.SqlError>, R> =>
    Effect.catch(retryTransaction(sql.withTransaction(withoutPauses(sql, self))), dieOnSqlError)

/** The transaction of an Idempotency-Key may be idle. A command within it takes locks, so the usual limit applies again. */
const withoutPauses = <A, E, R>(sql: SqlClient.SqlClient, self: Effect.Effect<A, E, R>) =>
  Effect.withFiber<A, E | SqlError.SqlError, R>((fiber) => {
    const depth = Context.getOrUndefined(fiber.context, sql.transactionService)?.[1] ?? 0
    return depth === 0 ? self : Effect.andThen(sql`SELECT ${mayNotPause(sql, fiber.getRef(HoldLimit))}`, self)
  })

/** A SQL error that no refusal describes is a defect: answered as INTERNAL_ERROR, and logged with its cause. */
const dieOnSqlError = <E>(error: E): Effect.Effect<never, Exclude<E, SqlError.SqlError>> =>
  SqlError.isSqlError(error) ? Effect.die(error) : Effect.fail(error as Exclude<E, SqlError.SqlError>)

/** The condition of a keyset page: the rows after the cursor, in descending order of (created_at, id). */
export const after = (sql: SqlClient.SqlClient, cursor: Keyset | undefined) =>
  cursor === undefined ? sql`TRUE` : sql`(created_at, id) < (${instant(Number(cursor.value))}, ${cursor.id})`

/** One equality for each filter that is given. */
export const equals = (sql: SqlClient.SqlClient, filters: { readonly [column: string]: string | undefined }) =>
  sql.and([
    sql`TRUE`,
    ...Object.entries(filters).flatMap(([column, value]) =>
      value === undefined ? [] : [sql`${sql(column)} = ${value}`]
    )
  ])

/** A time in a period, if the period has a start or an end. `from` is inclusive, `to` exclusive. */
export const within = (
  sql: SqlClient.SqlClient,
  column: string,
  { from, to }: { readonly from?: number; readonly to?: number }
) =>
  sql.and([
    from === undefined ? sql`TRUE` : sql`${sql.literal(column)} >= ${instant(from)}`,
    to === undefined ? sql`TRUE` : sql`${sql.literal(column)} < ${instant(to)}`
  ])

export const unionAll = (sql: SqlClient.SqlClient, [first, ...others]: ReadonlyArray<Statement.Fragment>) =>
  others.reduce((all, one) => sql`${all} UNION ALL ${one}`, first!)

/** Maps a violated constraint to its refusal, so that the database and the check before it give the same response. */
export const constraints =
  <const Refusals extends { readonly [constraint: string]: () => unknown }>(refusals: Refusals) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E | ReturnType<Refusals[keyof Refusals]>, R> =>
    Effect.catch(self, (error) => {
      const refusal = refusals[violatedConstraint(error) ?? ""]
      return Effect.fail(refusal === undefined ? error : refusal()) as Effect.Effect<
        never,
        E | ReturnType<Refusals[keyof Refusals]>
      >
    })

/** Maps a foreign key violation to the refusal for a record that is still referenced. */
export const refuseIfReferenced =
  <F>(refusal: () => F) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E | F, R> =>
    Effect.catch(
      self,
      (error): Effect.Effect<never, E | F> => Effect.fail(isForeignKeyViolation(error) ? refusal() : error)
    )

/** Whether a row references a missing row, or the deleted row is still referenced. */
export const isForeignKeyViolation = (error: unknown): boolean => sqlState(error) === "23503"

/** Whether the error is a violation of this constraint or unique index. */
export const violates = (error: unknown, constraint: string): boolean => violatedConstraint(error) === constraint

/** The SQLSTATE of a statement that fails because a row has changed since the decision. */
export const concurrentChange = "LS001"

/** The concurrent change that refuses the number of a node's group, because the group was given up. */
export const groupGivenUp = "LS003"

export const isConcurrentChange = (error: unknown): boolean =>
  sqlState(error) === concurrentChange || isGroupGivenUp(error)

export const isGroupGivenUp = (error: unknown): boolean => sqlState(error) === groupGivenUp

/** Whether the server has run out of disk, memory or connections. */
export const isOutOfResources = (error: unknown): boolean => sqlState(error)?.startsWith("53") === true

/** Whether a lock was not granted in time, so that another transaction holds a row. */
export const isLockTimeout = (error: unknown): boolean => sqlState(error) === "55P03"

const logBusy = "LS002"

/**
 * Runs a statement that appends to the event log. A lock timeout of this statement concerns the row of the log's counter, which each
 * transaction holds from its append to the end of its commit. It does not concern rows that the transaction locked before.
 */
export const waitsForLog = <A>(append: Effect.Effect<A, SqlError.SqlError>): Effect.Effect<A, SqlError.SqlError> =>
  Effect.mapError(append, (error) => (isLockTimeout(error) ? busyLog(error) : error))

/** The failure of a statement that waited for other transactions to release the event log. */
export const busyLog = (reason?: SqlError.SqlError): SqlError.SqlError => {
  const message = "The event log was not free in time"
  const cause = Object.assign(new Error(message, { cause: reason }), { code: logBusy })
  return new SqlError.SqlError({ reason: new SqlError.UnknownError({ cause, message }) })
}

/** Whether other transactions held the event log for too long. */
export const isLogBusy = (error: unknown): boolean => sqlState(error) === logBusy

/** Unlike other lock timeouts, this one is not caused by a locked record, so the message names the cause. */
export const refuseBusyLog = refuse(
  "NOT_READY",
  "The event log is busy, because other changes take long to commit: send the request again in a moment.",
  undefined,
  { waitedFor: { waited_for: "event counter" } }
)

/** Whether the server takes no writes: a standby, or a server that the operator made read-only. */
export const isReadOnly = (error: unknown): boolean => sqlState(error) === "25006"

/** Lock not available, of the event log, too; statement canceled, serialization failure, deadlock. */
const contentionStates = new Set(["55P03", logBusy, "57014", "40001", "40P01"])

/** Whether a statement failed because of concurrent transactions, so that a retry may succeed. */
export const isContended = (error: unknown): boolean => contentionStates.has(sqlState(error) ?? "")

/** What the statement of an `isContended` error waited for, for the log. */
export const waitOf = (error: unknown): string => {
  const state = sqlState(error)
  if (state === "57014") return "statement"
  if (state !== "55P03") return "conflicting transactions"
  const table = /"(\w+)"$/.exec(serverError(error)?.where ?? "")?.[1]
  return table === undefined ? "lock" : `row of ${table}`
}

/** Runs a transaction on a session of its own. Returns false if concurrent transactions made it fail. */
export const unlessContended = <R>(
  values: (statement: string) => Effect.Effect<unknown, SqlError.SqlError>,
  transaction: Effect.Effect<unknown, SqlError.SqlError, R>
) =>
  Effect.andThen(values("BEGIN"), transaction).pipe(
    Effect.andThen(values("COMMIT")),
    Effect.as(true),
    Effect.tapError(() => values("ROLLBACK")),
    Effect.catchIf(isContended, () => Effect.succeed(false))
  )

interface ServerError {
  readonly constraint?: string
  readonly code?: string
  /** Of a lock timeout: `while locking tuple (0,1) in relation "products"`. */
  readonly where?: string
}

const serverError = (error: unknown): ServerError | undefined => {
  const reason = (error as { readonly reason?: { readonly cause?: unknown } } | undefined)?.reason
  return reason?.cause as never
}
const violatedConstraint = (error: unknown) => serverError(error)?.constraint
const sqlState = (error: unknown) => serverError(error)?.code

/** The row of a record: NULL where the record has no value. */
export type NullableRow<A> = { readonly [K in keyof A]: A[K] | null }

/** A row as SQL returns it: columns without a value are null. */
export type Nullable<A> = {
  readonly [K in keyof A]-?: Exclude<A[K], undefined> | (undefined extends A[K] ? null : never)
}

/**
 * A row without its NULL columns, because in the domain an absent property means "no value". A license may have thousands of rows,
 * and a loop takes a third of the time of `Object.entries`.
 */
export const withoutNulls = <A extends object>(row: NullableRow<A>): A => {
  const record: Record<string, unknown> = {}
  for (const column of Object.keys(row)) {
    const value = row[column as keyof A]
    if (value !== null) record[column] = value
  }
  return record as A
}

/**
 * Decodes a statement's rows as records of a schema: `decodeProducts(sql\`SELECT …\`)` with `decodeProducts = decodeRows(Product)`.
 * Values have the types of the domain (an instant is a number), NULL columns are absent, and a row that does not fit is a defect.
 */
export const decodeRows = <const Fields extends Schema.Struct.Fields>({ fields }: Schema.Struct<Fields>) => {
  const columns = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, columnOf(field)]))
  const decode = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct(columns))) as (
    rows: unknown
  ) => Effect.Effect<ReadonlyArray<Schema.Struct.Type<Fields>>, Schema.SchemaError>
  return <E, R>(statement: Effect.Effect<ReadonlyArray<object>, E, R>) =>
    Effect.flatMap(statement, (rows) => Effect.orDie(decode(rows.map(withoutNulls))))
}

// A jsonb column always contains JSON. Checking it again would double the cost of decoding a page.
const columnOf = (field: Schema.Constraint): Schema.Constraint => {
  if (!SchemaAST.isObjects(field.ast) || field.ast.indexSignatures.length === 0) return Schema.toType(field)
  return SchemaAST.isOptional(field.ast) ? Schema.optionalKey(JsonObject) : JsonObject
}

const JsonObject = Schema.declare((value): value is object => typeof value === "object" && value !== null)

/** A record after a PATCH request: present members replace values, null removes them, absent members change nothing. */
export const patched = <A extends object>(record: A, input: { readonly [K in keyof A]?: A[K] | null | undefined }): A =>
  withoutNulls({ ...record, ...input } as never)
