/**
 * Digests of an export that is being made, kept by who makes all its pieces: whoever goes on with one that another has begun takes
 * them over what is stored. Each piece gives new ones, so that a transaction that is tried again begins with what it began with.
 */
import { type Digest, makeDigest } from "../signing/Digest.ts"
import type { Piece } from "./ExportContent.ts"

export interface PartSum {
  readonly digest: Digest
  readonly size: number
}

export interface PieceSums {
  readonly snapshot: PartSum
  readonly artifact: PartSum
}

const nothing = (): PartSum => ({ digest: makeDigest(), size: 0 })

const and = ({ digest, size }: PartSum, bytes: Uint8Array): PartSum => {
  const more = digest.copy()
  more.update(bytes)
  return { digest: more, size: size + bytes.length }
}

/** The digests of the first piece. */
export const firstSums = (piece: Piece): PieceSums => withPiece({ snapshot: nothing(), artifact: nothing() }, piece)

export const withPiece = ({ artifact, snapshot }: PieceSums, piece: Piece): PieceSums => ({
  snapshot: and(snapshot, piece.snapshot),
  artifact: and(artifact, piece.csv)
})
