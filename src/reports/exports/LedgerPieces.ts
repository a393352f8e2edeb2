/**
 * An export of the ledger, piece by piece: rows are read as the database sends them, what hangs on them is looked up, and both are
 * written out. Reading and writing are apart, so that the next piece can be read meanwhile.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { columns } from "../../postgres/Parameters.ts"
import { decodeFilters, type UsageLedgerFilter } from "../model/Filter.ts"
import { ledgerTables, narrowed } from "../usage/LedgerRows.ts"
import { ByteText } from "./ByteText.ts"
import { csvLine } from "./Csv.ts"
import type { ExportRequest, Piece } from "./ExportContent.ts"
import { ledgerHead, ledgerTail } from "./LedgerFigures.ts"
import { type Bounds, LedgerLinks } from "./LedgerLinks.ts"
import { copyRecords, LedgerRecords, ledgerGroups } from "./LedgerRecords.ts"
import { ledgerFields } from "./LedgerText.ts"
import { LedgerWriter } from "./LedgerWriter.ts"
import { andSums, nothing } from "./PieceSums.ts"

/** Rows that are written out in one go: about a millisecond, then requests have their turn. */
const rowsAtATime = 500

/** What was read for a piece, of at most `limit` rows after the one numbered `collected`. */
interface Page {
  readonly records: ByteText
  /** The last of the rows. */
  readonly collected: number
  /** Whether there are no more. */
  readonly last: boolean
  readonly first: boolean
}

interface From {
  readonly collected: number
  readonly first: boolean
  readonly limit: number
}

interface Begun {
  /**
   * The event by which the export was asked for: rows show what their licenses were linked to then. Without it, all must be read
   * as of one moment.
   */
  readonly since?: number | undefined
  /** What is in the pieces before: how many rows, and the last of them. */
  readonly rows?: number
  readonly collected?: number
  readonly bounds?: Bounds
}

export const makeLedgerPieces = Effect.fnUntraced(function* (
  asked: ExportRequest,
  { bounds, collected = 0, rows = 0, since }: Begun = {}
) {
  const filter = yield* Effect.orDie(decodeFilters("usage-ledger", asked.filters))
  const links = new LedgerLinks(since, bounds)
  const withCsv = asked.format === "csv"
  const writer = new LedgerWriter(links, filter)
  const pages = makeRoom(pageBytes)
  const files = makeRoom(fileBytes)
  let written = rows
  let sums = collected === 0 ? nothing : undefined

  const read = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, { collected, first, limit }: From) {
    yield* links.follow(sql)
    const groups = yield* ledgerGroups(
      sql,
      sql`FROM ${tables(sql, filter)}
        WHERE ${matching(sql, filter, links.changed)} AND u.sequence > ${collected} AND u.sequence <= ${asked.ledger_last}
        ORDER BY u.sequence LIMIT ${limit}`
    )
    const records = pages.take()
    copyRecords(groups, records)
    const page: Page = {
      records,
      collected: groups.at(-1)?.last ?? collected,
      last: groups.reduce((sum, { rows }) => sum + rows, 0) < limit,
      first
    }
    return page
  })

  const write = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, { collected, first, last, records }: Page) {
    const read = records.written()
    yield* links.fill(sql, read)
    const csv = withCsv ? files.take() : undefined
    writer.begin(csv)
    if (first) {
      writer.json.text(yield* ledgerHead(asked))
      csv?.text(csvLine(ledgerFields))
    }
    const rows = new LedgerRecords(read)
    while (writer.write(rows, rowsAtATime, written > 0)) yield* Effect.yieldNow
    written += writer.rows
    if (last) writer.json.text(ledgerTail)
    const figures = writer.json.written()
    const file = csv?.written() ?? new Uint8Array()
    if (sums !== undefined) sums = andSums(sums, figures, file)
    const piece: Piece = {
      snapshot: withCsv && writer.told && writer.rows > 0 ? undefined : new Uint8Array(figures),
      csv: file,
      sums,
      rows: writer.rows,
      collected,
      last,
      release: () => {
        pages.give(records)
        files.give(csv)
      }
    }
    return piece
  })

  return { read, write }
})

/** What a piece of the usual size takes as records and as CSV. */
const pageBytes = 786_432
const fileBytes = 786_432

/** Room for as many of a kind as are on their way at once, used again and again. */
const makeRoom = (capacity: number) => {
  const free: Array<ByteText> = []
  return {
    take: () => {
      const room = free.pop() ?? new ByteText(capacity)
      room.clear()
      return room
    },
    give: (room: ByteText | undefined) => {
      if (room !== undefined && !free.includes(room)) free.push(room)
    }
  }
}

/** Rows are found by the ledger alone where no filter names what hangs on them. */
const tables = (sql: SqlClient.SqlClient, filter: UsageLedgerFilter) => {
  const { customer_id, feature_code, order_id, product_id, subscription_id } = filter
  return [customer_id, feature_code, order_id, product_id, subscription_id].some((value) => value !== undefined)
    ? ledgerTables(sql)
    : sql.literal("usage_ledger u")
}

// What has another customer or code by now is read as well; whoever writes the rows knows what it was.
const matching = (sql: SqlClient.SqlClient, filter: UsageLedgerFilter, changed: ReadonlyArray<string>) => {
  const { customer_id, feature_code, ...rest } = filter
  if (changed.length === 0 || (customer_id === undefined && feature_code === undefined)) return narrowed(sql, filter)
  const ids = columns.text(changed)
  return sql.and([
    narrowed(sql, rest),
    customer_id === undefined ? sql`TRUE` : sql`(l.customer_id = ${customer_id} OR u.license_id = ANY(${ids}))`,
    feature_code === undefined ? sql`TRUE` : sql`(f.code = ${feature_code} OR u.feature_id = ANY(${ids}))`
  ])
}
