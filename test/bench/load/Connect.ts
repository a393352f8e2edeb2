/**
 * Connections that read into one buffer each. With a buffer for each read, 64 kB for any size of data, V8 collects 8
 * times a second under long responses, for 15 to 20 ms each, and the driver's pauses would be measured as the
 * service's.
 */
import { connect as open, type Socket } from "node:net"
import type { buildConnector } from "undici"

/** The maximum of one read. */
const readMax = 65_536

/** Connects undici's clients to a server over plain TCP. */
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
