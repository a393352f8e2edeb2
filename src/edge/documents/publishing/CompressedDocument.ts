/**
 * A document as it is sent: compressed once, with a tag for caches, in pieces as fast as the client reads. So
 * a request costs about as much as any other, and no copy in memory.
 */
import { Readable } from "node:stream"
import { gzip } from "node:zlib"
import { Clock, Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { matchesEntityTag } from "../../../access/preconditions/RecordTag.ts"
import { statuses } from "../../../contract/api/ErrorCode.ts"
import { errorEnvelope, noteRefused, type Refusal } from "../../../contract/api/Failure.ts"
import { RequestContext } from "../../../contract/api/RequestContext.ts"
import { sha256Hex } from "../../../platform/signing/Digest.ts"

interface Encoded {
  readonly bytes: Uint8Array
  /** A strong entity tag, different for each encoding. */
  readonly tag: string
}

export interface CompressedDocument {
  readonly contentType: string
  readonly cacheControl: string
  readonly plain: Encoded
  readonly compressed: Encoded
}

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

/** `own` headers replace the usual ones. */
export const respond = (
  { headers, method }: HttpServerRequest.HttpServerRequest,
  { cacheControl, compressed, contentType, plain }: CompressedDocument,
  own?: { readonly [name: string]: string }
): HttpServerResponse.HttpServerResponse => {
  const isCompressed = acceptsGzip(headers["accept-encoding"])
  const { bytes, tag } = isCompressed ? compressed : plain
  const common = {
    // A 304 updates the headers of the cached response; some depend on the content type.
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

/** One piece per turn of the event loop, so that other requests run between pieces, however fast the client reads. */
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

export const respondRefusal = Effect.fnUntraced(function* (refusal: Refusal) {
  const context = yield* RequestContext
  noteRefused(context, refusal)
  const body = JSON.stringify(errorEnvelope(refusal, context.requestId, yield* Clock.currentTimeMillis))
  return HttpServerResponse.text(body, { status: statuses[refusal.code], contentType: "application/json" })
})
