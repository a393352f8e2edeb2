/**
 * Creates large exports in the background. Each piece is stored together with the progress, so after a crash another node continues
 * after the last piece. A node that lost its lease finds a newer attempt and writes no more. Old exports are deleted.
 */
import { Clock, Context, Effect, Layer, Option, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { dayMillis } from "../../../contract/api/Timestamp.ts"
import { Settings } from "../../../platform/config/Config.ts"
import { instant } from "../../../platform/postgres/driver/Parameters.ts"
import { mayPause } from "../../../platform/postgres/driver/Transactions.ts"
import { isErasureMark } from "../../../platform/postgres/queries/ErasureMark.ts"
import { transaction } from "../../../platform/postgres/queries/Sql.ts"
import { sendHeartbeat } from "../../../platform/workers/PassHeartbeat.ts"
import { ReportsDatabase } from "../model/ReportsDatabase.ts"
import type { ReportRefusal } from "../model/RequestChecks.ts"
import { PdfPrinting } from "../pdf/PdfPrinting.ts"
import { erasureMarkOf, wholePiece } from "./ExportContent.ts"
import {
  claimExport,
  completeExport,
  type ExportRow,
  failExport,
  releaseAttempt,
  requestSequence,
  writePiece
} from "./ExportStore.ts"
import { type LedgerPosition, ledgerStart, makeLedgerPieces, positionAfter } from "./LedgerPieces.ts"
import { type StoredPiece, storedPiece } from "./StoredPiece.ts"

/** About 0.7 MB as CSV. */
const pieceRows = 2_000
/** Other reports than the ledger are read into memory as a whole. */
const wholeRowsMax = 200_000
// A piece takes at most a second. A worker without progress for longer has crashed.
const leaseMillis = 60_000
/** After this many attempts the cause is in the export itself. */
const attemptsMax = 5

export class ExportWorker extends Context.Service<
  ExportWorker,
  {
    /** Deletes exports past their retention, and creates all that are pending. */
    readonly pass: Effect.Effect<void, unknown>
    /** Claims one export and stores its next piece. False if there is none. */
    readonly step: Effect.Effect<boolean, unknown>
  }
>()("licensing/insight/reports/exports/ExportWorker") {
  static readonly layer = Layer.effect(
    ExportWorker,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const reports = yield* ReportsDatabase
      const printing = yield* PdfPrinting
      const { exportRetentionDays } = yield* Settings
      const inTransaction = transaction(sql)
      const times = Effect.map(Clock.currentTimeMillis, (now) => ({ now, until: now + leaseMillis }))

      const ledgerOf = (row: ExportRow) =>
        Effect.map(
          Effect.flatMap(Effect.orDie(requestSequence(sql, row.id)), (since) => makeLedgerPieces(row, since)),
          (pieceFrom) => (position: LedgerPosition) => reports.snapshot(pieceFrom(reports.sql, position, pieceRows))
        )

      const pieceOf = Effect.fnUntraced(function* (row: ExportRow) {
        if (row.report_kind === "usage-ledger") {
          const pieceFrom = yield* ledgerOf(row)
          return { row, piece: yield* pieceFrom(positionOf(row)), mark: undefined }
        }
        const asOfNow = { ...row, generated_at: yield* Clock.currentTimeMillis }
        const { mark, piece } = yield* reports.snapshot(
          Effect.all({
            mark: erasureMarkOf(reports.sql, row),
            piece: wholePiece(reports.sql, asOfNow, wholeRowsMax)
          })
        )
        return { row: asOfNow, piece: yield* storedPiece(piece), mark }
      })

      /** Stores a piece. Returns the row if more pieces follow and no other node has taken the export over. */
      const store = (row: ExportRow, piece: StoredPiece, mark?: number) =>
        Effect.gen(function* () {
          // Figures read before an erasure are read again after the lease has expired. A replica may lag for several leases.
          if (mark !== undefined && !(yield* isErasureMark(sql, mark)))
            return yield* Effect.as(releaseAttempt(sql, row), undefined)
          // The last transaction may compute digests and print a PDF: it locks only its export.
          if (piece.last) yield* Effect.orDie(sql`SELECT ${mayPause(sql)}`)
          const at = yield* times
          const written = yield* writePiece(sql, row, piece, at)
          yield* sendHeartbeat
          if (written !== undefined && piece.last)
            yield* completeExport(sql, printing, written, { now: at.now, digests: piece.digests })
          return piece.last ? undefined : written
        }).pipe(inTransaction)

      /** A retry would be refused again, except after the lease if the record or rows of the ledger are not there yet. */
      const failWith =
        (row: ExportRow) =>
        ({ code, message }: ReportRefusal) =>
          code === "NOT_READY"
            ? Effect.as(
                row.report_kind === "usage-ledger" ? Effect.orDie(releaseAttempt(sql, row)) : Effect.void,
                undefined
              )
            : Effect.flatMap(Clock.currentTimeMillis, (now) =>
                Effect.as(Effect.orDie(failExport(sql, row, message, now)), undefined)
              )

      const next = (row: ExportRow) =>
        pieceOf(row).pipe(
          Effect.flatMap(({ mark, piece, row }) => store(row, piece, mark)),
          Effect.catch(failWith(row))
        )

      const ledgerPieces = (row: ExportRow) =>
        Effect.map(ledgerOf(row), (pieceFrom) =>
          Stream.paginate(positionOf(row), (position) =>
            Effect.map(pieceFrom(position), (piece) => {
              const next = piece.last ? Option.none<LedgerPosition>() : Option.some(positionAfter(position, piece))
              return [[piece], next] as const
            })
          ).pipe(Stream.buffer({ capacity: 1 }))
        ).pipe(Stream.unwrap)

      const finish = Effect.fnUntraced(function* (claimed: ExportRow) {
        if (claimed.report_kind !== "usage-ledger") return yield* next(claimed)
        let row = claimed
        const storeNext = Effect.fnUntraced(function* (piece: StoredPiece) {
          const written = yield* store(row, piece)
          if (written !== undefined) row = written
          return written !== undefined
        })
        yield* ledgerPieces(claimed).pipe(Stream.mapEffect(storeNext), Stream.takeWhile(Boolean), Stream.runDrain)
        return undefined
      })

      const claim = Effect.gen(function* () {
        // While the replica is away, exports wait without attempts.
        yield* reports.sql`SELECT 1`
        const { now, until } = yield* times
        const row = yield* claimExport(sql, now, until)
        if (row === undefined || row.attempts <= attemptsMax) return row
        yield* Effect.logError("An export failed after its last attempt.", { export: row.id })
        yield* failExport(sql, row, "The export failed: report its id to the operator.", now)
        return undefined
      })

      const pass = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        yield* sql`
          DELETE FROM report_exports WHERE created_at < ${instant(now - exportRetentionDays * dayMillis)}
            AND status IN ('completed', 'failed')`
        for (let row = yield* claim; row !== undefined; row = yield* claim) {
          yield* Effect.catch(finish(row), failWith(row))
        }
      })
      const step = Effect.flatMap(claim, (row) =>
        row === undefined ? Effect.succeed(false) : Effect.as(next(row), true)
      )

      return ExportWorker.of({ pass, step })
    })
  ).pipe(Layer.provide(PdfPrinting.layer))
}

/** The digests of pieces that another node has stored are unknown. */
const positionOf = ({ chunks_done, collected, rows }: ExportRow): LedgerPosition =>
  chunks_done === 0 ? ledgerStart : { collected, rows, isFirst: false, digests: undefined }
