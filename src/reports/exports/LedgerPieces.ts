/**
 * An export of the ledger, piece by piece: a page of rows is read and becomes one text of each format. Reading and writing are
 * apart, so that the next page can be read meanwhile.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { columns } from "../../postgres/Parameters.ts"
import { decodeFilters, type UsageLedgerFilter } from "../model/Filter.ts"
import { ledgerTables, narrowed } from "../usage/LedgerRows.ts"
import { ledgerColumns } from "../usage/UsageLedger.ts"
import { csvLine } from "./Csv.ts"
import type { ExportRequest, Piece } from "./ExportContent.ts"
import { makeLedgerChanges } from "./LedgerChanges.ts"
import { isReadableFromCsv, ledgerHead, ledgerTail } from "./LedgerFigures.ts"
import { type LedgerRow, ledgerCsv, ledgerFields, ledgerJson } from "./LedgerText.ts"
import { andSums, nothing } from "./PieceSums.ts"

/** Rows that become one text: a millisecond, then requests have their turn. Twice as many exceed what V8 keeps among young objects. */
const rowsAtATime = 200

/** What was read for a piece, of at most `limit` rows after the one numbered `collected`. */
interface Page {
  readonly rows: ReadonlyArray<LedgerRow>
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
}

export const makeLedgerPieces = Effect.fnUntraced(function* (
  asked: ExportRequest,
  { collected = 0, rows = 0, since }: Begun = {}
) {
  const filter = yield* Effect.orDie(decodeFilters("usage-ledger", asked.filters))
  const { before, follow } = makeLedgerChanges(since)
  const withCsv = asked.format === "csv"
  let written = rows
  let sums = collected === 0 ? nothing : undefined

  const read = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, { collected, first, limit }: From) {
    yield* follow(sql)
    const rows = (yield* sql`
      SELECT ${sql.literal(ledgerColumns)} FROM ${ledgerTables(sql)}
      WHERE ${matching(sql, filter, Array.from(before.keys()))}
        AND u.sequence > ${collected} AND u.sequence <= ${asked.ledger_last}
      ORDER BY u.sequence LIMIT ${limit}`.values) as never as ReadonlyArray<LedgerRow>
    const page: Page = {
      rows:
        before.size === 0 ? rows : rows.map((row) => asRequested(row, before)).filter((row) => matches(row, filter)),
      collected: rows.at(-1)?.[0] ?? collected,
      last: rows.length < limit,
      first
    }
    return page
  })

  const write = Effect.fnUntraced(function* ({ collected, first, last, rows }: Page) {
    const json = first ? [yield* ledgerHead(asked)] : []
    const csv = first && withCsv ? [csvLine(ledgerFields)] : []
    let isReadable = withCsv && rows.length > 0
    for (let start = 0; start < rows.length; start += rowsAtATime) {
      const some = rows.slice(start, start + rowsAtATime)
      const [figures, lines] = [ledgerJson(some), withCsv ? ledgerCsv(some) : ""]
      json.push(written > 0 ? `,${figures}` : figures)
      csv.push(lines)
      isReadable &&= isReadableFromCsv(figures, lines)
      written += some.length
      yield* Effect.yieldNow
    }
    if (last) json.push(ledgerTail)
    const file = Buffer.from(csv.join(""))
    if (sums !== undefined) sums = andSums(sums, json, [file])
    const piece: Piece = {
      snapshot: isReadable ? undefined : Buffer.from(json.join("")),
      csv: file,
      sums,
      rows: rows.length,
      collected,
      last
    }
    return piece
  })

  return { read, write }
})

const [licenseAt, customerAt, featureAt, codeAt] = (
  ["license_id", "customer_id", "feature_id", "feature_code"] as const
).map((name) => ledgerFields.indexOf(name)) as [4, 6, 9, 10]

/** The row with the customer and the code that it had when the export was requested. */
const asRequested = (row: LedgerRow, before: ReadonlyMap<string, string | null>): LedgerRow => {
  const [customer, code] = [before.get(row[licenseAt]), before.get(row[featureAt])]
  const requested: [...LedgerRow] = [...row]
  if (customer !== undefined) requested[customerAt] = customer
  if (code !== undefined) requested[codeAt] = code
  return requested
}

const matches = (row: LedgerRow, { customer_id, feature_code }: UsageLedgerFilter): boolean =>
  (customer_id === undefined || row[customerAt] === customer_id) &&
  (feature_code === undefined || row[codeAt] === feature_code)

// Rows whose customer or code has changed are read as well: `matches` decides by what it was.
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
