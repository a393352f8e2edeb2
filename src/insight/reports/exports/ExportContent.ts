/**
 * The content of an export's file. The figures are stored first as canonical JSON, the snapshot, over which the digest is
 * computed. Every format shows exactly those figures. The ledger is exported in pieces (`LedgerPieces.ts`), because its length is
 * limited only by the disk.
 */
import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { canonicalize, type Json } from "../../../contract/api/CanonicalJson.ts"
import { type Cell, csvLine } from "../../../contract/api/Csv.ts"
import { formatTimestamp } from "../../../contract/api/Timestamp.ts"
import { Event } from "../../../ledger/events/Event.ts"
import { readErasureMark } from "../../../platform/postgres/queries/ErasureMark.ts"
import { decodeFilters, type OfToken, type ReportKind } from "../model/Filter.ts"
import * as Report from "../model/Report.ts"
import { tooManyRows } from "../model/RequestChecks.ts"
import { customerSummary } from "../usage/CustomerSummary.ts"
import { licenseAudit } from "../usage/LicenseAudit.ts"
import { settlement } from "../usage/Settlement.ts"
import { usageSummary } from "../usage/UsageSummary.ts"
import type { ReportExportFormat } from "./Export.ts"
import { emptyDigests, extendDigests, type RunningDigests } from "./RunningDigests.ts"

export interface Piece {
  /** The figures as canonical JSON, in UTF-8. */
  readonly snapshot: Uint8Array
  /** The figures as CSV; empty for other formats. */
  readonly csv: Uint8Array
  /** The digests of all pieces up to this one, if known. */
  readonly digests: RunningDigests | undefined
  readonly rows: number
  readonly collected: number
  readonly last: boolean
}

export interface ExportRequest {
  readonly report_kind: ReportKind
  readonly format: ReportExportFormat
  readonly filters: { readonly [name: string]: Schema.Json }
  readonly generated_at: number
  readonly ledger_last: number
  /** The products of the token that requested it; absent: all. */
  readonly product_ids?: ReadonlyArray<string>
}

export const ofToken = ({ product_ids }: Pick<ExportRequest, "product_ids">): OfToken =>
  product_ids === undefined ? {} : { products: product_ids }

/** Stored filters were checked when they were accepted. */
const decodeStored = <K extends ReportKind>(kind: K, filters: ExportRequest["filters"]) =>
  Effect.orDie(decodeFilters(kind, filters))

/** The erasures that the figures include. Undefined if they name no customer. */
export const erasureMarkOf = (sql: SqlClient.SqlClient, { report_kind }: Pick<ExportRequest, "report_kind">) =>
  report_kind === "usage-summary" || report_kind === "usage-ledger" ? Effect.undefined : readErasureMark(sql)

/** An export of another report than the ledger. Refuses more rows than `rowsMax`. */
export const wholePiece = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  request: ExportRequest,
  rowsMax: number
) {
  const { report, table } = yield* reportOf(sql, request, rowsMax)
  const { filters, generated_at, report_kind } = request
  const snapshot = Buffer.from(
    canonicalize({ filters, generated_at: formatTimestamp(generated_at), report, report_kind })
  )
  const csv = Buffer.from(request.format === "csv" ? csvOf(table) : "")
  const piece: Piece = {
    snapshot,
    csv,
    digests: extendDigests(emptyDigests, snapshot, csv),
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

const encode = <S extends Schema.Constraint>(schema: S, value: S["Type"]) =>
  Effect.orDie(Schema.encodeUnknownEffect(schema as never as Schema.Codec<unknown>)(value)) as Effect.Effect<Json>

const reportOf = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, request: ExportRequest, rowsMax: number) {
  const { filters, generated_at: now, report_kind: kind } = request
  switch (kind) {
    case "usage-summary": {
      const summary = yield* usageSummary(
        sql,
        { ...(yield* decodeStored(kind, filters)), ...ofToken(request) },
        now,
        rowsMax
      )
      const report = yield* encode(Report.UsageSummary, summary)
      const { bucket_start: _, ...rowFields } = Report.UsageSummaryRow.fields
      const fields = Object.keys(rowFields).filter(
        (name) => !(name in groupFields) || summary.group_by.includes(name as never)
      )
      const columns = summary.bucket === undefined ? fields : ["bucket_start", ...fields]
      return { report, table: { columns, rows: (report as never as typeof Report.UsageSummary.Encoded).rows } as Table }
    }
    case "subscription-settlement": {
      const report = yield* encode(
        Report.SubscriptionSettlement,
        yield* settlement(sql, yield* decodeStored(kind, filters), now, rowsMax)
      )
      const { lines } = report as never as typeof Report.SubscriptionSettlement.Encoded
      return { report, table: { columns: Object.keys(Report.UsageBalance.fields), rows: lines } as Table }
    }
    case "license-audit": {
      const filter = yield* decodeStored(kind, filters)
      const audit = yield* licenseAudit(sql, { ...filter, limit: rowsMax }, now)
      if (audit.next_cursor !== null) return yield* tooManyRows(rowsMax)
      const report = yield* encode(Report.LicenseAudit, audit)
      const { events } = report as never as typeof Report.LicenseAudit.Encoded
      return { report, table: { columns: Object.keys(Event.fields), rows: events } as Table }
    }
    default: {
      const report = yield* encode(
        Report.CustomerSummary,
        yield* customerSummary(
          sql,
          { ...(yield* decodeStored("customer-summary", filters)), ...ofToken(request) },
          now,
          rowsMax
        )
      )
      return { report, table: { columns: ["field", "value"], rows: flatten(report) } as Table }
    }
  }
})

const groupFields = Report.groupFields

const flatten = (value: Cell, path = ""): ReadonlyArray<{ readonly field: string; readonly value: Cell }> =>
  typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([key, inner]) => flatten(inner as Cell, path === "" ? key : `${path}.${key}`))
    : [{ field: path, value }]
