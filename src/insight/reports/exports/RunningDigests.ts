/**
 * The digests of an export in progress, in the memory of the node that creates all its pieces. A node that resumes an export of
 * another node computes them over the stored bytes instead. Each piece has its own copy, so that a retried transaction gets the
 * same result.
 */
import { type Digest, makeDigest } from "../../../platform/signing/Digest.ts"

export interface RunningDigest {
  readonly digest: Digest
  readonly size: number
}

export interface RunningDigests {
  readonly snapshot: RunningDigest
  readonly artifact: RunningDigest
}

const empty: RunningDigest = { digest: makeDigest(), size: 0 }

export const emptyDigests: RunningDigests = { snapshot: empty, artifact: empty }

export const extendDigests = (digests: RunningDigests, snapshot: Content, csv: Content): RunningDigests => ({
  snapshot: extend(digests.snapshot, snapshot),
  artifact: extend(digests.artifact, csv)
})

type Content = Uint8Array | string

const extend = ({ digest, size }: RunningDigest, content: Content): RunningDigest => {
  const extended = digest.copy()
  extended.update(content)
  return { digest: extended, size: size + Buffer.byteLength(content) }
}
