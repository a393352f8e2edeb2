/**
 * Connections that read into one buffer each. With a buffer for each read, 64 kB however little it brings, V8 collects 8 times a second
 * under long answers, for 15 to 20 ms each, and a driver's pauses would be told as the service's.
 */
import { connect as open, type Socket } from "node:net"
import type { buildConnector } from "undici"

/** As much as is read at once. */
const readMax = 65_536

/** How undici's clients reach a server over plain TCP. */
export const connect: buildConnector.connector = ({ hostname, port }, settled) => {
  const socket: Socket = open({
    host: hostname,
    port: Number(port),
    noDelay: true,
    onread: {
      buffer: Buffer.alloc(readMax),
      callback: (length, buffer) => socket.push(Buffer.from(buffer.subarray(0, length)))
    }
  })
  socket.once("connect", () => settled(null, socket)).once("error", (error) => settled(error, null))
}
