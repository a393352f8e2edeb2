/**
 * Makes the exports that are too large to be made while somebody waits. What is done is written piece by piece together with how
 * far it is, so whoever goes on after a node has died begins behind the last piece; a node that only seemed dead finds its
 * attempt over and writes no more. Old exports are deleted.
 */
import { Clock, Context, Effect, Layer, Option, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { Settings } from "../Config.ts"
import { instant } from "../postgres/Parameters.ts"
import { transaction } from "../postgres/Sql.ts"
import { ledgerPiece, ledgerRows, ledgerText, type Piece, wholePiece } from "./ExportContent.ts"
import { claimExport, completeExport, type ExportRow, failExport, writePiece } from "./ExportStore.ts"
import { firstSums, type PieceSums, withPiece } from "./PieceSums.ts"
import { Printing } from "./Printing.ts"
import { ReportsDatabase } from "./ReportsDatabase.ts"

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
>()("licensing/reports/ExportWorker") {
  static readonly layer = Layer.effect(
    ExportWorker,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const reports = yield* ReportsDatabase
      const printing = yield* Printing
      const { exportRetentionDays } = yield* Settings
      const inTransaction = transaction(sql)
      const times = Effect.map(Clock.currentTimeMillis, (now) => ({ now, until: now + leaseMillis }))

      const pieceOf = Effect.fnUntraced(function* (row: ExportRow) {
        if (row.report_kind === "usage-ledger") {
          const from = { collected: row.collected, first: row.chunks_done === 0, limit: pieceRows }
          return { row, piece: yield* reports.snapshot(ledgerPiece(reports.sql, row, from)) }
        }
        const asOfNow = { ...row, generated_at: yield* Clock.currentTimeMillis }
        return { row: asOfNow, piece: yield* reports.snapshot(wholePiece(reports.sql, asOfNow, wholeRowsMax)) }
      })

      /** Stores a piece; what there is to be done after it, unless that is nothing, or another node's. */
      const store = Effect.fnUntraced(function* (row: ExportRow, piece: Piece, sums: PieceSums | undefined) {
        const at = yield* times
        const written = yield* writePiece(sql, row, piece, at)
        if (written !== undefined && piece.last) yield* completeExport(sql, printing, written, { now: at.now, sums })
        return piece.last ? undefined : written
      }, inTransaction)

      // What the report refuses it will refuse again.
      const giveUp = (row: ExportRow) => (refusal: { readonly message: string }) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) =>
          Effect.as(failExport(sql, row, refusal.message, now), undefined)
        )

      const next = (row: ExportRow) =>
        pieceOf(row).pipe(
          Effect.flatMap(({ piece, row }) => store(row, piece, undefined)),
          Effect.catch(giveUp(row))
        )

      /** The pieces of an export of the ledger: while one is stored, the next is written out and the one after it read. */
      const ledgerPieces = (row: ExportRow) =>
        Stream.paginate(row.collected, (collected) =>
          Effect.map(reports.snapshot(ledgerRows(reports.sql, row, collected, pieceRows)), (rows) => {
            const last = rows.length < pieceRows ? Option.none() : Option.fromNullishOr(rows.at(-1)?.sequence)
            return [[{ rows, collected }], last] as const
          })
        ).pipe(
          Stream.buffer({ capacity: 1 }),
          Stream.mapEffect(({ rows, collected }) => {
            const first = row.chunks_done === 0 && collected === row.collected
            return ledgerText(row, rows, { collected, first, limit: pieceRows })
          }),
          Stream.buffer({ capacity: 1 })
        )

      /** Makes an export to its end, or to where another node has taken it. */
      const finish = Effect.fnUntraced(function* (claimed: ExportRow) {
        if (claimed.report_kind !== "usage-ledger") return yield* next(claimed)
        let row = claimed
        let sums: PieceSums | undefined
        const goesOn = Effect.fnUntraced(function* (piece: Piece) {
          if (row.chunks_done === 0) sums = firstSums(piece)
          else if (sums !== undefined) sums = withPiece(sums, piece)
          const written = yield* store(row, piece, sums)
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
