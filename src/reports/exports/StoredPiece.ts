/** The chunks in which the bytes of exports are stored, so that no file has to fit into memory. */
import { Effect } from "effect"
import { compress } from "./Compression.ts"
import type { Piece } from "./ExportContent.ts"

/** The size of a chunk before compression: large enough for few rows, small enough for many concurrent downloads in memory. */
const chunkBytes = 131_072

/** A chunk as it is stored. */
export interface StoredChunk {
  readonly bytes: Uint8Array
  /** The size before compression; null for the empty chunk, which is not compressed. */
  readonly plainSize: number | null
}

/** A piece as it is stored: in compressed chunks. */
export interface StoredPiece extends Omit<Piece, "csv" | "snapshot"> {
  readonly artifact: ReadonlyArray<StoredChunk>
  readonly snapshot: ReadonlyArray<StoredChunk>
}

/** Compresses a piece. It takes a transaction's time, so it comes before one. */
export const storedPiece = Effect.fnUntraced(function* ({ csv, snapshot, ...piece }: Piece) {
  const [artifactChunks, snapshotChunks] = yield* Effect.all([storedChunks(csv), storedChunks(snapshot ?? empty)], {
    concurrency: 2
  })
  // A file chunk without a snapshot chunk of the same ordinal means that the snapshot is restored from the CSV.
  const missing = snapshot === undefined ? 0 : Math.max(0, artifactChunks.length - snapshotChunks.length)
  const stored: StoredPiece = {
    ...piece,
    artifact: artifactChunks,
    snapshot: [...snapshotChunks, ...Array.from({ length: missing }, () => emptyChunk)]
  }
  return stored
})

const empty = new Uint8Array()
const emptyChunk: StoredChunk = { bytes: empty, plainSize: null }

/** Chunks that are compressed at the same time. */
const compressions = 2

export const storedChunks = (bytes: Uint8Array) =>
  Effect.forEach(
    chunksOf(bytes),
    (chunk) => Effect.map(compress(chunk), (bytes): StoredChunk => ({ bytes, plainSize: chunk.length })),
    { concurrency: compressions }
  )

const chunksOf = (bytes: Uint8Array): Array<Uint8Array> =>
  Array.from({ length: Math.ceil(bytes.length / chunkBytes) }, (_, index) =>
    bytes.subarray(index * chunkBytes, (index + 1) * chunkBytes)
  )
