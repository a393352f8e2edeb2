/**
 * Exports all records as lines. It is one snapshot of the database, and reads through cursors, so that memory does not grow with
 * the number of rows.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { formatTimestamp } from "../../contract/api/Timestamp.ts"
import { Postgres } from "../../platform/postgres/driver/Postgres.ts"
import { makeDigest } from "../../platform/signing/Digest.ts"
import { keyIdOf } from "../../platform/signing/MasterKey.ts"
import { asLine, type Columns, readColumns } from "./Columns.ts"
import { format, type Header, type Row, TransferRefused } from "./Lines.ts"
import { type Table, type TableGroup, tableGroups } from "./Tables.ts"

const fetched = 1_000

/** Writes lines, each without its line feed. */
export type Emit<E> = (lines: ReadonlyArray<string>) => Effect.Effect<void, E>

export class Exporting extends Context.Service<
  Exporting,
  {
    /** Returns the number of lines by type. */
    run<E>(emit: Emit<E>): Effect.Effect<ReadonlyMap<string, number>, E | TransferRefused>
  }
>()("licensing/tools/transfer/Exporting") {
  static readonly layer = Layer.effect(
    Exporting,
    Effect.gen(function* () {
      const { url } = yield* Postgres
      const connections = Postgres.layer({
        url,
        maxConnections: 2,
        statementTimeoutMillis: 0,
        // The snapshot lasts as long as the reader of the lines takes, and holds no lock that a writer needs.
        idleInTransactionMillis: 0,
        applicationName: "licensing-export",
        plannerDefaults: true
      })
      const sql = Context.get(yield* Effect.orDie(Layer.build(Layer.fresh(connections))), SqlClient.SqlClient)
      const run = Effect.fn("Exporting.run")(<E>(emit: Emit<E>) =>
        // Not retried: the lines of a first attempt would stay in the file.
        sql
          .withTransaction(
            Effect.andThen(sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`, exportAll(sql, emit))
          )
          .pipe(
            Effect.catchIf(SqlError.isSqlError, Effect.die),
            Effect.map((counts) => counts as ReadonlyMap<string, number>)
          )
      )
      return Exporting.of({ run: run as never })
    })
  )
}

const exportAll = Effect.fnUntraced(function* <E>(sql: SqlClient.SqlClient, emit: Emit<E>) {
  const digest = makeDigest()
  const counts = new Map<string, number>()
  let lines = 0
  const write = (objects: ReadonlyArray<Row>) =>
    Effect.suspend(() => {
      const texts = objects.map((object) => JSON.stringify(object))
      for (const text of texts) digest.update(`${text}\n`)
      lines += texts.length
      return emit(texts)
    })
  yield* write([yield* readHeader(sql)])
  const columns = yield* readColumns(sql)
  for (const group of tableGroups) {
    yield* readGroup(sql, group, columns, (rows) => {
      for (const { type } of rows) counts.set(String(type), (counts.get(String(type)) ?? 0) + 1)
      return write(rows)
    })
  }
  yield* emit([JSON.stringify({ type: "end", lines, sha256: digest.hex() })])
  return counts
})

const readHeader = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const [found] = yield* sql<{
    readonly schema: number
    readonly copying: boolean
    readonly erasing: boolean
    readonly vendor_keys: boolean
    readonly sealed: Uint8Array | null
  }>`
    SELECT (SELECT max(id) FROM schema_migrations) AS schema,
      EXISTS (SELECT FROM event_id_copy WHERE copied < until) AS copying,
      EXISTS (SELECT FROM erasures) AS erasing,
      EXISTS (SELECT FROM vendor_key_use) AS vendor_keys,
      coalesce((SELECT private_key_sealed FROM signing_keys WHERE status = 'active'),
        (SELECT secret_sealed FROM webhook_endpoints LIMIT 1)) AS sealed`
  const { copying, erasing, schema, sealed, vendor_keys } = found!
  if (copying) {
    return yield* new TransferRefused({
      message:
        "The upgrade of this database is still copying event ids: run the export again when a node has finished it."
    })
  }
  if (erasing) {
    return yield* new TransferRefused({
      message: "A customer is being erased: run the export again when a node has finished it."
    })
  }
  const keyId = sealed === null ? undefined : keyIdOf(sealed)
  return {
    type: "export",
    format,
    schema,
    created_at: formatTimestamp(yield* Clock.currentTimeMillis),
    ...(keyId?._tag === "Some" ? { master_key_id: keyId.value } : undefined),
    vendor_keys
  } satisfies Header
})

/** Reads a group's records in order, each followed by its parts. */
const readGroup = Effect.fnUntraced(function* <E>(
  sql: SqlClient.SqlClient,
  { parts, root }: TableGroup,
  columns: ReadonlyMap<string, Columns>,
  write: (rows: ReadonlyArray<Row>) => Effect.Effect<void, E>
) {
  const records = yield* openCursor(sql, root, columns.get(root.type)!)
  const [idColumn = "id"] = root.key
  const cursors = yield* Effect.forEach(parts, (part) =>
    Effect.map(openCursor(sql, part, columns.get(part.type)!), (cursor) => ({ cursor, parent: part.parent! }))
  )
  let pending: Array<Row> = []
  const add = (row: Row) => {
    pending.push(row)
    if (pending.length < fetched) return Effect.void
    const rows = pending
    pending = []
    return write(rows)
  }
  for (let record = yield* records.next; record !== undefined; record = yield* records.next) {
    yield* add(record)
    for (const { cursor, parent } of cursors) {
      while ((yield* cursor.head)?.[parent] === record[idColumn]) yield* add((yield* cursor.next)!)
    }
  }
  yield* write(pending)
  yield* Effect.forEach([records, ...cursors.map(({ cursor }) => cursor)], ({ close }) => close)
})

const openCursor = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, table: Table, columns: Columns) {
  const { asText = [], key, name, parent, type, where = "true" } = table
  const order = [...new Set([...(parent === undefined ? [] : [parent]), ...key])].join(", ")
  const texts = asText.map((column) => ` || jsonb_build_object('${column}', ${column}::text)`).join("")
  yield* sql.unsafe(`DECLARE export_${type} NO SCROLL CURSOR FOR
    SELECT to_jsonb(t)${texts} AS row FROM ${name} t WHERE ${where} ORDER BY ${order}`)
  let rows: ReadonlyArray<Row> = []
  let at = 0
  let ended = false
  const fetch = Effect.gen(function* () {
    const found = yield* sql.unsafe<{ readonly row: Row }>(`FETCH ${fetched} FROM export_${type}`)
    rows = found.map(({ row }) => asLine(type, columns, row))
    at = 0
    ended = rows.length < fetched
  })
  const head = Effect.suspend(() =>
    at < rows.length || ended ? Effect.sync(() => rows[at]) : Effect.map(fetch, () => rows[at])
  )
  const next = Effect.tap(head, () => Effect.sync(() => void at++))
  return { head, next, close: sql.unsafe(`CLOSE export_${type}`) }
})
