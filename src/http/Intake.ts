/**
 * The server half of `Intake`: a body is measured, typed and read before the caller is looked at. It is read once, here; the
 * platform keeps the bytes for everyone after.
 */
import type { IncomingMessage } from "node:http"
import { ByteSize, Effect, Layer } from "effect"
import { type Headers, HttpIncomingMessage, HttpServerRequest } from "effect/http"
import { type Refusal, refuse } from "../api/Failure.ts"
import { bodyBytesMax, Intake } from "../api/Requests.ts"

const tooLarge = () =>
  refuse("PAYLOAD_TOO_LARGE", `The body is larger than ${bodyBytesMax} bytes.`, String(bodyBytesMax))

type IntakeRefusal = Refusal<"BAD_REQUEST" | "PAYLOAD_TOO_LARGE" | "UNSUPPORTED_MEDIA_TYPE">

/** Lets in requests whose body is JSON of at most `bodyBytesMax` bytes; operations without a body look at its size only. */
export const layer: Layer.Layer<Intake> = Layer.succeed(Intake, (handler, { endpoint }) =>
  endpoint.payload.size > 0 ? takeBody(handler) : Effect.andThen(checkSize, handler)
)

const checkSize = Effect.flatMap(
  HttpServerRequest.HttpServerRequest,
  (request): Effect.Effect<unknown, IntakeRefusal> => {
    if (isTooLarge(request.headers)) return Effect.fail(tooLarge())
    // A body without a length is as large as whoever reads it lets it become: it is read here, up to the limit.
    return request.headers["transfer-encoding"] === undefined ? Effect.void : read(request)
  }
)

const takeBody = <A, E, R>(handler: Effect.Effect<A, E, R>) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request): Effect.Effect<A, E | IntakeRefusal, R> => {
    const { headers, source } = request
    if (isTooLarge(headers)) return Effect.fail(tooLarge())
    const refusal = mediaRefusal(headers)
    if (refusal !== undefined) return Effect.fail(refusal)
    if (!isIncoming(source) || headers["content-length"] === undefined || headers["expect"] !== undefined)
      return Effect.andThen(read(request), handler)
    return Effect.flatMap(readWhole(source), (bytes) => {
      keepBody(request, bytes)
      return handler
    })
  })

const isIncoming = (source: object): source is IncomingMessage => "rawHeaders" in source

const isTooLarge = (headers: Headers.Headers) => Number(headers["content-length"]) > bodyBytesMax

const read = (request: HttpServerRequest.HttpServerRequest) =>
  request.arrayBuffer.pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(bodyBytesMax)),
    Effect.mapError((error) =>
      error.reason._tag === "RequestParseError" && error.reason.reason === "BodyTooLarge" ? tooLarge() : unreadable()
    )
  )

const unreadable = () => refuse("BAD_REQUEST", "The body could not be read to its end.")

/** The bytes that were read, where they are kept. */
const kept = Symbol("licensing/http/Intake")

/**
 * A body whose length is known, which Node holds the client to. Nearly every body is one chunk that has come already, and needs
 * none of what the platform's general way of reading a stream takes care of.
 */
const readWhole = (source: IncomingMessage & { readonly [kept]?: Buffer }): Effect.Effect<Buffer, IntakeRefusal> =>
  source[kept] === undefined
    ? Effect.callback((resume) => {
        const leave = onBody(
          source,
          (bytes) => resume(Effect.succeed(bytes)),
          () => resume(Effect.fail(unreadable()))
        )
        return Effect.sync(leave)
      })
    : Effect.succeed(source[kept])

/** Calls back once, with the body or when there will be none; gives the function that stops listening. */
export const onBody = (source: IncomingMessage, read: (bytes: Buffer) => void, gone: () => void): (() => void) => {
  const chunks: Array<Buffer> = []
  const onData = (chunk: Buffer) => void chunks.push(chunk)
  const leave = () => {
    source.off("data", onData).off("end", onEnd).off("error", onGone).off("close", onGone)
  }
  const onEnd = () => {
    leave()
    read(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
  }
  const onGone = () => {
    leave()
    gone()
  }
  source.on("data", onData).on("end", onEnd).on("error", onGone).on("close", onGone)
  return leave
}

/** Leaves a body that was read with its request, for `Intake` to find. */
export const leaveBody = (source: IncomingMessage, bytes: Buffer): void => {
  Object.defineProperty(source, kept, { value: bytes })
}

/** The body of a request that `Intake` has let in, however it was read. */
export const bytesOf = (request: HttpServerRequest.HttpServerRequest): Effect.Effect<Buffer> => {
  const bytes = (request as { readonly [kept]?: Buffer })[kept]
  return bytes === undefined
    ? Effect.map(Effect.orDie(request.arrayBuffer), (all) => Buffer.from(all))
    : Effect.succeed(bytes)
}

/**
 * Lays the body beside the request for everyone after. Its own properties hide the getters that would read it from the socket.
 * An object made from the request as its prototype would do, too, but V8 rebuilds an object that becomes a prototype.
 */
const keepBody = (request: HttpServerRequest.HttpServerRequest, bytes: Buffer): void => {
  Object.defineProperty(request, kept, { value: bytes })
  Object.defineProperty(request, "arrayBuffer", { value: Effect.sync(() => arrayBufferOf(bytes)) })
  Object.defineProperty(request, "text", { value: Effect.sync(() => bytes.toString()) })
}

const arrayBufferOf = ({ buffer, byteOffset, byteLength }: Buffer) => buffer.slice(byteOffset, byteOffset + byteLength)

const mediaRefusal = (headers: Headers.Headers): Refusal<"UNSUPPORTED_MEDIA_TYPE"> | undefined => {
  const type = headers["content-type"]
  if (type !== undefined && type !== "application/json" && !isJson(type)) {
    return refuse("UNSUPPORTED_MEDIA_TYPE", "Send the body as application/json in UTF-8.", "Content-Type")
  }
  const encoding = headers["content-encoding"]
  return encoding === undefined || encoding.trim().toLowerCase() === "identity"
    ? undefined
    : refuse("UNSUPPORTED_MEDIA_TYPE", "Send the body without a content encoding.", "Content-Encoding")
}

/** `application/json`, with UTF-8 as the only charset (RFC 8259 knows no other); other parameters mean nothing. */
const isJson = (contentType: string): boolean => {
  const [type, ...parameters] = contentType.toLowerCase().split(";")
  return (
    type?.trim() === "application/json" &&
    parameters.every((parameter) => {
      const [name, value] = parameter.split("=")
      return name?.trim() !== "charset" || value?.trim().replace(/^"(.*)"$/, "$1") === "utf-8"
    })
  )
}
