/** HTTP as bytes: requests that no client library would send, and answers as they came. */
import { request as httpRequest, type IncomingHttpHeaders } from "node:http"
import { connect } from "node:net"
import { Effect } from "effect"

export interface Message {
  /** Default GET. */
  readonly method?: string
  /** The request target as it is sent. */
  readonly path: string
  readonly headers?: { readonly [name: string]: string }
  /** A text or bytes are sent as they are, anything else as JSON. */
  readonly body?: unknown
  /** A body that is sent in chunks, without Content-Length. */
  readonly chunks?: ReadonlyArray<string | Uint8Array>
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The body as it came. */
  readonly bytes: Uint8Array
  /** The parsed body, or undefined where there is none or it is no JSON. */
  readonly json: unknown
  /** The `error` member of an error envelope. */
  readonly error: {
    readonly code?: string
    readonly message?: string
    readonly detail?: string
    readonly details?: ReadonlyArray<{ readonly path: string; readonly message: string }>
  }
}

/** One request over a connection of its own. Text without a content type is declared as JSON. */
export const send = (port: number, { method = "GET", path, headers, body, chunks }: Message): Effect.Effect<Answer> =>
  Effect.callback((resume) => {
    const whole = body === undefined ? undefined : bytesOf(body)
    const length = whole === undefined ? undefined : { "content-length": String(whole.length) }
    const type = whole === undefined && chunks === undefined ? undefined : { "content-type": "application/json" }
    const outgoing = httpRequest(
      { host: "127.0.0.1", port, method, path, headers: { ...type, ...length, ...headers }, agent: false },
      (incoming) => {
        const received: Array<Buffer> = []
        incoming.on("data", (chunk: Buffer) => received.push(chunk))
        incoming.on("error", (error) => resume(Effect.die(error)))
        incoming.on("end", () =>
          resume(Effect.succeed(answer(incoming.statusCode ?? 0, incoming.headers, Buffer.concat(received))))
        )
      }
    )
    outgoing.on("error", (error) => resume(Effect.die(error)))
    for (const chunk of chunks ?? []) outgoing.write(chunk)
    outgoing.end(whole)
  })

const bytesOf = (body: unknown): Uint8Array =>
  body instanceof Uint8Array ? body : Buffer.from(typeof body === "string" ? body : JSON.stringify(body))

const answer = (
  status: number,
  headers: IncomingHttpHeaders,
  bytes: Buffer,
  text: string = bytes.toString()
): Answer => {
  const json = parse(text)
  return { status, headers, text, bytes, json, error: (json as { error?: Answer["error"] } | undefined)?.error ?? {} }
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Writes bytes to a connection and gives the answer, which must be the only one on it. */
export const exchange = (port: number, bytes: string | Uint8Array): Effect.Effect<Answer> =>
  Effect.flatMap(hold(port, bytes), ({ answer }) => answer)

/** A connection on which the first bytes were sent. Its answer is what has come when the service closes it. */
export const hold = (port: number, bytes: string | Uint8Array) =>
  Effect.callback<{ readonly write: (bytes: string) => Effect.Effect<void>; readonly answer: Effect.Effect<Answer> }>(
    (resume) => {
      const received: Array<Buffer> = []
      const closed = Promise.withResolvers<Answer>()
      const socket = connect(port, "127.0.0.1", () =>
        socket.write(bytes, () =>
          resume(
            Effect.succeed({
              write: (more) => Effect.sync(() => void socket.write(more)),
              answer: Effect.promise(() => closed.promise)
            })
          )
        )
      )
      socket.on("data", (chunk) => received.push(chunk))
      socket.on("error", () => {})
      socket.on("close", () => closed.resolve(parseAnswer(Buffer.concat(received).toString("latin1"))))
    }
  )

/** Writes bytes to a connection and resets it. */
export const abandon = (port: number, bytes: string): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes, () => socket.resetAndDestroy()))
    socket.on("close", () => resume(Effect.void))
  })

const parseAnswer = (text: string): Answer => {
  const [head = "", ...rest] = text.split("\r\n\r\n")
  const [statusLine = "", ...lines] = head.split("\r\n")
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()])
  )
  const body = rest.join("\r\n\r\n")
  return answer(Number(statusLine.split(" ")[1]), headers, Buffer.from(body, "latin1"), body)
}
