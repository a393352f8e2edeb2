/**
 * A document as it is sent: made and compressed once, with a tag for caches, and in pieces as fast as the client takes them, so
 * that a request costs about as much as any other, and no copy in memory.
 */
import { Readable } from "node:stream"
import { gzip } from "node:zlib"
import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { matchesEntityTag } from "../../../access/preconditions/EntityTag.ts"
import { sha256Hex } from "../../../platform/signing/Digest.ts"

interface Encoded {
  readonly bytes: Uint8Array
  /** A strong entity tag: another for each encoding. */
  readonly tag: string
}

export interface CompressedDocument {
  readonly contentType: string
  readonly cacheControl: string
  readonly plain: Encoded
  readonly compressed: Encoded
}

/** Compresses a document, outside of the main thread. */
export const compress = Effect.fnUntraced(function* (
  contentType: string,
  bytes: Uint8Array,
  cacheControl = "public, max-age=300"
) {
  const compressed = yield* Effect.callback<Uint8Array>((resume) => {
    gzip(bytes, (error, result) => resume(error === null ? Effect.succeed(result) : Effect.die(error)))
  })
  const digest = sha256Hex(bytes).slice(0, 32)
  return {
    contentType,
    cacheControl,
    plain: { bytes, tag: `"${digest}"` },
    compressed: { bytes: compressed, tag: `"${digest}-gzip"` }
  } satisfies CompressedDocument
})

/** Responds with the document, or with 304 if the client has it. The given headers replace the usual ones. */
export const respond = (
  { headers, method }: HttpServerRequest.HttpServerRequest,
  { cacheControl, compressed, contentType, plain }: CompressedDocument,
  own?: { readonly [name: string]: string }
): HttpServerResponse.HttpServerResponse => {
  const isCompressed = acceptsGzip(headers["accept-encoding"])
  const { bytes, tag } = isCompressed ? compressed : plain
  const common = {
    // A 304 updates the headers of the cached response, of which some depend on the type.
    "content-type": contentType,
    "cache-control": cacheControl,
    etag: tag,
    vary: "Accept-Encoding, Origin",
    ...own
  }
  if (matchesEntityTag(headers["if-none-match"], tag)) return HttpServerResponse.empty({ status: 304, headers: common })
  const ofBody = {
    ...common,
    "content-length": String(bytes.length),
    ...(isCompressed && { "content-encoding": "gzip" })
  }
  return method === "HEAD"
    ? HttpServerResponse.empty({ status: 200, headers: ofBody })
    : HttpServerResponse.raw(pieces(bytes), { headers: ofBody })
}

const pieceBytes = 65_536

/** One piece in each turn of the event loop, so that other requests are handled between two, however fast the client reads. */
const pieces = (bytes: Uint8Array): Readable => {
  let start = 0
  return new Readable({
    read() {
      setImmediate(() => {
        const piece = bytes.subarray(start, start + pieceBytes)
        start += pieceBytes
        this.push(piece.length > 0 ? piece : null)
      })
    },
    highWaterMark: pieceBytes
  })
}

/** Whether the value of Accept-Encoding names gzip, or everything, without the weight 0. */
const acceptsGzip = (accepted = ""): boolean => {
  const weights = new Map(
    accepted.split(",").map((part) => {
      const [coding = "", ...parameters] = part.toLowerCase().split(";")
      const weight = parameters.map((parameter) => /^\s*q=([\d.]+)\s*$/.exec(parameter)?.[1]).find(Boolean)
      return [coding.trim(), Number(weight ?? 1)] as const
    })
  )
  return (weights.get("gzip") ?? weights.get("*") ?? 0) > 0
}
