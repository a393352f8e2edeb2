/**
 * Digests of an export that is being made, kept by who makes all its pieces: whoever goes on with one that another has begun takes
 * them over what is stored. Each piece has sums of its own, so that a transaction that is tried again ends with the same.
 */
import { type Digest, makeDigest } from "../../signing/Digest.ts"

export interface PartSum {
  readonly digest: Digest
  readonly size: number
}

export interface PieceSums {
  readonly snapshot: PartSum
  readonly artifact: PartSum
}

const empty: PartSum = { digest: makeDigest(), size: 0 }

/** The sums before the first piece. */
export const nothing: PieceSums = { snapshot: empty, artifact: empty }

/** The sums with one piece more: its figures and its file, each in the parts that it was written in. */
export const andSums = (sums: PieceSums, snapshot: Parts, csv: Parts): PieceSums => ({
  snapshot: and(sums.snapshot, snapshot),
  artifact: and(sums.artifact, csv)
})

type Parts = ReadonlyArray<Uint8Array | string>

const and = ({ digest, size }: PartSum, parts: Parts): PartSum => {
  const more = digest.copy()
  for (const part of parts) more.update(part)
  return { digest: more, size: parts.reduce((sum, part) => sum + Buffer.byteLength(part), size) }
}
