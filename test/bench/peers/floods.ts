/** Floods a service from an address of its own, until SIGTERM: `floods.ts <flood> <port>`. See flood.ts. */
import { connect, type Socket } from "node:net"
import { constants, setPriority } from "node:os"

setPriority(constants.priority.PRIORITY_LOW)
const [flood = "", port = ""] = process.argv.slice(2)

// Another address than the measuring client's: both have limits of their own.
const localAddress = "127.0.0.2"

/** Opens a connection, and a new one when it ends. */
const hold = (use: (socket: Socket) => void): void => {
  const socket = connect({ port: Number(port), host: "127.0.0.1", localAddress, noDelay: true }, () => use(socket))
  socket.on("error", () => {})
  socket.on("close", () => {
    setTimeout(hold, 20, use)
  })
}

/** Sends the next request when the response before has arrived; the end of a response is known by its length. */
const repeat = (bytes: () => string) => (socket: Socket) => {
  let head = ""
  let missing = -1
  const ask = () => {
    head = ""
    missing = -1
    socket.write(bytes())
  }
  socket.on("data", (chunk: Buffer) => {
    if (missing < 0) {
      head += chunk.toString("latin1")
      const end = head.indexOf("\r\n\r\n")
      if (end < 0) return
      missing = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0) - (head.length - end - 4)
    } else missing -= chunk.length
    if (missing <= 0) ask()
  })
  ask()
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: flood\r\n\r\n`
const post = (authorization: string, body: string) =>
  `POST /api/v1/license/consume HTTP/1.1\r\nHost: flood\r\nAuthorization: ${authorization}\r\n` +
  `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`

/** Writes many requests at once, and leaves after a second. */
const pipeline = (bytes: string) => (socket: Socket) => {
  socket.write(bytes)
  socket.resume()
  setTimeout(() => socket.resetAndDestroy(), 1_000)
}

const floods: Record<string, readonly [connections: number, use: (socket: Socket) => void]> = {
  documents: [50, repeat(() => get("/docs/"))],
  unread: [200, (socket) => socket.pause().write(get("/docs/"))],
  pipelined: [50, pipeline(get("/docs/").repeat(200))],
  "pipelined probes": [50, pipeline(get("/healthz").repeat(200))],
  probes: [64, repeat(() => get("/healthz"))],
  credentials: [64, repeat(() => post("License LK-WRONG", "{}"))],
  bodies: [500, (socket) => socket.resume().write(post("License LK-WRONG", "x".repeat(262_144)))],
  connections: [5_000, (socket) => socket.resume().write("GET /healthz HTTP/1.1\r\n")]
}

const [connections, use] = floods[flood]!
for (let index = 0; index < connections; index++) hold(use)

// Connections that are not read do not keep a process alive.
setInterval(() => {}, 60_000)
process.once("SIGTERM", () => process.exit())
