/** Mail: an SMTP server on loopback whose answers a test chooses, and the node's mails in the database. */
import { Context, Effect, Layer, Queue, Redacted } from "effect"
import { SMTPServer, type SMTPServerOptions } from "smtp-server"
import { layerService } from "./Webhooks.ts"

export interface ReceivedMail {
  readonly id: string
  readonly to: string
  readonly from: string
  readonly subject: string
  readonly text: string
  readonly html: string
  /** The lines before the body. */
  readonly head: string
  readonly isEncrypted: boolean
  readonly user: string | undefined
}

type Stage = "connect" | "sender" | "recipient" | "data"

/** A status, also with its text, no answer at all, the end of the connection, or a status and then that. */
type Reply = number | `${number} ${string}` | "hang" | "close" | `${number} and close`

export interface MailServer {
  readonly port: number
  /** All mails that the server has accepted so far. */
  readonly accepted: ReadonlyArray<ReceivedMail>
  /** The next mail that arrives, accepted or not; each is returned once. */
  readonly next: Effect.Effect<ReceivedMail>
  /** Sets the replies that are no success. Addresses are those of recipients. */
  reply(choose: (stage: Stage, address: string) => Reply | undefined): void
}

const noReply = (): Reply | undefined => undefined

/** Listens until the scope ends. */
export const makeMailServer = Effect.fnUntraced(function* (options: SMTPServerOptions = {}) {
  const queue = yield* Queue.unbounded<ReceivedMail>()
  const accepted: Array<ReceivedMail> = []
  let choose: (stage: Stage, address: string) => Reply | undefined = noReply
  const answer = (stage: Stage, address: string, sessionId: string, done: (error?: Error) => void) => {
    const reply = choose(stage, address)
    if (reply === "hang") return
    const status = typeof reply === "string" ? Number.parseInt(reply, 10) : reply
    const closes = reply === "close" || (typeof reply === "string" && reply.endsWith(" and close"))
    const text = typeof reply === "string" && !closes ? reply.slice(4) : `no ${address}`
    if (reply !== "close")
      done(status === undefined ? undefined : Object.assign(new Error(text), { responseCode: status }))
    if (!closes) return
    for (const connection of server.connections as Set<{ id: string; _socket: { destroySoon(): void } }>)
      if (connection.id === sessionId) connection._socket.destroySoon()
  }
  const server: SMTPServer = new SMTPServer({
    authOptional: true,
    hideSTARTTLS: true,
    disableReverseLookup: true,
    logger: false,
    onConnect: (session, done) => answer("connect", "", session.id, done),
    onMailFrom: ({ address }, session, done) => answer("sender", address, session.id, done),
    onRcptTo: ({ address }, session, done) => answer("recipient", address, session.id, done),
    onData: (stream, session, done) => {
      const chunks: Array<Buffer> = []
      stream.on("data", (chunk: Buffer) => chunks.push(chunk))
      stream.on("end", () => {
        const [recipient] = session.envelope.rcptTo
        const mail = received(Buffer.concat(chunks).toString("utf8"), recipient!.address, session)
        answer("data", mail.to, session.id, (error) => {
          if (error === undefined) accepted.push(mail)
          done(error as Error)
        })
        Queue.offerUnsafe(queue, mail)
      })
    },
    ...options
  })
  server.on("error", () => {})
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
  )
  const { port } = server.server.address() as { readonly port: number }
  return {
    port,
    accepted,
    next: Queue.take(queue),
    reply: (next) => {
      choose = next
    }
  } satisfies MailServer as MailServer
})

const received = (raw: string, to: string, { secure, user }: { secure?: boolean; user?: unknown }): ReceivedMail => {
  const [head = "", ...parts] = raw.split(/\r\n\r\n/)
  const header = (name: string) => headerOf(head, name)
  const boundary = /boundary="([^"]+)"/.exec(head)?.[1] ?? "none"
  const bodies = parts.join("\r\n\r\n").split(`--${boundary}`)
  const partOf = (type: string) => decodedPart(bodies.find((part) => part.includes(`Content-Type: ${type}`)) ?? "")
  return {
    id: header("Message-ID"),
    to,
    from: header("From"),
    subject: decodedWords(header("Subject")),
    text: partOf("text/plain"),
    html: partOf("text/html"),
    head,
    isEncrypted: secure === true,
    user: user === undefined ? undefined : String(user)
  }
}

/** The unfolded value of a header. */
export const headerOf = (head: string, name: string): string =>
  new RegExp(`^${name}: ((?:.*)(?:\\r\\n[ \\t].*)*)`, "im").exec(head)?.[1]?.replaceAll(/\r\n[ \t]+/g, " ") ?? ""

const decodedPart = (part: string): string => {
  const [head = "", ...lines] = part.split("\r\n\r\n")
  const body = lines.join("\r\n\r\n")
  if (/base64/i.test(head)) return Buffer.from(body, "base64").toString("utf8")
  return /quoted-printable/i.test(head) ? decodedQuoted(body.replaceAll("=\r\n", "")) : body
}

const decodedQuoted = (text: string): string =>
  Buffer.from(
    text.replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    "latin1"
  ).toString("utf8")

/** Encoded words of RFC 2047. */
export const decodedWords = (header: string): string =>
  header
    .replaceAll(/\?= =\?/g, "?==?")
    .replaceAll(/=\?UTF-8\?(.)\?(.*?)\?=/gi, (_, form: string, text: string) =>
      form.toUpperCase() === "B"
        ? Buffer.from(text, "base64").toString("utf8")
        : decodedQuoted(text.replaceAll("_", " "))
    )

/** The settings of a node that sends to this server. */
export const mailSettingsOf = ({ port }: MailServer, scheme = "smtp", credentials = "") => ({
  smtpUrl: Redacted.make(`${scheme}://${credentials}localhost:${port}`),
  mailFrom: { address: "licenses@example.com", name: "Example Ltd" }
})

/** The mail server of a service in the same layer. */
export class Receiver extends Context.Service<Receiver, MailServer>()("licensing/test/Receiver") {}

/** A service with its workers, and the mail server to which it sends. */
export const layerMailService = Layer.unwrap(
  Effect.map(makeMailServer(), (server) =>
    layerService(mailSettingsOf(server)).pipe(Layer.merge(Layer.succeed(Receiver, server)))
  )
)
