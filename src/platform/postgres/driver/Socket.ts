// The network socket of a database connection. It detects a server that disappeared without closing the connection (a lost machine,
// a dropped route). TCP alone would let a statement wait for a quarter of an hour, and the driver's `keepAlive` probes only
// connections without unacknowledged bytes.
import { connect, type OnReadOpts, type Socket } from "node:net"
import { Duplex } from "node:stream"
import type { Target } from "../../config/DatabaseAddress.ts"

const tickMillisMax = 5_000
// Idle connections are probed after this time, so that a dead one is removed before a statement is sent on it.
const keepAliveMillis = 15_000

// Bytes of one read. The driver collects them in buffers of 64 KiB.
const readBytes = 16_384

// From opening to the server's first byte.
const connectMillisMax = 5_000

export interface ConnectorOptions {
  /** Default: five seconds. */
  readonly connectMillis?: number
  /** Receives each socket, for an owner that may have to end it. */
  readonly opened?: (socket: Socket) => void
}

/**
 * Opens sockets to a target. A socket is destroyed if it receives no byte within `connectMillis` of opening, or if it has sent
 * bytes and receives none for `silenceMillis` (0: no limit). Then its waiting statements fail. Each received byte restarts the
 * count, so a long result is not interrupted.
 */
export const connector =
  (target: Target, silenceMillis: number, options: ConnectorOptions = {}) =>
  (): Duplex => {
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
    // A system timer: the driver's `connectTimeout` runs on the service's clock, which a test advances by hours at once.
    const connectTimer = setTimeout(
      () => socket.destroy(timedOut("The server does not answer")),
      options.connectMillis ?? connectMillisMax
    )
    socket.once("data", () => clearTimeout(connectTimer))
    socket.once("close", () => clearTimeout(connectTimer))
    if (silenceMillis > 0) destroyWhenSilent(socket, silenceMillis)
    options.opened?.(socket)
    if (!target.tls) return socket
    // TLS takes over a socket's handle, and then the socket emits no events for its bytes. Through a stream the socket itself sends
    // and receives. The stream must end with the socket.
    const stream = Duplex.from({ readable: socket, writable: socket })
    socket.once("close", () => stream.destroy())
    return stream
  }

/** An error with the system's code for a connection without an answer. */
const timedOut = (message: string) => Object.assign(new Error(message), { code: "ETIMEDOUT" })

/**
 * Reads into one reused buffer, because the driver has copied the bytes when `onBytes` returns. Otherwise each read would allocate
 * 64 KiB. TLS cannot use it: it reads through a stream, which keeps its buffers.
 */
const intoOneBuffer = (onBytes: (bytes: Uint8Array) => void): OnReadOpts => ({
  buffer: new Uint8Array(readBytes),
  callback: (size, bytes) => {
    onBytes(bytes.subarray(0, size))
    return true
  }
})

const destroyWhenSilent = (socket: Socket, silenceMillis: number) => {
  const tickMillis = Math.min(tickMillisMax, silenceMillis)
  const ticksMax = Math.ceil(silenceMillis / tickMillis)
  let acknowledgedBytes = 0
  let silentTicks = 0
  const timer = setInterval(() => {
    silentTicks = socket.bytesWritten > acknowledgedBytes ? silentTicks + 1 : 0
    if (silentTicks >= ticksMax) socket.destroy(timedOut("The server stopped answering"))
  }, tickMillis)
  timer.unref()
  socket.on("data", () => {
    acknowledgedBytes = socket.bytesWritten
    silentTicks = 0
  })
  socket.on("close", () => clearInterval(timer))
}
