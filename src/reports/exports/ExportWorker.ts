/**
 * Makes the exports that are too large to be made while somebody waits. What is done is written piece by piece together with how
 * far it is, so whoever goes on after a node has died begins behind the last piece; a node that only seemed dead finds its
 * attempt over and writes no more. Old exports are deleted.
 */
import { Clock, Context, Effect, Layer, Option, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { Settings } from "../../config/Config.ts"
import { instant } from "../../postgres/Parameters.ts"
import { transaction } from "../../postgres/Sql.ts"
import { sendHeartbeat } from "../../workers/Heartbeat.ts"
import { ReportsDatabase } from "../model/ReportsDatabase.ts"
import { Printing } from "../pdf/PdfPrinting.ts"
import { type Piece, wholePiece } from "./ExportContent.ts"
import { askedBy, claimExport, completeExport, type ExportRow, failExport, writePiece } from "./ExportStore.ts"
import { makeLedgerPieces } from "./LedgerPieces.ts"

/** Rows of the ledger in a piece: about 1 MB. */
const pieceRows = 2_000
/** Rows of a report that is read whole, and held in memory for it. */
const wholeRowsMax = 200_000
// A piece takes a second at most; who has been silent for so long is gone.
const leaseMillis = 60_000
/** Attempts after which an export is given up: it fails for a reason of its own. */
const attemptsMax = 5
const dayMillis = 86_400_000

export class ExportWorker extends Context.Service<
  ExportWorker,
  {
    /** Makes all exports that wait, and deletes those that are kept no longer. */
    readonly pass: Effect.Effect<void, unknown>
    /** Takes one export up and makes its next piece; what it has done stands. False where there was none. */
    readonly step: Effect.Effect<boolean, unknown>
  }
>()("licensing/reports/exports/ExportWorker") {
  static readonly layer = Layer.effect(
    ExportWorker,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const reports = yield* ReportsDatabase
      const printing = yield* Printing
      const { exportRetentionDays } = yield* Settings
      const inTransaction = transaction(sql)
      const times = Effect.map(Clock.currentTimeMillis, (now) => ({ now, until: now + leaseMillis }))

      const ledgerOf = (row: ExportRow) =>
        Effect.flatMap(askedBy(sql, row.id), (since) =>
          makeLedgerPieces(row, { since, rows: row.rows, collected: row.collected })
        )

      const pieceOf = Effect.fnUntraced(function* (row: ExportRow) {
        if (row.report_kind === "usage-ledger") {
          const { read, write } = yield* ledgerOf(row)
          const from = { collected: row.collected, first: row.chunks_done === 0, limit: pieceRows }
          const page = read(reports.sql, from)
          return { row, piece: yield* write(yield* reports.snapshot(page)) }
        }
        const asOfNow = { ...row, generated_at: yield* Clock.currentTimeMillis }
        return { row: asOfNow, piece: yield* reports.snapshot(wholePiece(reports.sql, asOfNow, wholeRowsMax)) }
      })

      /** Stores a piece; what there is to be done after it, unless that is nothing, or another node's. */
      const store = (row: ExportRow, piece: Piece) =>
        Effect.gen(function* () {
          const at = yield* times
          const written = yield* writePiece(sql, row, piece, at)
          yield* sendHeartbeat
          if (written !== undefined && piece.last)
            yield* completeExport(sql, printing, written, { now: at.now, sums: piece.sums })
          return piece.last ? undefined : written
        }).pipe(inTransaction)

      // What the report refuses it will refuse again.
      const giveUp = (row: ExportRow) => (refusal: { readonly message: string }) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) =>
          Effect.as(failExport(sql, row, refusal.message, now), undefined)
        )

      const next = (row: ExportRow) =>
        pieceOf(row).pipe(
          Effect.flatMap(({ piece, row }) => store(row, piece)),
          Effect.catch(giveUp(row))
        )

      /** The pieces of an export of the ledger: while one is stored, the next is written out and the one after it read. */
      const ledgerPieces = (row: ExportRow) =>
        Effect.map(ledgerOf(row), ({ read, write }) =>
          Stream.paginate(row.collected, (collected) => {
            const first = row.chunks_done === 0 && collected === row.collected
            const page = reports.snapshot(read(reports.sql, { collected, first, limit: pieceRows }))
            return Effect.map(
              page,
              (page) => [[page], page.last ? Option.none() : Option.some(page.collected)] as const
            )
          }).pipe(Stream.buffer({ capacity: 1 }), Stream.mapEffect(write), Stream.buffer({ capacity: 1 }))
        ).pipe(Stream.unwrap)

      /** Makes an export to its end, or to where another node has taken it. */
      const finish = Effect.fnUntraced(function* (claimed: ExportRow) {
        if (claimed.report_kind !== "usage-ledger") return yield* next(claimed)
        let row = claimed
        const goesOn = Effect.fnUntraced(function* (piece: Piece) {
          const written = yield* store(row, piece)
          if (written !== undefined) row = written
          return written !== undefined
        })
        yield* ledgerPieces(claimed).pipe(Stream.mapEffect(goesOn), Stream.takeWhile(Boolean), Stream.runDrain)
        return undefined
      })

      const claim = Effect.gen(function* () {
        const { now, until } = yield* times
        const row = yield* claimExport(sql, now, until)
        if (row === undefined || row.attempts <= attemptsMax) return row
        yield* Effect.logError("An export was given up.", { export: row.id })
        yield* failExport(sql, row, "The export could not be made: tell the operator its id.", now)
        return undefined
      })

      const pass = Effect.gen(function* () {
        for (let row = yield* claim; row !== undefined; row = yield* claim) {
          yield* Effect.catch(finish(row), giveUp(row))
        }
        const now = yield* Clock.currentTimeMillis
        yield* sql`
          DELETE FROM report_exports WHERE created_at < ${instant(now - exportRetentionDays * dayMillis)}
            AND status IN ('completed', 'failed')`
      })
      const step = Effect.flatMap(claim, (row) =>
        row === undefined ? Effect.succeed(false) : Effect.as(next(row), true)
      )

      return ExportWorker.of({ pass, step })
    })
  ).pipe(Layer.provide(Printing.layer))
}
