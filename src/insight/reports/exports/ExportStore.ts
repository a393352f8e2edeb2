/** The database rows of exports. Bytes are stored in chunks, so that no file has to fit into memory. */
import { Effect, Schema, Stream } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import type { ProductIds } from "../../../access/CurrentActor.ts"
import { ownedBy } from "../../../access/productLimits/OwnedRows.ts"
import { Count } from "../../../contract/api/Int64.ts"
import type { ListRequest } from "../../../contract/api/Paging.ts"
import { Timestamp } from "../../../contract/api/Timestamp.ts"
import { columns, instant, json } from "../../../platform/postgres/driver/Parameters.ts"
import { readPage } from "../../../platform/postgres/queries/Pages.ts"
import { decodeRows, equals } from "../../../platform/postgres/queries/Sql.ts"
import { makeDigest } from "../../../platform/signing/Digest.ts"
import type { PdfPrinting } from "../pdf/PdfPrinting.ts"
import { decompress } from "./Compression.ts"
import { type ExportFilter, exportSorts, ReportExport, type StoredExport } from "./Export.ts"
import { LedgerSnapshot, ledgerHead } from "./LedgerSnapshot.ts"
import type { RunningDigest, RunningDigests } from "./RunningDigests.ts"
import { type StoredChunk, type StoredPiece, storedChunks } from "./StoredPiece.ts"

/** At most 1 MiB, because the driver allocates a buffer for the whole statement. */
const chunksAtOnce = 8

export type Part = "snapshot" | "artifact"

/** The file of a JSON export is the snapshot itself. */
export const partOf = ({ format }: Pick<StoredExport, "format">): Part => (format === "json" ? "snapshot" : "artifact")

const { download_url: _, ...storedFields } = ReportExport.fields
const ExportRow = Schema.Struct({
  ...storedFields,
  generated_at: Timestamp,
  ledger_last: Count,
  collected: Count,
  chunks_done: Count,
  attempts: Count,
  leased_until: Schema.optionalKey(Timestamp)
})
export type ExportRow = typeof ExportRow.Type

const ChunkSize = Schema.Struct({ ordinal: Count, size: Count })
type ChunkSize = typeof ChunkSize.Type

const decodeStored = decodeRows(Schema.Struct(storedFields))
const decodeExports = decodeRows(ExportRow)
const decodeSequences = decodeRows(Schema.Struct({ sequence: Count }))
const decodeSizes = decodeRows(ChunkSize)
const decodeChunks = decodeRows(Schema.Struct({ bytes: Schema.Uint8Array, plain_size: Schema.optionalKey(Count) }))

const exportColumns = `id, report_kind, format, status, filters, digest, artifact_digest, content_type, size_bytes, failure, created_by, created_by_name, product_ids,
  created_at, updated_at, erased_at, rows_done AS "rows"`
const workColumns = `${exportColumns}, generated_at, ledger_last, collected, chunks_done, attempts, leased_until`

export const findExport = (sql: SqlClient.SqlClient, id: string) =>
  Effect.map(
    decodeStored(sql`SELECT ${sql.literal(exportColumns)} FROM report_exports WHERE id = ${id}`),
    ([row]): StoredExport | undefined => row
  )

export const listExports = (sql: SqlClient.SqlClient, request: ListRequest & ExportFilter, products: ProductIds) =>
  readPage(sql, request, {
    columns: sql.literal(exportColumns),
    table: "report_exports",
    where: equals(sql, { report_kind: request.report_kind, status: request.status }),
    part: products && { condition: (row) => ownedBy(sql, "report_exports", row, products) },
    sorts: exportSorts,
    decode: decodeStored
  })

export const insertExport = (sql: SqlClient.SqlClient, row: ExportRow) => sql`
  INSERT INTO report_exports (id, report_kind, format, status, filters, content_type, created_by, created_by_name, product_ids,
    generated_at, ledger_last, created_at, updated_at)
  VALUES (${row.id}, ${row.report_kind}, ${row.format}, ${row.status}, ${json(row.filters)}, ${row.content_type},
    ${row.created_by}, ${row.created_by_name ?? null}, ${row.product_ids === undefined ? null : columns.text(row.product_ids)}, ${instant(row.generated_at)}, ${row.ledger_last}, ${instant(row.created_at)},
    ${instant(row.updated_at)})`

/** The export shows the state at the event of its creation. */
export const requestSequence = (sql: SqlClient.SqlClient, id: string) =>
  Effect.map(
    decodeSequences(sql`
      SELECT sequence FROM events WHERE resource_id = ${id} AND event_type = 'report_export.created'
      ORDER BY sequence LIMIT 1`),
    ([row]) => row?.sequence
  )

export const claimExport = (sql: SqlClient.SqlClient, now: number, until: number) =>
  Effect.map(
    decodeExports(sql`
      UPDATE report_exports SET status = 'processing', leased_until = ${instant(until)}, attempts = attempts + 1,
        updated_at = ${instant(now)}
      WHERE id = (
        SELECT id FROM report_exports
        WHERE status IN ('pending', 'processing') AND (leased_until IS NULL OR leased_until <= ${instant(now)})
        ORDER BY created_at, id LIMIT 1 FOR UPDATE SKIP LOCKED
      )
      RETURNING ${sql.literal(workColumns)}`),
    ([row]) => row
  )

/**
 * Appends a piece and updates the export's progress. Writes nothing and returns undefined if another node has taken the export
 * over.
 */
export const writePiece = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  row: ExportRow,
  piece: StoredPiece,
  times: { readonly now: number; readonly until: number }
) {
  const { artifact, snapshot } = piece
  // The next piece need not wait for the disk: after a crash, rows and progress are lost together. The commit that completes
  // the export waits for the disk, including all earlier commits.
  if (!piece.last) yield* sql`SET LOCAL synchronous_commit = off`
  const [written] = yield* decodeExports(sql`
    UPDATE report_exports SET collected = ${piece.collected}, rows_done = rows_done + ${piece.rows},
      chunks_done = chunks_done + ${Math.max(snapshot.length, artifact.length)}, leased_until = ${instant(times.until)},
      updated_at = ${instant(times.now)}, generated_at = ${instant(row.generated_at)}
    WHERE id = ${row.id} AND chunks_done = ${row.chunks_done} AND attempts = ${row.attempts}
    RETURNING ${sql.literal(workColumns)}`)
  if (written === undefined) return undefined
  yield* insertChunks(sql, row, "snapshot", snapshot)
  yield* insertChunks(sql, row, "artifact", artifact)
  return written
})

const insertChunks = (
  sql: SqlClient.SqlClient,
  { chunks_done, id }: Pick<ExportRow, "chunks_done" | "id">,
  part: Part,
  chunks: ReadonlyArray<StoredChunk | undefined>
) => {
  const present = chunks.flatMap((chunk, index) =>
    chunk === undefined ? [] : { ...chunk, ordinal: chunks_done + index }
  )
  return Effect.forEach(
    Array.from({ length: Math.ceil(present.length / chunksAtOnce) }, (_, index) => index * chunksAtOnce),
    (start) => {
      const group = present.slice(start, start + chunksAtOnce)
      return sql`
        INSERT INTO report_export_chunks (export_id, part, ordinal, bytes, plain_size)
        SELECT ${id}, ${part}, chunk.* FROM unnest(${columns.int4(group.map(({ ordinal }) => ordinal))},
          ${columns.bytea(group.map(({ bytes }) => bytes))}, ${columns.int4(group.map(({ plainSize }) => plainSize))}) AS chunk`
    },
    { discard: true }
  )
}

/**
 * Completes an export after its last piece, and creates its PDF if requested. Unknown digests are computed over the stored bytes.
 */
export const completeExport = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { begin }: PdfPrinting["Service"],
  row: ExportRow,
  { digests, now }: { readonly now: number; readonly digests?: RunningDigests | undefined }
) {
  const pdf = row.format === "pdf" ? begin(row) : undefined
  const runningDigests = pdf === undefined ? digests : undefined
  const figures =
    runningDigests === undefined
      ? yield* digestOf(yield* snapshotChunks(sql, row), pdf?.push)
      : finishDigest(runningDigests.snapshot)
  if (pdf !== undefined) {
    const file = yield* pdf.finish(figures.digest)
    yield* insertChunks(sql, { ...row, chunks_done: 0 }, "artifact", yield* storedChunks(file))
  }
  const fileDigest =
    runningDigests === undefined
      ? Effect.flatMap(chunks(sql, row.id, "artifact"), (file) => digestOf(file))
      : Effect.succeed(finishDigest(runningDigests.artifact))
  const file = partOf(row) === "snapshot" ? figures : yield* fileDigest
  yield* sql`
    UPDATE report_exports SET status = 'completed', digest = ${figures.digest}, artifact_digest = ${file.digest},
      size_bytes = ${file.size}, leased_until = NULL, updated_at = ${instant(now)}
    WHERE id = ${row.id} AND attempts = ${row.attempts}`
  // The snapshot is needed only if it is the file.
  if (partOf(row) !== "snapshot") {
    yield* sql`DELETE FROM report_export_chunks WHERE export_id = ${row.id} AND part = 'snapshot'`
  }
})

// Finishes a copy, because a retried transaction needs the state again.
const finishDigest = ({ digest, size }: RunningDigest) => ({ digest: digest.copy().hex(), size })

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

const chunks = (sql: SqlClient.SqlClient, id: string, part: Part) =>
  Effect.map(chunkSizes(sql, id, part), (sizes) => readChunks(sql, id, part, slicesOf(sizes)))

/** The bytes of the snapshot, partly restored from the CSV if they are not stored. */
const snapshotChunks = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, row: ExportRow) {
  const snapshotSizes = yield* chunkSizes(sql, row.id, "snapshot")
  if (row.format !== "csv" || row.report_kind !== "usage-ledger")
    return readChunks(sql, row.id, "snapshot", slicesOf(snapshotSizes))
  const ordinals = new Set(snapshotSizes.map(({ ordinal }) => ordinal))
  const csvOnlySizes = (yield* chunkSizes(sql, row.id, "artifact")).filter(({ ordinal }) => !ordinals.has(ordinal))
  const snapshot = new LedgerSnapshot(yield* ledgerHead(sql, row))
  const all = [
    ...snapshotSizes.map((chunk) => ({ ...chunk, part: "snapshot" as const })),
    ...csvOnlySizes.map((chunk) => ({ ...chunk, part: "artifact" as const }))
  ]
  return Stream.concat(
    Stream.mapEffect(
      Stream.fromIterable(all.toSorted((one, other) => one.ordinal - other.ordinal)),
      ({ ordinal, part }) =>
        Effect.map(readChunk(sql, row.id, part, ordinal), (bytes) =>
          part === "snapshot" ? snapshot.fromSnapshot(bytes) : snapshot.fromCsv(bytes)
        )
    ),
    Stream.suspend(() => Stream.succeed(snapshot.end()))
  )
})

/** Does not count the attempt. The next one begins when the lease ends. */
export const releaseAttempt = (sql: SqlClient.SqlClient, { attempts, id }: ExportRow) => sql`
  UPDATE report_exports SET attempts = attempts - 1 WHERE id = ${id} AND attempts = ${attempts}`

export const failExport = (sql: SqlClient.SqlClient, { attempts, id }: ExportRow, failure: string, now: number) => sql`
  UPDATE report_exports SET status = 'failed', failure = ${failure}, leased_until = NULL, updated_at = ${instant(now)}
  WHERE id = ${id} AND attempts = ${attempts}`

export const chunkSizes = (sql: SqlClient.SqlClient, id: string, part: Part) =>
  decodeSizes(sql`
  SELECT ordinal, coalesce(plain_size, octet_length(bytes)) AS size FROM report_export_chunks
  WHERE export_id = ${id} AND part = ${part} ORDER BY ordinal`)

interface Slice {
  readonly ordinal: number
  readonly start: number
  readonly end: number
}

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

export const readChunks = (sql: SqlClient.SqlClient, id: string, part: Part, slices: ReadonlyArray<Slice>) =>
  Stream.mapEffect(Stream.fromIterable(slices), ({ end, ordinal, start }) =>
    Effect.map(readChunk(sql, id, part, ordinal), (bytes) => bytes.subarray(start, end))
  )

const readChunk = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, id: string, part: Part, ordinal: number) {
  const [row] = yield* decodeChunks(sql`
    SELECT bytes, plain_size FROM report_export_chunks WHERE export_id = ${id} AND part = ${part} AND ordinal = ${ordinal}`)
  const { bytes, plain_size } = row!
  return plain_size === undefined ? bytes : yield* decompress(bytes, plain_size)
})
