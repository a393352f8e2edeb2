/**
 * What stands in the file of an export. The figures are fixed as canonical JSON first, which the digest is taken of; every format
 * shows those figures and none looked up later. The ledger comes in pieces (`LedgerPieces.ts`), for it may be as long as there is
 * disk.
 */
import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { canonicalize, type Json } from "../../api/CanonicalJson.ts"
import { formatTimestamp } from "../../api/Timestamp.ts"
import { Event } from "../../events/Event.ts"
import { decodeFilters, type ReportKind } from "../model/Filter.ts"
import * as Report from "../model/Report.ts"
import { tooMany } from "../model/RequestChecks.ts"
import { customerSummary } from "../usage/CustomerSummary.ts"
import { licenseAudit } from "../usage/LicenseAudit.ts"
import { settlement } from "../usage/Settlement.ts"
import { usageSummary } from "../usage/UsageSummary.ts"
import { type Cell, csvLine } from "./Csv.ts"
import type { ReportExportFormat } from "./Export.ts"
import { andSums, nothing, type PieceSums } from "./PieceSums.ts"

/** A piece of an export. Both texts of all pieces, one after another, are the whole. */
export interface Piece {
  /** The figures as canonical JSON, in UTF-8; undefined where the CSV tells them, so that they need not be stored beside it. */
  readonly snapshot: Uint8Array | undefined
  /** The same as CSV, where that is wanted. */
  readonly csv: Uint8Array
  /** The digests of all pieces up to this one, where they are known. */
  readonly sums: PieceSums | undefined
  readonly rows: number
  /** The last row of the ledger that is in it. */
  readonly collected: number
  readonly last: boolean
}

/** What an export is asked for, as it is stored. */
export interface ExportRequest {
  readonly report_kind: ReportKind
  readonly format: ReportExportFormat
  readonly filters: { readonly [name: string]: Schema.Json }
  readonly generated_at: number
  readonly ledger_last: number
}

/** Reads filters as they are stored: what was accepted once stays right. */
const decoded = <K extends ReportKind>(kind: K, filters: ExportRequest["filters"]) =>
  Effect.orDie(decodeFilters(kind, filters))

/** An export of any other report, whole. More rows than `rowsMax` are refused. */
export const wholePiece = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  asked: ExportRequest,
  rowsMax: number
) {
  const { report, table } = yield* reportOf(sql, asked, rowsMax)
  const { filters, generated_at, report_kind } = asked
  const snapshot = Buffer.from(
    canonicalize({ filters, generated_at: formatTimestamp(generated_at), report, report_kind })
  )
  const csv = Buffer.from(asked.format === "csv" ? csvOf(table) : "")
  const piece: Piece = {
    snapshot,
    csv,
    sums: andSums(nothing, [snapshot], [csv]),
    rows: table.rows.length,
    collected: 0,
    last: true
  }
  return piece
})

interface Table {
  readonly columns: ReadonlyArray<string>
  readonly rows: ReadonlyArray<object>
}

const csvOf = ({ columns, rows }: Table): string =>
  csvLine(columns) +
  rows.map((row) => csvLine(columns.map((column) => (row as { readonly [name: string]: Cell })[column]))).join("")

const encoded = <S extends Schema.Constraint>(schema: S, value: S["Type"]) =>
  Effect.orDie(Schema.encodeUnknownEffect(schema as never as Schema.Codec<unknown>)(value)) as Effect.Effect<Json>

const reportOf = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, asked: ExportRequest, rowsMax: number) {
  const { filters, generated_at: now, report_kind: kind } = asked
  switch (kind) {
    case "usage-summary": {
      const summary = yield* usageSummary(sql, yield* decoded(kind, filters), now, rowsMax)
      const report = yield* encoded(Report.UsageSummary, summary)
      const { bucket_start: _, ...fields } = Report.UsageSummaryRow.fields
      const kept = Object.keys(fields).filter(
        (name) => !(name in groupFields) || summary.group_by.includes(name as never)
      )
      const columns = summary.bucket === undefined ? kept : ["bucket_start", ...kept]
      return { report, table: { columns, rows: (report as never as typeof Report.UsageSummary.Encoded).rows } as Table }
    }
    case "subscription-settlement": {
      const report = yield* encoded(
        Report.SubscriptionSettlement,
        yield* settlement(sql, yield* decoded(kind, filters), now, rowsMax)
      )
      const { lines } = report as never as typeof Report.SubscriptionSettlement.Encoded
      return { report, table: { columns: Object.keys(Report.UsageBalance.fields), rows: lines } as Table }
    }
    case "license-audit": {
      const request = { ...(yield* decoded(kind, filters)), limit: rowsMax }
      const audit = yield* licenseAudit(sql, request, now)
      if (audit.next_cursor !== null) return yield* tooMany(rowsMax)
      const report = yield* encoded(Report.LicenseAudit, audit)
      const { events } = report as never as typeof Report.LicenseAudit.Encoded
      return { report, table: { columns: Object.keys(Event.fields), rows: events } as Table }
    }
    default: {
      const report = yield* encoded(
        Report.CustomerSummary,
        yield* customerSummary(sql, yield* decoded("customer-summary", filters), now, rowsMax)
      )
      return { report, table: { columns: ["field", "value"], rows: flattened(report) } as Table }
    }
  }
})

const groupFields = Report.groupFields

/** A value as lines of path and value. */
const flattened = (value: Cell, path = ""): ReadonlyArray<{ readonly field: string; readonly value: Cell }> =>
  typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([key, inner]) => flattened(inner as Cell, path === "" ? key : `${path}.${key}`))
    : [{ field: path, value }]
