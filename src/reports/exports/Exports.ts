/**
 * Exports of reports. A small one is made while the caller waits, a large one by a worker; either way the figures are of one
 * moment, and two downloads give the same bytes for as long as the export is kept.
 */
import { Clock, Context, Effect, Layer, Option, type Schema, SchemaIssue, type Stream } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type Refusal, refuse } from "../../api/Failure.ts"
import { Identifiers } from "../../api/Identifier.ts"
import { CurrentActor } from "../../auth/CurrentActor.ts"
import { EventLog } from "../../events/EventLog.ts"
import { transaction } from "../../postgres/Sql.ts"
import { Workers } from "../../workers/Workers.ts"
import { decodeFilters, type Scope, untaken } from "../model/Filter.ts"
import { ReportsDatabase } from "../model/ReportsDatabase.ts"
import { checkScope, isTooMany } from "../model/RequestChecks.ts"
import { Printing } from "../pdf/PdfPrinting.ts"
import type { ReportExportCreate, ReportExportFormat, StoredExport } from "./Export.ts"
import { type ExportRequest, type Piece, wholePiece } from "./ExportContent.ts"
import {
  chunkSizes,
  completeExport,
  type ExportRow,
  findExport,
  insertExport,
  partOf,
  readChunks,
  slicesOf,
  writePiece
} from "./ExportStore.ts"
import { makeLedgerPieces } from "./LedgerPieces.ts"

/** Rows of an export that is made at once: a fraction of a second. Printing a row takes ten times as long as writing it. */
const rowsAtOnceMax: { readonly [K in ReportExportFormat]: number } = { json: 2_000, csv: 2_000, pdf: 200 }

/** The worker that makes the others, as it is woken. */
export const exportWorker = "report-exports"

const contentTypes: { readonly [K in ReportExportFormat]: string } = {
  json: "application/json",
  csv: "text/csv; charset=utf-8",
  pdf: "application/pdf"
}

/** A file that is ready. */
export interface ExportFile extends StoredExport {
  readonly size_bytes: number
  /** The bytes between two positions, the second one not among them. */
  bytes(from: number, to: number): Stream.Stream<Uint8Array, SqlError.SqlError>
}

type Unmade = Refusal<"VALIDATION_ERROR"> | Refusal<"NOT_FOUND">

export class Exports extends Context.Service<
  Exports,
  {
    create(input: typeof ReportExportCreate.Type): Effect.Effect<StoredExport, Unmade>
    get(id: string): Effect.Effect<StoredExport, Refusal<"NOT_FOUND">>
    file(id: string): Effect.Effect<ExportFile, Refusal<"NOT_FOUND"> | Refusal<"EXPORT_NOT_READY">>
  }
>()("licensing/reports/exports/Exports") {
  static readonly layer = Layer.effect(
    Exports,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Identifiers
      const events = yield* EventLog
      const reports = yield* ReportsDatabase
      const printing = yield* Printing
      const workers = yield* Effect.serviceOption(Workers)
      const wake = Option.match(workers, { onNone: () => Effect.void, onSome: ({ wake }) => wake(exportWorker) })

      const ledgerAtOnce = Effect.fnUntraced(function* (asked: ExportRequest, rowsMax: number) {
        const { read, write } = yield* makeLedgerPieces(asked)
        const page = yield* read(reports.sql, { collected: 0, first: true, limit: rowsMax })
        return page.last ? yield* write(page) : undefined
      })

      /** The whole content where it is small enough to be waited for. */
      const atOnce = (asked: ExportRequest, rowsMax: number) =>
        reports.snapshot(
          asked.report_kind === "usage-ledger"
            ? ledgerAtOnce(asked, rowsMax)
            : wholePiece(reports.sql, asked, rowsMax).pipe(
                Effect.catch((refusal) => (isTooMany(refusal) ? Effect.succeed(undefined) : Effect.fail(refusal)))
              )
        )

      const store = Effect.fnUntraced(function* (row: ExportRow, piece: Piece | undefined) {
        yield* insertExport(sql, row)
        if (piece !== undefined) {
          const times = { now: row.created_at, until: row.created_at }
          const written = yield* writePiece(sql, row, piece, times)
          yield* completeExport(sql, printing, written!, { now: row.created_at, sums: piece.sums })
        }
        const { filters, format, id, report_kind } = row
        yield* events.append({
          event_type: "report_export.created",
          resource_type: "report_export",
          resource_id: id,
          metadata: { report_kind, format, filters }
        })
        if (piece === undefined) yield* sql.afterCommit(wake)
        return (yield* findExport(sql, id))!
      }, transaction(sql))

      const create = Effect.fn("Exports.create")(function* (input: typeof ReportExportCreate.Type) {
        const { report_kind, format = "json", filters = {} } = input
        yield* checkFilters(input)
        yield* checkScope(sql, (yield* Effect.orDie(decodeFilters(report_kind, filters))) as Scope).pipe(ofFilters)
        const now = yield* Clock.currentTimeMillis
        const asked: ExportRequest = {
          report_kind,
          format,
          filters,
          generated_at: now,
          ledger_last: yield* ledgerLast(reports.sql)
        }
        const piece = yield* atOnce(asked, rowsAtOnceMax[format]).pipe(ofFilters)
        const row: ExportRow = {
          ...asked,
          id: yield* ids.make("reportExport"),
          status: "pending",
          digest: "",
          artifact_digest: "",
          content_type: contentTypes[format],
          created_by: (yield* CurrentActor).actor_id,
          created_at: now,
          updated_at: now,
          rows: 0,
          collected: 0,
          chunks_done: 0,
          attempts: 0
        }
        return yield* store(row, piece)
      })

      const get = Effect.fn("Exports.get")(function* (id: string) {
        const found = yield* Effect.orDie(findExport(sql, id))
        return found ?? (yield* refuse("NOT_FOUND", `No report export has the id ${id}.`, "id"))
      })

      const file = Effect.fn("Exports.file")(function* (id: string) {
        const found = yield* get(id)
        if (found.status !== "completed") {
          const why = found.status === "failed" ? "has failed: make another one" : "is not made yet: try again"
          return yield* refuse("EXPORT_NOT_READY", `The export ${why}.`, found.status)
        }
        const part = partOf(found)
        const chunks = yield* Effect.orDie(chunkSizes(sql, id, part))
        const ready: ExportFile = {
          ...found,
          size_bytes: found.size_bytes ?? 0,
          bytes: (from, to) => readChunks(sql, id, part, slicesOf(chunks, from, to))
        }
        return ready
      })

      return Exports.of({ create, get, file })
    })
  ).pipe(Layer.provide(Printing.layer))
}

const ledgerLast = (sql: SqlClient.SqlClient) =>
  Effect.map(
    Effect.orDie(sql<{ readonly last: number }>`SELECT ledger_last AS last FROM event_sequence`),
    ([row]) => row?.last ?? 0
  )

/** Characters of an unknown filter's name in a refusal. */
const filterNameMax = 200

const invalid = (message: string, field?: string) =>
  refuse("VALIDATION_ERROR", message, field === undefined ? "filters" : `filters.${field}`)

/** What is wrong with filters as they stand: a field that the report does not take, one that is missing, a value that is none. */
const checkFilters = Effect.fnUntraced(function* ({ filters = {}, report_kind }: typeof ReportExportCreate.Type) {
  const other = untaken(report_kind, Object.keys(filters))
  if (other !== undefined) {
    const name = other.slice(0, filterNameMax).toWellFormed()
    return yield* invalid(`The report ${report_kind} does not take the filter ${name}: remove or correct it.`, name)
  }
  yield* decodeFilters(report_kind, filters).pipe(Effect.catch((error) => Effect.fail(faultOf(error))))
})

const messages = SchemaIssue.makeFormatterStandardSchemaV1()

const faultOf = ({ issue }: Schema.SchemaError) => {
  const [fault] = messages(issue).issues
  const field = fault?.path?.[0] === undefined ? undefined : String(fault.path[0])
  return invalid(`The filter ${field ?? ""} is not valid: ${fault?.message ?? "it is not known"}.`, field)
}

/** What a query is refused for, as it is said of filters. */
const ofFilters = <A, R>(self: Effect.Effect<A, Refusal<"INVALID_QUERY"> | Refusal<"NOT_FOUND">, R>) =>
  Effect.catch(self, ({ code, detail, message }) =>
    Effect.fail(code === "NOT_FOUND" ? refuse("NOT_FOUND", message, `filters.${detail}`) : invalid(message, detail))
  )
