/** What every service says to SQL in the same words: transactions, keyset pages, and constraints as refusals. */
import { Effect, Schema, SchemaAST } from "effect"
import { type SqlClient, SqlError } from "effect/sql"
import type { Keyset } from "../api/Paging.ts"
import { instant } from "./Parameters.ts"
import { retryTransaction } from "./Transactions.ts"

/** Runs a command as one transaction, again on a deadlock or serialization failure. What else SQL says is a defect. */
export const transaction =
  (sql: SqlClient.SqlClient) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, Exclude<E, SqlError.SqlError>, R> =>
    Effect.catch(retryTransaction(sql.withTransaction(self)), dieOfSql)

/** A failing statement that no refusal stands for is a defect: answered as INTERNAL_ERROR, logged with its cause. */
const dieOfSql = <E>(error: E): Effect.Effect<never, Exclude<E, SqlError.SqlError>> =>
  SqlError.isSqlError(error) ? Effect.die(error) : Effect.fail(error as Exclude<E, SqlError.SqlError>)

/** The condition of a keyset page: rows that come after the cursor in (created_at, id) descending. */
export const after = (sql: SqlClient.SqlClient, cursor: Keyset | undefined) =>
  cursor === undefined ? sql`TRUE` : sql`(created_at, id) < (${instant(cursor.createdAt)}, ${cursor.id})`

/** One equality for each filter that is given. */
export const equals = (sql: SqlClient.SqlClient, filters: { readonly [column: string]: string | undefined }) =>
  sql.and([
    sql`TRUE`,
    ...Object.entries(filters).flatMap(([column, value]) =>
      value === undefined ? [] : [sql`${sql(column)} = ${value}`]
    )
  ])

/** Gives a violated constraint its refusal, so that the database and the check before it answer alike. */
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

/** Gives a foreign key that still points here its refusal. */
export const inUse =
  <F>(refusal: () => F) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E | F, R> =>
    Effect.catch(
      self,
      (error): Effect.Effect<never, E | F> => Effect.fail(isForeignKeyViolation(error) ? refusal() : error)
    )

/** Whether a row points at one that is not there, or would be left pointing at nothing. */
export const isForeignKeyViolation = (error: unknown): boolean => sqlState(error) === "23503"

/** Whether the error is that this constraint or unique index stands against a row. */
export const violates = (error: unknown, constraint: string): boolean => violatedConstraint(error) === constraint

/** The state by which a statement fails that found something changed since it was decided on. */
export const changedMeanwhile = "LS001"

export const isChangedMeanwhile = (error: unknown): boolean => sqlState(error) === changedMeanwhile

/** Whether the server has run out of disk, memory or connections. */
export const isWithoutRoom = (error: unknown): boolean => sqlState(error)?.startsWith("53") === true

const serverError = (error: unknown): { readonly constraint?: string; readonly code?: string } | undefined => {
  const reason = (error as { readonly reason?: { readonly cause?: unknown } } | undefined)?.reason
  return reason?.cause as never
}
const violatedConstraint = (error: unknown) => serverError(error)?.constraint
const sqlState = (error: unknown) => serverError(error)?.code

/** A record as its row holds it: NULL where the record has no value. */
export type Row<A> = { readonly [K in keyof A]: A[K] | null }

/**
 * A row without its NULL columns: absent is how the domain says "no value". A loop, for a license may be loaded with thousands
 * of rows: it takes a third of the time that going by lists of entries takes.
 */
export const present = <A extends object>(row: Row<A>): A => {
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
    Effect.flatMap(statement, (rows) => Effect.orDie(decode(rows.map(present))))
}

// PostgreSQL gives JSON in a jsonb column and nothing else. To walk all of it again is half of what decoding a page costs.
const columnOf = (field: Schema.Constraint): Schema.Constraint =>
  SchemaAST.isObjects(field.ast) && field.ast.indexSignatures.length > 0 ? JsonObject : Schema.toType(field)

const JsonObject = Schema.declare((value): value is object => typeof value === "object" && value !== null)

/** What a PATCH request leaves of a record: members that are given replace, null clears, absent members stay. */
export const patched = <A extends object>(record: A, input: { readonly [K in keyof A]?: A[K] | null | undefined }): A =>
  present({ ...record, ...input } as never)
