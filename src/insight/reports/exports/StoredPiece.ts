/** The chunks in which the bytes of exports are stored, so that no file has to fit into memory. */
import { Effect } from "effect"
import { compress } from "./Compression.ts"
import type { Piece } from "./ExportContent.ts"

/** Before compression: small enough for many concurrent downloads in memory. */
const chunkBytes = 131_072

export interface StoredChunk {
  readonly bytes: Uint8Array
  readonly plainSize: number
}

export interface StoredPiece extends Omit<Piece, "csv" | "snapshot"> {
  readonly artifact: ReadonlyArray<StoredChunk | undefined>
  /** A missing chunk of a ledger export is restored from the file chunk at the same position. */
  readonly snapshot: ReadonlyArray<StoredChunk | undefined>
}

/** Compression takes as long as a transaction, so it runs before the transaction. */
export const storedPiece = Effect.fnUntraced(function* ({ csv, snapshot, ...piece }: Piece) {
  const stored: StoredPiece = {
    ...piece,
    artifact: yield* storedChunks(csv),
    snapshot: yield* storedChunks(snapshot)
  }
  return stored
})

/** Requests run between two chunks. */
export const storedChunks = (bytes: Uint8Array) =>
  Effect.forEach(chunksOf(bytes), (chunk) => Effect.map(Effect.yieldNow, () => storedChunk(chunk)))

export const storedChunk = (bytes: Uint8Array): StoredChunk | undefined =>
  bytes.length === 0 ? undefined : { bytes: compress(bytes), plainSize: bytes.length }

const chunksOf = (bytes: Uint8Array): Array<Uint8Array> =>
  Array.from({ length: Math.ceil(bytes.length / chunkBytes) }, (_, index) =>
    bytes.subarray(index * chunkBytes, (index + 1) * chunkBytes)
  )
