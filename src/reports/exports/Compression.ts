/**
 * Zstandard (RFC 8878) for the stored bytes of exports, on threads beside the event loop. Storing fewer bytes
 * saves the database more CPU than compressing takes.
 */
import { constants, zstdCompress, zstdDecompress } from "node:zlib"
import { Effect } from "effect"

/** Bytes of an output buffer. Each one takes a round trip to the other thread; ledger rows fill one or two. */
const outputBytes = 131_072
const options = { chunkSize: outputBytes, params: { [constants.ZSTD_c_compressionLevel]: 1 } }

export const compress = (bytes: Uint8Array): Effect.Effect<Uint8Array> =>
  Effect.callback((resume) => zstdCompress(bytes, options, (error, result) => resume(resultOf(error, result))))

/** `size`: the size of the result, in bytes. Other results are refused. */
export const decompress = (bytes: Uint8Array, size: number): Effect.Effect<Uint8Array> =>
  Effect.callback((resume) =>
    zstdDecompress(bytes, { chunkSize: Math.max(size, 64), maxOutputLength: size }, (error, result) =>
      resume(
        error === null && result.length !== size
          ? Effect.die(new Error(`A chunk has ${result.length} bytes instead of ${size}`))
          : resultOf(error, result)
      )
    )
  )

const resultOf = (error: Error | null, result: Uint8Array): Effect.Effect<Uint8Array> =>
  error === null ? Effect.succeed(result) : Effect.die(error)
