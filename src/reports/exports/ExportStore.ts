/** The rows of exports. Bytes are stored in chunks, so that no file has to fit into memory, neither written nor read. */
import { Effect, Stream } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { instant, json } from "../../postgres/Parameters.ts"
import { present, type Row } from "../../postgres/Sql.ts"
import { makeDigest } from "../../signing/Digest.ts"
import type { Printing } from "../pdf/PdfPrinting.ts"
import type { StoredExport } from "./Export.ts"
import type { ExportRequest, Piece } from "./ExportContent.ts"
import { LedgerFigures, ledgerHead } from "./LedgerFigures.ts"
import type { PartSum, PieceSums } from "./PieceSums.ts"

/**
 * Bytes of a chunk: large enough to be few, small enough to hold many downloads in memory. A statement with one takes a little
 * less than 256 KiB, which the driver has room for without taking twice as much.
 */
const chunkBytes = 260_096

export type Part = "snapshot" | "artifact"

/** Where the file of an export is: JSON is the figures themselves. */
export const partOf = ({ format }: Pick<StoredExport, "format">): Part => (format === "json" ? "snapshot" : "artifact")

export interface ExportRow extends StoredExport, Omit<ExportRequest, "filters"> {
  readonly collected: number
  readonly chunks_done: number
  readonly attempts: number
  readonly leased_until?: number
}

const stored = `id, report_kind, format, status, filters, digest, artifact_digest, content_type, size_bytes, failure, created_by,
  created_at, updated_at, rows_done AS "rows"`
const working = `${stored}, generated_at, ledger_last, collected, chunks_done, attempts, leased_until`

export const findExport = (sql: SqlClient.SqlClient, id: string) =>
  Effect.map(sql<Row<StoredExport>>`SELECT ${sql.literal(stored)} FROM report_exports WHERE id = ${id}`, ([row]) =>
    row === undefined ? undefined : present<StoredExport>(row)
  )

export const insertExport = (sql: SqlClient.SqlClient, row: ExportRow) => sql`
  INSERT INTO report_exports (id, report_kind, format, status, filters, content_type, created_by, generated_at, ledger_last,
    created_at, updated_at)
  VALUES (${row.id}, ${row.report_kind}, ${row.format}, ${row.status}, ${json(row.filters)}, ${row.content_type},
    ${row.created_by}, ${instant(row.generated_at)}, ${row.ledger_last}, ${instant(row.created_at)},
    ${instant(row.updated_at)})`

/** The number of the event that tells of an export: what was there when it was asked for. */
export const askedBy = (sql: SqlClient.SqlClient, id: string) =>
  Effect.map(
    sql<{ readonly sequence: number }>`
      SELECT sequence FROM events WHERE resource_id = ${id} AND event_type = 'report_export.created'
      ORDER BY sequence LIMIT 1`,
    ([row]) => row?.sequence
  )

/** Takes the oldest export that nobody is at, until an instant. */
export const claimExport = (sql: SqlClient.SqlClient, now: number, until: number) =>
  Effect.map(
    sql<Row<ExportRow>>`
      UPDATE report_exports SET status = 'processing', leased_until = ${instant(until)}, attempts = attempts + 1,
        updated_at = ${instant(now)}
      WHERE id = (
        SELECT id FROM report_exports
        WHERE status IN ('pending', 'processing') AND (leased_until IS NULL OR leased_until <= ${instant(now)})
        ORDER BY created_at, id LIMIT 1 FOR UPDATE SKIP LOCKED
      )
      RETURNING ${sql.literal(working)}`,
    ([row]) => (row === undefined ? undefined : present<ExportRow>(row))
  )

/**
 * Writes a piece behind those that are there, and how far the export is. Gives the row as it is then, or undefined where
 * another node has taken the export meanwhile: nothing is written then.
 */
export const writePiece = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  row: ExportRow,
  piece: Piece,
  times: { readonly now: number; readonly until: number }
) {
  const artifact = chunksOf(piece.csv)
  const snapshot = piece.snapshot === undefined ? [] : chunksOf(piece.snapshot)
  // A chunk of the file without one of figures beside it tells them itself.
  while (piece.snapshot !== undefined && snapshot.length < artifact.length) snapshot.push(new Uint8Array())
  const chunks = Math.max(snapshot.length, artifact.length)
  // The next piece need not wait for the disk: where a machine fails, rows and how far they go are lost together. What completes
  // the export is waited for, and with it all that came before.
  if (!piece.last) yield* sql`SET LOCAL synchronous_commit = off`
  const [written] = yield* sql<Row<ExportRow>>`
    UPDATE report_exports SET collected = ${piece.collected}, rows_done = rows_done + ${piece.rows},
      chunks_done = chunks_done + ${chunks}, leased_until = ${instant(times.until)}, updated_at = ${instant(times.now)},
      generated_at = ${instant(row.generated_at)}
    WHERE id = ${row.id} AND chunks_done = ${row.chunks_done} AND attempts = ${row.attempts}
    RETURNING ${sql.literal(working)}`
  if (written === undefined) return undefined
  yield* insertChunks(sql, row, "snapshot", snapshot)
  yield* insertChunks(sql, row, "artifact", artifact)
  return present<ExportRow>(written)
})

const chunksOf = (bytes: Uint8Array): Array<Uint8Array> =>
  Array.from({ length: Math.ceil(bytes.length / chunkBytes) }, (_, index) =>
    bytes.subarray(index * chunkBytes, (index + 1) * chunkBytes)
  )

/** One chunk with each statement: the driver takes room for whole statements, twice as much for one that is twice as long. */
const insertChunks = (
  sql: SqlClient.SqlClient,
  { chunks_done, id }: Pick<ExportRow, "chunks_done" | "id">,
  part: Part,
  chunks: ReadonlyArray<Uint8Array>
) =>
  Effect.forEach(
    chunks,
    (chunk, index) => sql`
      INSERT INTO report_export_chunks (export_id, part, ordinal, bytes)
      VALUES (${id}, ${part}, ${chunks_done + index}, ${chunk})`,
    { discard: true }
  )

/**
 * Completes an export whose pieces are all there, and prints what is to be printed. Digests that are not known are taken over
 * what is stored.
 */
export const completeExport = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { begin }: Printing["Service"],
  row: ExportRow,
  { now, sums }: { readonly now: number; readonly sums?: PieceSums | undefined }
) {
  const print = row.format === "pdf" ? begin(row) : undefined
  const known = print === undefined ? sums : undefined
  const figures =
    known === undefined ? yield* digestOf(yield* figuresOf(sql, row), print?.push) : summed(known.snapshot)
  if (print !== undefined) {
    const file = yield* print.finish(figures.digest)
    yield* insertChunks(sql, { ...row, chunks_done: 0 }, "artifact", chunksOf(file))
  }
  const stored =
    known === undefined
      ? Effect.flatMap(chunks(sql, row.id, "artifact"), (file) => digestOf(file))
      : Effect.succeed(summed(known.artifact))
  const file = partOf(row) === "snapshot" ? figures : yield* stored
  yield* sql`
    UPDATE report_exports SET status = 'completed', digest = ${figures.digest}, artifact_digest = ${file.digest},
      size_bytes = ${file.size}, leased_until = NULL, updated_at = ${instant(now)}
    WHERE id = ${row.id} AND attempts = ${row.attempts}`
  // The figures have done their work where the file is another one.
  if (partOf(row) !== "snapshot") {
    yield* sql`DELETE FROM report_export_chunks WHERE export_id = ${row.id} AND part = 'snapshot'`
  }
})

// Of a copy: a transaction that is tried again asks once more.
const summed = ({ digest, size }: PartSum) => ({ digest: digest.copy().hex(), size })

const digestOf = (bytes: Stream.Stream<Uint8Array, SqlError.SqlError>, also: (bytes: Uint8Array) => void = () => {}) =>
  Effect.gen(function* () {
    const digest = makeDigest()
    let size = 0
    yield* Stream.runForEach(bytes, (bytes) =>
      Effect.sync(() => {
        digest.update(bytes)
        size += bytes.length
        also(bytes)
      })
    )
    return { digest: digest.hex(), size }
  })

/** All chunks of a part. */
const chunks = (sql: SqlClient.SqlClient, id: string, part: Part) =>
  Effect.map(chunkSizes(sql, id, part), (sizes) => readChunks(sql, id, part, slicesOf(sizes)))

/** The figures, where they are not stored as the file tells them. */
const figuresOf = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, row: ExportRow) {
  const stored = yield* chunkSizes(sql, row.id, "snapshot")
  if (row.format !== "csv" || row.report_kind !== "usage-ledger")
    return readChunks(sql, row.id, "snapshot", slicesOf(stored))
  const ordinals = new Set(stored.map(({ ordinal }) => ordinal))
  const told = (yield* chunkSizes(sql, row.id, "artifact")).filter(({ ordinal }) => !ordinals.has(ordinal))
  const figures = new LedgerFigures(yield* Effect.orDie(ledgerHead(row)))
  const all = [
    ...stored.map((chunk) => ({ ...chunk, part: "snapshot" as const })),
    ...told.map((chunk) => ({ ...chunk, part: "artifact" as const }))
  ]
  return Stream.concat(
    Stream.mapEffect(
      Stream.fromIterable(all.toSorted((one, other) => one.ordinal - other.ordinal)),
      ({ ordinal, part }) =>
        Effect.map(readChunk(sql, row.id, part, ordinal), (bytes) =>
          part === "snapshot" ? figures.stored(bytes) : figures.told(bytes)
        )
    ),
    Stream.suspend(() => Stream.succeed(figures.end()))
  )
})

export const failExport = (sql: SqlClient.SqlClient, { attempts, id }: ExportRow, failure: string, now: number) => sql`
  UPDATE report_exports SET status = 'failed', failure = ${failure}, leased_until = NULL, updated_at = ${instant(now)}
  WHERE id = ${id} AND attempts = ${attempts}`

interface ChunkSize {
  readonly ordinal: number
  readonly size: number
}

/** The chunks of a part in their order. The size of a stored value is known without reading it. */
export const chunkSizes = (sql: SqlClient.SqlClient, id: string, part: Part) => sql<ChunkSize>`
  SELECT ordinal, octet_length(bytes) AS size FROM report_export_chunks WHERE export_id = ${id} AND part = ${part}
  ORDER BY ordinal`

/** A chunk and what of it is wanted. */
interface Slice {
  readonly ordinal: number
  readonly start: number
  readonly end: number
}

/** What of the chunks lies between two positions in the whole; the second one is not in it. */
export const slicesOf = (
  chunks: ReadonlyArray<ChunkSize>,
  from = 0,
  to = Number.POSITIVE_INFINITY
): ReadonlyArray<Slice> => {
  let position = 0
  return chunks.flatMap(({ ordinal, size }) => {
    const [start, end] = [Math.max(from - position, 0), Math.min(to - position, size)]
    position += size
    return start < end ? [{ ordinal, start, end }] : []
  })
}

/** Reads one chunk after another, as they are taken. */
export const readChunks = (sql: SqlClient.SqlClient, id: string, part: Part, slices: ReadonlyArray<Slice>) =>
  Stream.mapEffect(Stream.fromIterable(slices), ({ end, ordinal, start }) =>
    Effect.map(readChunk(sql, id, part, ordinal), (bytes) => bytes.subarray(start, end))
  )

const readChunk = (sql: SqlClient.SqlClient, id: string, part: Part, ordinal: number) =>
  Effect.map(
    sql<{ readonly bytes: Uint8Array }>`
      SELECT bytes FROM report_export_chunks WHERE export_id = ${id} AND part = ${part} AND ordinal = ${ordinal}`,
    ([row]) => row!.bytes
  )
