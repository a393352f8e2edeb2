// The network socket under a database connection. It must notice a server that vanished without a word (a lost machine, a
// dropped route): TCP alone leaves a statement hanging for a quarter of an hour then, and the driver's own `keepAlive` probes only
// a connection with nothing unacknowledged.
import { connect, type OnReadOpts, type Socket } from "node:net"
import { Duplex } from "node:stream"

/** Where a PostgreSQL URL points: `name` is fit for messages, it holds no credentials. */
export interface Target {
  readonly host: string
  readonly port: number
  readonly name: string
  /** Whether the connection may become an encrypted one: always with the server's certificate verified, or not at all. */
  readonly tls: boolean
}

export const targetOf = (url: URL): Target => {
  const host = url.searchParams.get("host") ?? (decodeURIComponent(url.hostname).replace(/^\[|\]$/g, "") || "localhost")
  const port = Number(url.searchParams.get("port") ?? (url.port || "5432"))
  const database = url.searchParams.get("dbname") ?? decodeURIComponent(url.pathname.slice(1))
  const tls = (url.searchParams.get("sslmode") ?? "disable") !== "disable"
  return { host, port, name: `${host}:${port}/${database}`, tls }
}

const tickMillisMax = 5_000
// Idle connections are probed from here on, so that a dead one is gone before a statement is sent on it.
const keepAliveMillis = 15_000

// Bytes that are read at once. The driver gathers what it reads in buffers of 64 KiB, which a few of these fill.
const readBytes = 16_384

// From opening to the server's first byte.
const connectMillisMax = 5_000

/**
 * Opens sockets to a target. One that gets no byte within `connectMillis` of opening is destroyed, and so is one that has sent
 * something and hears nothing back for `silenceMillis`, which fails what waits on it; 0 waits for ever. Bytes that come in
 * restart the count, so a long answer is not cut off.
 */
export const connector = (target: Target, silenceMillis: number, connectMillis?: number) => (): Duplex => {
  const reading = target.tls ? {} : { onread: intoOneBuffer((bytes) => socket.emit("data", bytes)) }
  const socket: Socket = target.host.startsWith("/")
    ? connect({ path: `${target.host}/.s.PGSQL.${target.port}`, ...reading })
    : connect({
        host: target.host,
        port: target.port,
        noDelay: true,
        keepAlive: true,
        keepAliveInitialDelay: keepAliveMillis,
        ...reading
      })
  // A timer of the machine: the driver's `connectTimeout` runs on the service's clock, which a test advances by hours at once.
  const patience = setTimeout(
    () => socket.destroy(timedOut("The server does not answer")),
    connectMillis ?? connectMillisMax
  )
  socket.once("data", () => clearTimeout(patience))
  socket.once("close", () => clearTimeout(patience))
  if (silenceMillis > 0) destroyWhenSilent(socket, silenceMillis)
  if (!target.tls) return socket
  // TLS takes a socket's handle over, and the socket never hears of the bytes that pass: over a stream it stays the one that
  // sends and receives. That stream must end with it.
  const stream = Duplex.from({ readable: socket, writable: socket })
  socket.once("close", () => stream.destroy())
  return stream
}

/** With the code that the system gives to a connection without an answer. */
const timedOut = (message: string) => Object.assign(new Error(message), { code: "ETIMEDOUT" })

/**
 * Reads into the same bytes again and again: the driver has copied what it is told of when `heard` returns. Otherwise each
 * reading takes 64 KiB of its own, which wait to be collected. TLS reads through a stream instead, which keeps what it is given.
 */
const intoOneBuffer = (heard: (bytes: Uint8Array) => void): OnReadOpts => ({
  buffer: new Uint8Array(readBytes),
  callback: (size, bytes) => {
    heard(bytes.subarray(0, size))
    return true
  }
})

const destroyWhenSilent = (socket: Socket, silenceMillis: number) => {
  const tickMillis = Math.min(tickMillisMax, silenceMillis)
  const ticksMax = Math.ceil(silenceMillis / tickMillis)
  let answeredUpTo = 0
  let silentTicks = 0
  const timer = setInterval(() => {
    silentTicks = socket.bytesWritten > answeredUpTo ? silentTicks + 1 : 0
    if (silentTicks >= ticksMax) socket.destroy(timedOut("The server stopped answering"))
  }, tickMillis)
  timer.unref()
  socket.on("data", () => {
    answeredUpTo = socket.bytesWritten
    silentTicks = 0
  })
  socket.on("close", () => clearInterval(timer))
}
