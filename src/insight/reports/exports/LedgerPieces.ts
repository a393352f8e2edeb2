/**
 * An export of the ledger, piece by piece: reads rows, formats them as JSON and CSV, and compresses them. Each page of rows is
 * formatted as soon as it is read, to keep little memory: decision 0027 has the measurements.
 */
import { Effect, Option, Stream } from "effect"
import type { SqlClient } from "effect/sql"
import { csvLine } from "../../../contract/api/Csv.ts"
import { columns } from "../../../platform/postgres/driver/Parameters.ts"
import { equals } from "../../../platform/postgres/queries/Sql.ts"
import { decodeFilters, type UsageLedgerFilter } from "../model/Filter.ts"
import { notReceived, periodOf } from "../model/RequestChecks.ts"
import { ledgerCondition, ledgerTables } from "../usage/LedgerRows.ts"
import { type ExportRequest, ofToken } from "./ExportContent.ts"
import { type EarlierValues, linkedFields, makeLedgerChanges } from "./LedgerChanges.ts"
import { makeLedgerLinks, type OwnRow, ownColumns } from "./LedgerLinks.ts"
import { ledgerHead, ledgerTail } from "./LedgerSnapshot.ts"
import { isPlainRow, type LedgerRow, ledgerCsv, ledgerFields, ledgerJson } from "./LedgerText.ts"
import { emptyDigests, extendDigests, type RunningDigests } from "./RunningDigests.ts"
import { type StoredChunk, type StoredPiece, storedChunk } from "./StoredPiece.ts"

/** Fewer rows need more statements; more rows outlive V8's young generation. */
const readRows = 1_000
/** Formatting this many rows takes a millisecond; then requests run. They are stored as one chunk. */
const groupRows = 200

interface Page {
  readonly rows: ReadonlyArray<LedgerRow>
  readonly collected: number
  readonly last: boolean
}

export interface LedgerPosition {
  /** The sequence number of the last row before the piece. */
  readonly collected: number
  /** The number of rows before the piece. */
  readonly rows: number
  readonly isFirst: boolean
  /** The digests of everything before the piece, if known. */
  readonly digests: RunningDigests | undefined
}

export const ledgerStart: LedgerPosition = { collected: 0, rows: 0, isFirst: true, digests: emptyDigests }

export const positionAfter = ({ rows }: LedgerPosition, piece: StoredPiece): LedgerPosition => ({
  collected: piece.collected,
  rows: rows + piece.rows,
  isFirst: false,
  digests: piece.digests
})

/**
 * Each piece is read in one snapshot. `since` is the sequence number of the request's event: rows show the links of
 * their licenses at that time. Without it, all rows must be read in one snapshot. A replica is refused that has not received all rows
 * of the request: of several replicas behind one address, another one may have answered it.
 */
export const makeLedgerPieces = Effect.fnUntraced(function* (request: ExportRequest, since?: number) {
  const filter = { ...(yield* Effect.orDie(decodeFilters("usage-ledger", request.filters))), ...ofToken(request) }
  yield* periodOf(filter, request.generated_at)
  const { before, follow } = makeLedgerChanges(since)
  const withLinks = makeLedgerLinks()
  const withCsv = request.format === "csv"

  const read = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, collected: number, rowsMax: number) {
    const limit = Math.min(rowsMax, readRows)
    const own = (yield* sql`
      SELECT ${sql.literal(ownColumns)} FROM ${tables(sql, filter)}
      WHERE ${matching(sql, filter, Array.from(before.keys()))}
        AND u.sequence > ${collected} AND u.sequence <= ${request.ledger_last}
      ORDER BY u.sequence LIMIT ${limit}`.values) as never as ReadonlyArray<OwnRow>
    const rows = yield* withLinks(sql, own)
    const page: Page = {
      rows:
        before.size === 0 ? rows : rows.map((row) => asRequested(row, before)).filter((row) => matches(row, filter)),
      collected: rows.at(-1)?.[0] ?? collected,
      last: rows.length < limit
    }
    return page
  })

  const pages = (sql: SqlClient.SqlClient, from: LedgerPosition, rowsMax: number) =>
    Stream.paginate({ collected: from.collected, rowsMax }, ({ collected, rowsMax }) =>
      Effect.map(read(sql, collected, rowsMax), (page) => {
        const next = { collected: page.collected, rowsMax: rowsMax - readRows }
        return [[page], page.last || next.rowsMax <= 0 ? Option.none<typeof next>() : Option.some(next)] as const
      })
    ).pipe(Stream.buffer({ capacity: 1 }))

  /** The JSON is not stored if it can be restored from the CSV. */
  const add = (piece: PieceInProgress, rows: ReadonlyArray<LedgerRow>, last: boolean) => {
    const { digests, isFirst, rows: rowsBefore } = piece.position
    const arePlain = withCsv && rows.every(isPlainRow)
    const comma = rowsBefore > 0 && rows.length > 0 ? "," : ""
    const figures = `${isFirst ? piece.head : ""}${comma}${ledgerJson(rows)}${last ? ledgerTail : ""}`
    const lines = Buffer.from(withCsv ? `${isFirst ? csvLine(ledgerFields) : ""}${ledgerCsv(rows, arePlain)}` : "")
    // Without rows there is no file chunk at whose position the tail would be restored.
    const isReadable = arePlain && (rows.length > 0 || !last)
    piece.artifact.push(storedChunk(lines))
    piece.snapshot.push(isReadable ? undefined : storedChunk(Buffer.from(figures)))
    piece.position = {
      collected: piece.position.collected,
      rows: rowsBefore + rows.length,
      isFirst: false,
      digests: digests && extendDigests(digests, figures, lines)
    }
  }

  const addPage = Effect.fnUntraced(function* (piece: PieceInProgress, { collected, last, rows }: Page) {
    for (let start = 0; start === 0 || start < rows.length; start += groupRows) {
      const end = start + groupRows
      add(piece, rows.slice(start, end), last && end >= rows.length)
      yield* Effect.yieldNow
    }
    piece.position = { ...piece.position, collected }
    piece.last = last
  })

  return Effect.fnUntraced(function* (sql: SqlClient.SqlClient, from: LedgerPosition, rowsMax: number) {
    if ((yield* ledgerLast(sql)) < request.ledger_last) return yield* notReceived
    yield* follow(sql)
    const head = from.isFirst ? yield* ledgerHead(sql, request) : ""
    const piece: PieceInProgress = { head, artifact: [], snapshot: [], position: from, last: false }
    yield* Stream.runForEach(pages(sql, from, rowsMax), (page) => addPage(piece, page))
    const { artifact, last, position, snapshot } = piece
    const { collected, digests } = position
    const stored: StoredPiece = { artifact, snapshot, digests, rows: position.rows - from.rows, collected, last }
    return stored
  })
})

/** The number of the last row. */
export const ledgerLast = (sql: SqlClient.SqlClient) =>
  Effect.map(sql<{ readonly last: number }>`SELECT ledger_last AS last FROM event_sequence`, ([row]) => row?.last ?? 0)

interface PieceInProgress {
  /** What precedes the rows. */
  readonly head: string
  readonly artifact: Array<StoredChunk | undefined>
  readonly snapshot: Array<StoredChunk | undefined>
  /** The current end of the piece. */
  position: LedgerPosition
  last: boolean
}

const licenseAt = ledgerFields.indexOf("license_id") as 4
const featureAt = ledgerFields.indexOf("feature_id") as 9
const linkedPlaces = linkedFields.map((name) => [name, ledgerFields.indexOf(name) as 6 | 7 | 8 | 10] as const)

const asRequested = (row: LedgerRow, before: ReadonlyMap<string, EarlierValues>): LedgerRow => {
  const earlier = { ...before.get(row[licenseAt]), ...before.get(row[featureAt]) }
  const requested: [...LedgerRow] = [...row]
  for (const [name, place] of linkedPlaces) {
    const value = earlier[name]
    if (value !== undefined) requested[place] = value
  }
  return requested
}

const matches = (row: LedgerRow, filter: UsageLedgerFilter): boolean =>
  linkedPlaces.every(([name, place]) => filter[name] === undefined || row[place] === filter[name])

/** Joins licenses and features only if the filter selects by them. */
const tables = (sql: SqlClient.SqlClient, { action, from, license_id, to, ...linked }: UsageLedgerFilter) =>
  Object.keys(linked).length === 0 ? sql.literal("usage_ledger u") : ledgerTables(sql)

// Rows whose links or code have changed are read as well: `matches` decides by the earlier values.
const matching = (sql: SqlClient.SqlClient, filter: UsageLedgerFilter, changed: ReadonlyArray<string>) => {
  const { customer_id, feature_code, order_id, subscription_id, ...rest } = filter
  if (changed.length === 0) return ledgerCondition(sql, filter)
  const ids = columns.text(changed)
  const links = { "l.customer_id": customer_id, "l.order_id": order_id, "l.subscription_id": subscription_id }
  return sql.and([
    ledgerCondition(sql, rest),
    sql`(${equals(sql, links)} OR u.license_id = ANY(${ids}))`,
    feature_code === undefined ? sql`TRUE` : sql`(f.code = ${feature_code} OR u.feature_id = ANY(${ids}))`
  ])
}
