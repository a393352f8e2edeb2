/**
 * The server half of `Intake`: checks the announced size and the type of a body before the caller is authenticated. The body is
 * read afterwards, at its first use and up to the limit. Later readers get the cached bytes.
 */
import type { IncomingMessage } from "node:http"
import { ByteSize, Context, Effect, Layer } from "effect"
import { type Headers, HttpIncomingMessage, HttpServerRequest } from "effect/http"
import { type Refusal, refuse } from "../../contract/api/Failure.ts"
import { BodyBytesMax, BodyOptional, bodyBytesMax, Intake } from "../../contract/api/Requests.ts"
import { Deadline } from "../../platform/postgres/driver/Deadline.ts"

const tooLarge = (bytesMax: number) =>
  refuse("PAYLOAD_TOO_LARGE", `The body is larger than ${bytesMax} bytes: send a smaller one.`, String(bytesMax))

type BodyRefusal = Refusal<"BAD_REQUEST" | "PAYLOAD_TOO_LARGE">
type IntakeRefusal = Refusal<"BAD_REQUEST" | "PAYLOAD_TOO_LARGE" | "UNSUPPORTED_MEDIA_TYPE">

/** Admits requests whose body is JSON of at most the operation's `BodyBytesMax`. For operations without a body, checks the size only. */
export const layer: Layer.Layer<Intake> = Layer.succeed(Intake, (handler, { endpoint }) => {
  const bytesMax = Context.get(endpoint.annotations, BodyBytesMax)
  if (endpoint.payload.size === 0) return Effect.andThen(checkSize(bytesMax), handler)
  return takeBody(handler, bytesMax, Context.get(endpoint.annotations, BodyOptional))
})

const noFields = Buffer.from("{}")

const checkSize = (bytesMax: number) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request): Effect.Effect<unknown, IntakeRefusal> => {
    if (isTooLarge(request.headers, bytesMax)) return Effect.fail(tooLarge(bytesMax))
    if (request.headers["transfer-encoding"] !== undefined) announce(request, read(request, bytesMax))
    return Effect.void
  })

const takeBody = <A, E, R>(handler: Effect.Effect<A, E, R>, bytesMax: number, isOptional: boolean) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request): Effect.Effect<A, E | IntakeRefusal, R> => {
    const { headers, source } = request
    if (isOptional && headers["transfer-encoding"] === undefined && !(Number(headers["content-length"]) > 0)) {
      announce(request, Effect.succeed(noFields))
      return handler
    }
    if (isTooLarge(headers, bytesMax)) return Effect.fail(tooLarge(bytesMax))
    const refusal = mediaRefusal(headers)
    if (refusal !== undefined) return Effect.fail(refusal)
    const isPlain = isIncoming(source) && headers["content-length"] !== undefined && headers["expect"] === undefined
    const body = isPlain ? readWhole(source) : read(request, bytesMax)
    announce(request, isOptional ? Effect.map(body, (bytes) => (bytes.length === 0 ? noFields : bytes)) : body)
    return handler
  })

const isIncoming = (source: object): source is IncomingMessage => "rawHeaders" in source

const isTooLarge = (headers: Headers.Headers, bytesMax: number) => Number(headers["content-length"]) > bytesMax

/** Reads a body in chunks, or one whose client waits for a 100 Continue. */
const read = (request: HttpServerRequest.HttpServerRequest, bytesMax: number): Effect.Effect<Buffer, BodyRefusal> =>
  request.arrayBuffer.pipe(
    Effect.map((bytes) => Buffer.from(bytes)),
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(bytesMax)),
    Effect.mapError((error) =>
      error.reason._tag === "RequestParseError" && error.reason.reason === "BodyTooLarge"
        ? tooLarge(bytesMax)
        : unreadable()
    )
  )

const unreadable = () => refuse("BAD_REQUEST", "The body could not be read to its end: send the request again.")

/** The property of a request that holds the bytes of its body. */
const cachedBody = Symbol("licensing/access/requests/Intake")
/** The property of a request that reads its body. */
const announcedBody = Symbol("licensing/access/requests/Intake/announced")

const announce = (request: HttpServerRequest.HttpServerRequest, body: Effect.Effect<Buffer, BodyRefusal>): void => {
  Object.defineProperty(request, announcedBody, { value: beforeDeadline(body) })
}

/** A body may take longer than the service has for the request. */
const beforeDeadline = <A, E>(read: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.withFiber((fiber) => {
    const deadline = fiber.getRef(Deadline)
    if (deadline === undefined) return read
    deadline.stop()
    return Effect.ensuring(read, Effect.sync(deadline.start))
  })

/**
 * Reads a body with a known length, which Node enforces. Most bodies are one chunk that has already arrived, so this avoids the
 * overhead of a stream.
 */
const readWhole = (source: IncomingMessage & { readonly [cachedBody]?: Buffer }): Effect.Effect<Buffer> =>
  source[cachedBody] === undefined
    ? Effect.callback((resume) => {
        // If the body will never be complete, the connection is closed, which interrupts the request.
        const stop = onBody(source, (bytes) => resume(Effect.succeed(bytes)))
        return Effect.sync(stop)
      })
    : Effect.succeed(source[cachedBody])

/** Calls back with the complete body; never, if the connection ends first. Returns a function that stops listening. */
export const onBody = (source: IncomingMessage, onRead: (bytes: Buffer) => void): (() => void) => {
  const chunks: Array<Buffer> = []
  const onData = (chunk: Buffer) => void chunks.push(chunk)
  const stop = () => {
    source.off("data", onData).off("end", onEnd).off("error", stop).off("close", stop)
  }
  const onEnd = () => {
    stop()
    onRead(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
  }
  source.on("data", onData).on("end", onEnd).on("error", stop).on("close", stop)
  return stop
}

/** Stores a body that was already read in its request, where `Intake` finds it. */
export const cacheBody = (source: IncomingMessage, bytes: Buffer): void => {
  Object.defineProperty(source, cachedBody, { value: bytes })
}

/** The body of a request that `Intake` has admitted. Probes are admitted without it. */
export const bytesOf = (request: HttpServerRequest.HttpServerRequest): Effect.Effect<Buffer, BodyRefusal> => {
  const { [announcedBody]: announced, [cachedBody]: cached } = request as {
    readonly [announcedBody]?: Effect.Effect<Buffer, BodyRefusal>
    readonly [cachedBody]?: Buffer
  }
  if (cached !== undefined) return Effect.succeed(cached)
  return Effect.map(announced ?? read(request, bodyBytesMax), (bytes) => {
    Object.defineProperty(request, cachedBody, { value: bytes })
    return bytes
  })
}

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

/** `application/json`, with UTF-8 as the only charset (RFC 8259 allows no other); other parameters are ignored. */
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
