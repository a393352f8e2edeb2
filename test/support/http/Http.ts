/** HTTP as bytes: requests that no client library would send, responses as received, and the envelopes that every response has. */
import { request as httpRequest, type IncomingHttpHeaders } from "node:http"
import { connect } from "node:net"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { messageFault } from "../rules/PlainWords.ts"
import { poll } from "../rules/Poll.ts"

export interface Message {
  /** Default GET. */
  readonly method?: string
  /** The request target as it is sent. */
  readonly path: string
  readonly headers?: { readonly [name: string]: string }
  /** Text and bytes are sent unchanged, other values as JSON. */
  readonly body?: unknown
  /** A body that is sent in chunks, without Content-Length. */
  readonly chunks?: ReadonlyArray<string | Uint8Array>
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The body as received. */
  readonly bytes: Uint8Array
  /** The parsed body; undefined if it is missing or not JSON. */
  readonly json: unknown
  /** The `error` member of an error envelope. */
  readonly error: {
    readonly code?: string
    readonly message?: string
    readonly detail?: string
    readonly details?: ReadonlyArray<{ readonly path: string; readonly message: string }>
  }
}

/** Sends one request over a new connection. A body without a content type is declared as JSON. */
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

/** Writes bytes to a new connection and returns its only answer. */
export const exchange = (port: number, bytes: string | Uint8Array): Effect.Effect<Answer> =>
  Effect.scoped(Effect.flatMap(hold(port, bytes), ({ answer }) => answer))

interface Held {
  readonly write: (bytes: string) => Effect.Effect<void>
  /** What was received when the service has closed the connection. */
  readonly answer: Effect.Effect<Answer>
  readonly close: Effect.Effect<void>
}

/**
 * Opens a connection and sends the first bytes. It ends with the scope: a service that stops waits for unfinished requests.
 */
export const hold = (port: number, bytes: string | Uint8Array) =>
  Effect.acquireRelease(opened(port, bytes), ({ close }) => close)

const opened = (port: number, bytes: string | Uint8Array) =>
  Effect.callback<Held>((resume) => {
    const received: Array<Buffer> = []
    const closed = Promise.withResolvers<Answer>()
    const socket = connect(port, "127.0.0.1", () =>
      socket.write(bytes, () =>
        resume(
          Effect.succeed({
            write: (more) => Effect.sync(() => void socket.write(more)),
            answer: Effect.promise(() => closed.promise),
            close: Effect.sync(() => void socket.destroy())
          })
        )
      )
    )
    socket.on("data", (chunk) => received.push(chunk))
    socket.on("error", () => {})
    socket.on("close", () => closed.resolve(parseAnswer(Buffer.concat(received).toString("latin1"))))
  })

/** Writes bytes to a new connection and resets it. */
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

const requestId = /^[A-Za-z0-9_-]{8,64}$/

/** Checks that an answer is an error envelope with this status and code, and this detail if given. */
export const assertRefused = (answer: Answer, status: number, code: string, detail?: string): void => {
  assert.strictEqual(answer.error.code, code, answer.text)
  assert.strictEqual(answer.status, status)
  if (detail !== undefined) assert.strictEqual(answer.error.detail, detail)
  // A refusal is signed if and only if it names the license of the request's key.
  const isSigned = "license_id" in answer.error
  assert.deepStrictEqual(
    Object.keys(answer.json as object),
    isSigned ? ["error", "signature", "meta"] : ["error", "meta"]
  )
  assertPlain(answer.error.message ?? "")
  assertDetails(answer)
  assertMeta(answer)
}

const assertPlain = (message: string): void => assert.isUndefined(messageFault(message), message)

/** Checks that the first of all wrong fields is the refusal's own, that none is repeated, and that at most ten are listed. */
const assertDetails = ({ error: { detail = "", details, message } }: Answer): void => {
  if (details === undefined) return
  assert.deepStrictEqual(details[0], { path: detail, message })
  assert.isAtMost(details.length, 10)
  assert.strictEqual(new Set(details.map(({ path }) => path)).size, details.length)
  for (const { message } of details) assertPlain(message)
}

/** Repeats a request until the answer is not 503: documents are made at the first request, which a busy machine may not await. */
export const untilReady = <E, R>(answer: Effect.Effect<Answer, E, R>) => poll(answer, ({ status }) => status !== 503)

/** Checks that an answer is a success envelope with this status, and returns its data. */
export const assertAnswered = (answer: Answer, status: number): unknown => {
  assert.strictEqual(answer.status, status, answer.text)
  assertMeta(answer)
  return (answer.json as { data: unknown }).data
}

const assertMeta = (answer: Answer): void => {
  const { meta } = answer.json as { meta: { request_id: string; timestamp: string } }
  assert.match(meta.request_id, requestId)
  assert.strictEqual(answer.headers["x-request-id"], meta.request_id)
  assert.strictEqual(new Date(meta.timestamp).toISOString(), meta.timestamp)
  assert.strictEqual(answer.headers["content-type"], "application/json")
  assert.strictEqual(answer.headers["cache-control"], "no-store")
  assert.strictEqual(answer.headers["x-content-type-options"], "nosniff")
  for (const told of ["server", "x-powered-by"]) assert.notProperty(answer.headers, told)
}

/** A self-signed certificate for localhost and receiver.example, with its key. It protects nothing. */
export const certificate = `-----BEGIN CERTIFICATE-----
MIIBrTCCAVOgAwIBAgIUFGDLYKpa6sxOktyqIhAEg/cEx+UwCgYIKoZIzj0EAwIw
FzEVMBMGA1UEAwwMd2ViaG9vayB0ZXN0MCAXDTI2MTEyMDA4MzIxN1oYDzIxMjYx
MDI3MDgzMjE3WjAXMRUwEwYDVQQDDAx3ZWJob29rIHRlc3QwWTATBgcqhkjOPQIB
BggqhkjOPQMBBwNCAASQxGznz87kXT0kL09xOGwN2Sp/F1zVW3YxhOYtSpTPg45X
wdsCxLTurODSwY6eWa2Zr/rhGdhnevZnulLWIMJFo3sweTAdBgNVHQ4EFgQUwA1I
d5ScrUXaqoloIk4L0szKyqYwHwYDVR0jBBgwFoAUwA1Id5ScrUXaqoloIk4L0szK
yqYwJgYDVR0RBB8wHYIJbG9jYWxob3N0ghByZWNlaXZlci5leGFtcGxlMA8GA1Ud
EwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIhAMF7y2sASx5TSq2lwBeGiJe5
Fd8xfWk/uUy0nc+9Lb2eAiAZxWWO/rfdgODyqUfVkRlP0J1SWaRaXTx47vC01qaW
rQ==
-----END CERTIFICATE-----
`

export const privateKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgJInYS8/WB041Sm6S
CVfjhK/F+XL//o9PB9GQxh+7VxGhRANCAASQxGznz87kXT0kL09xOGwN2Sp/F1zV
W3YxhOYtSpTPg45XwdsCxLTurODSwY6eWa2Zr/rhGdhnevZnulLWIMJF
-----END PRIVATE KEY-----
`
