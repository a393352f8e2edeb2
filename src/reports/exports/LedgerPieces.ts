/**
 * An export of the ledger, piece by piece: reads a page of rows and formats it as JSON and CSV. Reading and formatting are separate
 * steps, so that the next page can be read meanwhile.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { columns } from "../../postgres/Parameters.ts"
import { decodeFilters, type UsageLedgerFilter } from "../model/Filter.ts"
import { ledgerCondition, ledgerTables } from "../usage/LedgerRows.ts"
import { csvLine } from "./Csv.ts"
import type { ExportRequest, Piece } from "./ExportContent.ts"
import { makeLedgerChanges } from "./LedgerChanges.ts"
import { makeLedgerLinks, type OwnRow, ownColumns } from "./LedgerLinks.ts"
import { ledgerHead, ledgerTail } from "./LedgerSnapshot.ts"
import { isPlainRow, type LedgerRow, ledgerCsv, ledgerFields, ledgerJson } from "./LedgerText.ts"
import { emptyDigests, extendDigests } from "./RunningDigests.ts"

/** Rows that are formatted without a pause: a millisecond, then requests run. Twice as many exceed V8's young generation. */
const groupRows = 200

/** The rows read for a piece. */
interface Page {
  readonly rows: ReadonlyArray<LedgerRow>
  /** The sequence number of the last row. */
  readonly collected: number
  /** Whether no rows follow. */
  readonly last: boolean
  readonly first: boolean
}

interface PageRequest {
  readonly collected: number
  readonly first: boolean
  readonly limit: number
}

interface ResumePoint {
  /**
   * The sequence number of the event of the request: rows show the links of their licenses at that time. Without it, all rows must be
   * read in one snapshot.
   */
  readonly since?: number | undefined
  /** The number of rows in earlier pieces, and the sequence number of the last one. */
  readonly rows?: number
  readonly collected?: number
}

export const makeLedgerPieces = Effect.fnUntraced(function* (
  request: ExportRequest,
  { collected = 0, rows = 0, since }: ResumePoint = {}
) {
  const filter = yield* Effect.orDie(decodeFilters("usage-ledger", request.filters))
  const { before, follow } = makeLedgerChanges(since)
  const withLinks = makeLedgerLinks()
  const withCsv = request.format === "csv"
  let written = rows
  let digests = collected === 0 ? emptyDigests : undefined

  const read = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, { collected, first, limit }: PageRequest) {
    yield* follow(sql)
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
      last: rows.length < limit,
      first
    }
    return page
  })

  const write = Effect.fnUntraced(function* ({ collected, first, last, rows }: Page) {
    const json = first ? [yield* ledgerHead(request)] : []
    // Bytes of each group, not one long text: V8 keeps long texts until a full garbage collection.
    const csv = first && withCsv ? [Buffer.from(csvLine(ledgerFields))] : []
    let isReadable = withCsv && rows.length > 0
    for (let start = 0; start < rows.length; start += groupRows) {
      const group = rows.slice(start, start + groupRows)
      const arePlain = withCsv && group.every(isPlainRow)
      const [figures, lines] = [ledgerJson(group), withCsv ? ledgerCsv(group, arePlain) : ""]
      json.push(written > 0 ? `,${figures}` : figures)
      csv.push(Buffer.from(lines))
      isReadable &&= arePlain
      written += group.length
      yield* Effect.yieldNow
    }
    if (last) json.push(ledgerTail)
    const file = Buffer.concat(csv)
    if (digests !== undefined) digests = extendDigests(digests, json, [file])
    const piece: Piece = {
      snapshot: isReadable ? undefined : Buffer.from(json.join("")),
      csv: file,
      digests,
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

/** The ledger, with its licenses and features only if the filter selects by them. */
const tables = (sql: SqlClient.SqlClient, { action, from, license_id, to, ...linked }: UsageLedgerFilter) =>
  Object.keys(linked).length === 0 ? sql.literal("usage_ledger u") : ledgerTables(sql)

// Rows whose customer or code has changed are read as well: `matches` decides by the earlier value.
const matching = (sql: SqlClient.SqlClient, filter: UsageLedgerFilter, changed: ReadonlyArray<string>) => {
  const { customer_id, feature_code, ...rest } = filter
  if (changed.length === 0 || (customer_id === undefined && feature_code === undefined))
    return ledgerCondition(sql, filter)
  const ids = columns.text(changed)
  return sql.and([
    ledgerCondition(sql, rest),
    customer_id === undefined ? sql`TRUE` : sql`(l.customer_id = ${customer_id} OR u.license_id = ANY(${ids}))`,
    feature_code === undefined ? sql`TRUE` : sql`(f.code = ${feature_code} OR u.feature_id = ANY(${ids}))`
  ])
}
