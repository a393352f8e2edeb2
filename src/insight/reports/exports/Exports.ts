/**
 * Exports of reports. A small one is created within the request, a large one by a worker. In both cases the figures are of one
 * point in time, and every download returns the same bytes until the export is deleted.
 */
import { Clock, Context, Effect, Layer, Option, type Schema, type Stream } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { CurrentActor, CurrentProducts } from "../../../access/CurrentActor.ts"
import { bodyRefusal, faultsOf } from "../../../access/requests/RequestFaults.ts"
import { inOneLine, isRefusal, type Refusal, refuse, refuseUnknownId } from "../../../contract/api/Failure.ts"
import { Identifiers } from "../../../contract/api/Identifier.ts"
import type { ListRequest, Page } from "../../../contract/api/Paging.ts"
import { EventLog } from "../../../ledger/events/EventLog.ts"
import { mayPause } from "../../../platform/postgres/driver/Transactions.ts"
import { isErasureMark } from "../../../platform/postgres/queries/ErasureMark.ts"
import { transaction } from "../../../platform/postgres/queries/Sql.ts"
import { Workers } from "../../../platform/workers/Workers.ts"
import { decodeFilters, type Scope, unsupportedFilter } from "../model/Filter.ts"
import { ReportsDatabase } from "../model/ReportsDatabase.ts"
import { checkScope, isTooManyRows, type ReportRefusal } from "../model/RequestChecks.ts"
import { PdfPrinting } from "../pdf/PdfPrinting.ts"
import type { ExportFilter, ReportExportCreate, ReportExportFormat, StoredExport } from "./Export.ts"
import { type ExportRequest, erasureMarkOf, ofToken, wholePiece } from "./ExportContent.ts"
import {
  chunkSizes,
  completeExport,
  type ExportRow,
  findExport,
  insertExport,
  listExports,
  partOf,
  readChunks,
  slicesOf,
  writePiece
} from "./ExportStore.ts"
import { ledgerLast, ledgerStart, makeLedgerPieces } from "./LedgerPieces.ts"
import { type StoredPiece, storedPiece } from "./StoredPiece.ts"

/** These exports take a fraction of a second. A row of a PDF takes ten times as long. */
const immediateRowsMax: { readonly [K in ReportExportFormat]: number } = { json: 2_000, csv: 2_000, pdf: 200 }

export const exportWorker = "report-exports"

const contentTypes: { readonly [K in ReportExportFormat]: string } = {
  json: "application/json",
  csv: "text/csv; charset=utf-8",
  pdf: "application/pdf"
}

export interface ExportFile extends StoredExport {
  readonly size_bytes: number
  /** The bytes between two positions; `to` is exclusive. */
  bytes(from: number, to: number): Stream.Stream<Uint8Array, SqlError.SqlError>
}

type ExportRefusal = Refusal<"VALIDATION_ERROR" | "NOT_FOUND" | "NOT_READY">

export class Exports extends Context.Service<
  Exports,
  {
    create(input: typeof ReportExportCreate.Type): Effect.Effect<StoredExport, ExportRefusal>
    list(request: ListRequest & ExportFilter): Effect.Effect<Page<StoredExport>>
    get(id: string): Effect.Effect<StoredExport, Refusal<"NOT_FOUND">>
    file(id: string): Effect.Effect<ExportFile, Refusal<"NOT_FOUND"> | Refusal<"EXPORT_NOT_READY">>
  }
>()("licensing/insight/reports/exports/Exports") {
  static readonly layer = Layer.effect(
    Exports,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Identifiers
      const events = yield* EventLog
      const reports = yield* ReportsDatabase
      const printing = yield* PdfPrinting
      const workers = yield* Effect.serviceOption(Workers)
      const wake = Option.match(workers, { onNone: () => Effect.void, onSome: ({ wake }) => wake(exportWorker) })

      const smallLedger = Effect.fnUntraced(function* (request: ExportRequest, rowsMax: number) {
        const pieceFrom = yield* makeLedgerPieces(request)
        const read = pieceFrom(reports.sql, ledgerStart, rowsMax)
        const piece = yield* Effect.catchIf(read, isRefusal, () => Effect.undefined)
        return piece?.last === true ? piece : undefined
      })

      /** Undefined if the content is too large to create within the request, or not all of it has been received. */
      const smallContent = (request: ExportRequest, rowsMax: number) =>
        reports.snapshot(
          Effect.all({
            mark: erasureMarkOf(reports.sql, request),
            piece:
              request.report_kind === "usage-ledger"
                ? smallLedger(request, rowsMax)
                : Effect.flatMap(wholePiece(reports.sql, request, rowsMax), storedPiece).pipe(
                    Effect.catch((refusal) =>
                      isTooManyRows(refusal) ? Effect.succeed(undefined) : Effect.fail(refusal)
                    )
                  )
          })
        )

      const store = Effect.fnUntraced(function* (row: ExportRow, given: StoredPiece | undefined, mark?: number) {
        // The transaction prints the PDF: it locks only its export until it appends its event.
        yield* sql`SELECT ${mayPause(sql)}`
        const piece = mark === undefined || (yield* isErasureMark(sql, mark)) ? given : undefined
        yield* insertExport(sql, row)
        if (piece !== undefined) {
          const times = { now: row.created_at, until: row.created_at }
          const written = yield* writePiece(sql, row, piece, times)
          yield* completeExport(sql, printing, written!, { now: row.created_at, digests: piece.digests })
        }
        const { filters, format, id, product_ids, report_kind } = row
        yield* events.append({
          event_type: "report_export.created",
          resource_type: "report_export",
          resource_id: id,
          metadata: { report_kind, format, filters, ...(product_ids === undefined ? undefined : { product_ids }) }
        })
        if (piece === undefined) yield* sql.afterCommit(wake)
        return (yield* findExport(sql, id))!
      }, transaction(sql))

      const create = Effect.fn("Exports.create")(function* (input: typeof ReportExportCreate.Type) {
        const { report_kind, format = "json", filters = {} } = input
        yield* checkFilters(input)
        const product_ids = yield* CurrentProducts
        const limit = product_ids === undefined ? {} : { product_ids }
        const scope = (yield* Effect.orDie(decodeFilters(report_kind, filters))) as Scope
        yield* checkScope(sql, { ...scope, ...ofToken(limit) }).pipe(asFilterError)
        // An export has all that is committed when it is requested.
        yield* Effect.orDie(events.numberWaiting)
        const now = yield* Clock.currentTimeMillis
        const request: ExportRequest = {
          report_kind,
          format,
          filters,
          generated_at: now,
          ledger_last: yield* Effect.orDie(ledgerLast(reports.sql)),
          ...limit
        }
        const { mark, piece } = yield* smallContent(request, immediateRowsMax[format]).pipe(asFilterError)
        const { actor_id, actor_name } = yield* CurrentActor
        const row: ExportRow = {
          ...request,
          id: yield* ids.make("reportExport"),
          status: "pending",
          digest: "",
          artifact_digest: "",
          content_type: contentTypes[format],
          created_by: actor_id,
          ...(actor_name === undefined ? undefined : { created_by_name: actor_name }),
          created_at: now,
          updated_at: now,
          rows: 0,
          collected: 0,
          chunks_done: 0,
          attempts: 0
        }
        return yield* store(row, piece, mark)
      })

      const list = Effect.fn("Exports.list")(function* (request: ListRequest) {
        return yield* listExports(sql, request, yield* CurrentProducts)
      }, Effect.orDie)

      const get = Effect.fn("Exports.get")(function* (id: string) {
        const stored = yield* Effect.orDie(findExport(sql, id))
        return stored ?? (yield* refuseUnknownId("report export", id))
      })

      const file = Effect.fn("Exports.file")(function* (id: string) {
        const stored = yield* get(id)
        if (stored.erased_at !== undefined) {
          const message = "The file was removed because a customer was erased: create another export."
          return yield* refuse("EXPORT_NOT_READY", message, "erased")
        }
        if (stored.status !== "completed") {
          const message =
            stored.status === "failed"
              ? "The export has failed: create another one."
              : "The export is not ready yet: try again in a moment."
          return yield* refuse("EXPORT_NOT_READY", message, stored.status)
        }
        const part = partOf(stored)
        const chunks = yield* Effect.orDie(chunkSizes(sql, id, part))
        const ready: ExportFile = {
          ...stored,
          size_bytes: stored.size_bytes ?? 0,
          bytes: (from, to) => readChunks(sql, id, part, slicesOf(chunks, from, to))
        }
        return ready
      })

      return Exports.of({ create, list, get, file })
    })
  ).pipe(Layer.provide(PdfPrinting.layer))
}

/** Longer names of unknown filters are cut in the refusal. */
const filterNameMax = 200

const invalid = (message: string, field?: string) =>
  refuse("VALIDATION_ERROR", message, field === undefined ? "filters" : `filters.${field}`)

const checkFilters = Effect.fnUntraced(function* ({ filters = {}, report_kind }: typeof ReportExportCreate.Type) {
  const other = unsupportedFilter(report_kind, Object.keys(filters))
  if (other !== undefined) {
    const name = other.slice(0, filterNameMax).toWellFormed()
    return yield* invalid(
      `The report ${report_kind} does not take the filter ${inOneLine(name)}: remove or correct it.`,
      name
    )
  }
  yield* decodeFilters(report_kind, filters).pipe(Effect.catch((error) => Effect.fail(filterError(error, filters))))
})

/** Queries contain only texts, so a filter of another JSON type is an invalid value. */
const filterError = ({ issue }: Schema.SchemaError, filters: unknown) => {
  const { details = [], message } = bodyRefusal(faultsOf(issue, ["filters"], filters))
  return refuse("VALIDATION_ERROR", message, details[0]?.path ?? "filters", { details })
}

const asFilterError = <A, R>(self: Effect.Effect<A, ReportRefusal, R>) =>
  Effect.catch(self, (refusal): Effect.Effect<never, ExportRefusal> => {
    const { code, detail, message } = refusal
    if (code === "NOT_READY") return Effect.fail(refusal)
    return Effect.fail(
      code === "NOT_FOUND" ? refuse("NOT_FOUND", message, `filters.${detail}`) : invalid(message, detail)
    )
  })
